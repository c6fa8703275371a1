// Behaviour of real agents outside the protocol, where it affects what is shown.
import { expect, test } from '../support/liminal.js';
import { openSession } from '../support/session.js';

/** @param {object} update */
const update = (update) => `update ${JSON.stringify(update)}`;
/** @param {object} patch */
const patch = (patch) => update({ sessionUpdate: 'tool_call_update', toolCallId: 't1', ...patch });

test('a failed command reported as completed shows its exit code', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const begin = { toolCallId: 't1', title: 'Terminal', kind: 'execute', status: 'pending', rawInput: {} };
  await send(
    [
      update({ sessionUpdate: 'tool_call', ...begin, content: [{ type: 'terminal', terminalId: 't1' }] }),
      patch({ title: 'make test', rawInput: { command: 'make test' } }),
      patch({ _meta: { terminal_output: { terminal_id: 't1', data: 'two tests failed\n' } } }),
      patch({ status: 'completed', content: [], _meta: { terminal_exit: { terminal_id: 't1', exit_code: 2 } } }),
    ].join('\n'),
  );
  const call = frame.locator('.tool-place');
  await expect(call.locator('summary').first()).toContainText('make test');
  await expect(call.locator('summary').first()).toContainText('exit code 2');
  await call.locator('summary').first().click();
  await expect(call).toContainText('two tests failed');
  await expect(call).toContainText('Failed with exit code 2');
});

test('an unannounced tool call that a cancel leaves running is shown as stopped', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await send(`${patch({ title: 'Look it up', kind: 'search' })}\nhang`);
  await expect(frame.locator('.tool-place')).toContainText('Look it up');
  await expect(frame.locator('.tool-place')).toContainText('running');
  await frame.getByRole('button', { name: 'Stop' }).click();
  await expect(frame.locator('.tool-place')).toContainText('failed');
  await expect(frame.locator('.tool-place')).toContainText('Stopped before it ended');
});

test("a provider's error is shown as its message, without the JSON", async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const said = { type: 'error', error: { type: 'invalid_request_error', message: 'no such model' } };
  await send(`say half\nfail 400 ${JSON.stringify(said)}`);
  await expect(frame.locator('.turn-said')).toHaveText('Failed: no such model');
});

test('models in the older form are chosen like the others', async ({ page, liminal }) => {
  liminal.agentStarts('old-models');
  const { frame, send } = await openSession(page, liminal);
  const model = frame.getByRole('combobox', { name: 'Model' });
  await model.selectOption('deep');
  await expect(model).toHaveValue('deep');
  await send('model');
  await expect(frame.locator('.row-assistant')).toContainText('deep');
});
