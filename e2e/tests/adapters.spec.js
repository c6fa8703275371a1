// One turn with the updates that the adapters of Claude Code and Codex send, in the same order and with the same
// fields, but with texts of ours. Their other messages must not be shown and must not hide any of these. Where a list
// contains a file name, the scripted agent waits for that file.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import { addProject, begin, enter, newSession, sessionPage } from '../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** @param {string} kind @param {string} messageId @param {string[]} texts */
const words = (kind, messageId, ...texts) =>
  texts.map((text) => ({ sessionUpdate: kind, messageId, content: { type: 'text', text } }));

/** @param {string} home */
const claude = (home) => [
  ...words('agent_thought_chunk', 'msg_1', 'The tests come', ' first.'),
  // The thought and the answer share one message id.
  ...words('agent_message_chunk', 'msg_1', 'I will **run'),
  'speaks',
  ...words('agent_message_chunk', 'msg_1', ' them** and then `fix` it.'),
  {
    sessionUpdate: 'tool_call',
    toolCallId: 'toolu_1',
    name: 'Bash',
    title: 'Terminal',
    kind: 'execute',
    status: 'pending',
    rawInput: {},
    content: [{ type: 'terminal', terminalId: 'toolu_1' }],
    _meta: { claudeCode: { toolName: 'Bash' }, terminal_info: { terminal_id: 'toolu_1' } },
  },
  {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'toolu_1',
    title: 'cargo test',
    rawInput: { command: 'cargo test' },
  },
  'runs',
  { sessionUpdate: 'tool_call_update', toolCallId: 'toolu_1', _meta: { claudeCode: { toolResponse: { stdout: '' } } } },
  {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'toolu_1',
    _meta: { terminal_output: { terminal_id: 'toolu_1', data: '2 passed, 1 failed\n' } },
  },
  {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'toolu_1',
    status: 'failed',
    _meta: { terminal_exit: { terminal_id: 'toolu_1', exit_code: 101, signal: null } },
  },
  {
    sessionUpdate: 'tool_call',
    toolCallId: 'toolu_2',
    name: 'Edit',
    title: 'Edit',
    kind: 'edit',
    status: 'pending',
    rawInput: {},
    content: [],
    locations: [],
  },
  {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'toolu_2',
    title: 'Edit lib.rs',
    rawInput: { file_path: `${home}/app/lib.rs`, old_string: 'a - b' },
    locations: [{ path: `${home}/app/lib.rs` }],
  },
  {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'toolu_2',
    content: [{ type: 'diff', path: `${home}/app/lib.rs`, oldText: 'a - b', newText: 'a + b' }],
  },
  'edits',
  { sessionUpdate: 'tool_call_update', toolCallId: 'toolu_2', status: 'completed', rawOutput: 'updated' },
  ...words('agent_message_chunk', 'msg_2', 'Fixed: a sign was wrong.'),
  { sessionUpdate: 'usage_update', used: 50_000, size: 1_000_000, cost: { amount: 0.01, currency: 'USD' } },
  { sessionUpdate: 'something_new', content: [] },
];

