import { scenarios } from './scenarios.js';
import { CLAUDE } from './support/agents.js';

scenarios(CLAUDE);
