import { scenarios } from './scenarios.js';
import { CODEX } from './support/agents.js';

scenarios(CODEX);