/** @param {string} home */
const codex = (home) => [
  { sessionUpdate: 'session_info_update', _meta: { codex: { threadStatus: { type: 'active', activeFlags: [] } } } },
  ...words('agent_thought_chunk', 'rs_1', '\n\n', '**Where it is**'),
  ...words('agent_message_chunk', 'msg_1', 'I will **run'),
  'speaks',
  ...words('agent_message_chunk', 'msg_1', ' them** and then `fix` it.'),
  {
    sessionUpdate: 'tool_call',
    toolCallId: 'call_1',
    name: 'exec_command',
    title: 'cargo test',
    kind: 'execute',
    status: 'in_progress',
    rawInput: { command: 'cargo test', cwd: `${home}/app` },
    content: [{ type: 'terminal', terminalId: 'call_1' }],
    _meta: { terminal_info: { cwd: `${home}/app`, terminal_id: 'call_1' } },
  },
  'runs',
  // Output, exit code and end of the call in one update.
  {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'call_1',
    status: 'failed',
    _meta: {
      terminal_output: { terminal_id: 'call_1', data: '2 passed, 1 failed\n' },
      terminal_exit: { terminal_id: 'call_1', exit_code: 101, signal: null },
    },
  },
  {
    sessionUpdate: 'tool_call',
    toolCallId: 'call_2',
    title: 'Edit lib.rs',
    kind: 'edit',
    status: 'in_progress',
    content: [
      { type: 'diff', path: `${home}/app/lib.rs`, oldText: 'a - b\n', newText: 'a + b\n', _meta: { kind: 'update' } },
    ],
  },
  'edits',
  { sessionUpdate: 'tool_call_update', toolCallId: 'call_2', status: 'completed' },
  ...words('agent_message_chunk', 'msg_2', 'Fixed: a sign was wrong.'),
  { sessionUpdate: 'usage_update', used: 12_920, size: 258_400 },
  { sessionUpdate: 'session_info_update', _meta: { codex: { threadStatus: { type: 'idle' } } } },
];

for (const [id, agent, updates, thought] of /** @type {const} */ ([
  ['TC-2.2d', 'Claude Code', claude, 'The tests come first.'],
  ['TC-2.2e', 'Codex', codex, 'Where it is'],
])) {
  test(`${id}: a turn of ${agent} streams thought, calls, questions and answer`, async ({ page, liminal }) => {
    await enter(page, liminal);
    await addProject(page, liminal.folder('app'));
    await newSession(page, 'app', agent);
    const lines = updates(liminal.home).map((update) =>
      typeof update === 'string' ? `until ${join(liminal.home, update)}` : `update ${JSON.stringify(update)}`,
    );
    await begin(page, lines.join('\n'));
    const frame = sessionPage(page);
    const call = frame.locator('.tool-place');
    const [run, edit] = [call.filter({ hasText: 'cargo test' }), call.filter({ hasText: 'Edit lib.rs' })];
    const answers = frame.locator('.row-assistant');
    const working = frame.getByRole('button', { name: 'Stop' });

    await expect(answers).toHaveText(/I will \W*run$/);
    await expect(working).toBeVisible();
    await expect(call).toHaveCount(0);
    writeFileSync(join(liminal.home, 'speaks'), '');
    await expect(run).toContainText('running');
    await expect(answers).toContainText('I will run them and then fix it.');
    await expect(edit).toHaveCount(0);
    writeFileSync(join(liminal.home, 'runs'), '');
    await expect(edit).toContainText('running');
    await expect(run).toContainText('failed');
    await expect(answers).toHaveCount(1);
    await expect(working).toBeVisible();
    writeFileSync(join(liminal.home, 'edits'), '');
    await expect(frame.locator('.row-turn')).toHaveCount(1);
    await expect(working).toBeHidden();

    const shown = frame.locator('.row');
    await expect(shown.first()).toHaveClass(/row-user/);
    const thinking = frame.locator('.row-thinking');
    await expect(thinking).toHaveCount(1);
    await thinking.locator('summary').click();
    await expect(thinking).toContainText(thought);
    await expect(answers.first().locator('strong')).toHaveText('run them');
    await expect(answers.first().locator('code')).toHaveText('fix');
    await expect(answers.last()).toContainText('Fixed: a sign was wrong.');

    await expect(call).toHaveCount(2);
    await expect(run).toContainText('failed');
    await expect(run.locator('.terminal')).toHaveText(/2 passed, 1 failed/);
    await expect(run).toContainText('exit code 101');
    await expect(edit).toContainText('done');
    await edit.locator('summary').first().click();
    await expect(edit.locator('figcaption')).toHaveText('lib.rs+1−1');
    await expect(edit.locator('.removed mark')).toHaveText('-');
    await expect(edit.locator('.added mark')).toHaveText('+');
    await expect(frame.getByText('5 %')).toBeVisible();
  });
}
