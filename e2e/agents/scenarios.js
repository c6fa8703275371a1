/** What must work with a real agent, whichever it is. What the model does is written in the prompts. */

import { addProject, begin, enter, newSession, sessionPage } from '../support/workspace.js';
import { test } from './support/agents.js';
import { expectAnswered } from './support/answers.js';

/**
 * @typedef {import('@playwright/test').Page} Page
 * @typedef {import('../support/liminal.js').Liminal} Liminal
 */

/**
 * A first session with the agent.
 * @param {Page} page @param {Liminal} liminal @param {import('./support/agents.js').Agent} agent
 */
async function open(page, liminal, agent) {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await newSession(page, 'app', agent.name);
  return sessionPage(page);
}

/** @param {import('./support/agents.js').Agent} agent @param {string} id  of the whole turn in the feature spec */
export function scenarios(agent, id) {
  test(`${id}: a session of ${agent.name} is made, and an answer is streamed into it`, async ({
    page,
    liminal,
    model,
  }) => {
    await open(page, liminal, agent);
    await begin(page, 'say Hello from the stand-in.');
    await expectAnswered(page, model, 'say Hello from the stand-in.');
  });
}
