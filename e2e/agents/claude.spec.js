import { expect } from '../support/liminal.js';
import { open, say, scenarios } from './scenarios.js';
import { CLAUDE, test } from './support/agents.js';
import { expectAnswered } from './support/answers.js';

scenarios(CLAUDE);

test('TC-2.2d: a question of Claude Code is a form whose answer reaches the model', async ({
  page,
  liminal,
  model,
}) => {
  const frame = await open(page, liminal, CLAUDE);
  const prompt = 'question Which way? | Left | Right';
  await say(page, prompt);
  const form = frame.getByRole('form', { name: /Which way/ });
  await form.getByRole('radio', { name: /Right/ }).check();
  await form.getByRole('button', { name: 'Submit' }).click();
  await expectAnswered(page, model, prompt);
  await expect(frame.locator('.row-assistant').last()).toContainText('Right');
  await expect(form).toHaveCount(0);
});
