import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import { entries, openSession, parts } from '../support/session.js';
import { violations } from '../support/workspace.js';

test('TC-3.1a: a sent message is shown before the server answers, once', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { said, answers, input } = parts(frame);
  liminal.pause();
  await send('say hello');
  await expect(said).toHaveText(/say hello/);
  await expect(said.getByRole('heading', { name: 'You' })).toBeAttached();
  await expect(input).toHaveValue('');
  expect(liminal.agentLog().filter((line) => line.startsWith('session/prompt'))).toEqual([]);
  await expect(answers).toHaveCount(0);
  liminal.resume();
  await expect(answers).toHaveText(/^Claude Codehello/);
  await expect(said).toHaveCount(1);
  await expect(said).toHaveText(/say hello/);
});

test('TC-3.1b: an empty message cannot be sent', async ({ page, liminal }) => {
  const { frame } = await openSession(page, liminal);
  const { input, send, said } = parts(frame);
  await expect(input).toHaveAttribute('placeholder', 'Message Claude Code');
  await expect(send).toBeDisabled();
  await input.fill('  \n ');
  await expect(send).toBeDisabled();
  await input.press('Enter');
  await expect(said).toHaveCount(0);
  await input.fill('x');
  await expect(send).toBeEnabled();
});

test('TC-3.2a: an answer grows while it streams', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const next = `${liminal.home}/next`;
  await send(`say first\nuntil ${next}\nsay  second\nhang`);
  await expect(parts(frame).answers).toHaveText(/first$/);
  writeFileSync(next, '');
  await expect(parts(frame).answers).toHaveText(/first second$/);
  await expect(parts(frame).stop).toBeVisible();
});

test("TC-3.2b: an answer's markdown is formatted and its code highlighted", async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const text = [
    '# Plan',
    '## Steps',
    '1. read `main.rs`',
    '2. write\n   - a test\n   - the **fix**',
    'See [the book](https://doc.rust-lang.org/book/).',
    '| file | lines |\n|---|--:|\n| main.rs | 12 |',
    '```rust\nfn main() {\n    let a = "one"; // first\n}\n```',
    'Done.',
  ].join('\n\n');
  // Split at arbitrary places, as chunks from a model are.
  const pieces = text.match(/.{1,7}/gs) ?? [];
  const chunks = pieces.map((piece) => ({
    sessionUpdate: 'agent_message_chunk',
    content: { type: 'text', text: piece },
  }));
  await send(chunks.map((chunk) => `update ${JSON.stringify(chunk)}`).join('\n'));
  await expect(parts(frame).ends).toHaveCount(1);
  const answer = frame.locator('.answer');
  await expect(answer.getByRole('heading', { name: 'Plan', exact: true })).toBeVisible();
  await expect(answer.getByRole('heading', { name: 'Steps', exact: true })).toBeVisible();
  const steps = answer.locator('ol').first();
  await expect(steps.locator('> li')).toHaveText([/^\s*read main\.rs/, /^\s*write/]);
  await expect(steps.locator('code')).toHaveText('main.rs');
  const nested = steps.locator('ul > li');
  await expect(nested).toHaveText(['a test', 'the fix']);
  await expect(nested.locator('strong')).toHaveText('fix');
  const [outer, inner, edge] = await Promise.all(
    [steps.locator('> li').first(), nested.first(), answer.getByText('Done.')].map((one) => one.boundingBox()),
  );
  expect(outer?.x).toBeGreaterThan(edge?.x ?? Infinity);
  expect(inner?.x).toBeGreaterThan(outer?.x ?? Infinity);
  await expect(answer.getByRole('link', { name: 'the book' })).toHaveAttribute(
    'href',
    'https://doc.rust-lang.org/book/',
  );
  await expect(answer.getByRole('columnheader')).toHaveText(['file', 'lines']);
  await expect(answer.getByRole('cell')).toHaveText(['main.rs', '12']);
  const code = answer.locator('figure pre');
  await expect(code).toHaveText('fn main() {\n    let a = "one"; // first\n}');
  await expect(code.locator('.k')).toHaveText(['fn', 'let']);
  await expect(code.locator('.s')).toHaveText('"one"');
  await expect(code.locator('.c')).toHaveText('// first');
  const colours = await code.evaluate((pre) =>
    [pre, ...['.k', '.s', '.c'].map((token) => pre.querySelector(token))].map(
      (one) => one && getComputedStyle(one).color,
    ),
  );
  expect(new Set(colours).size).toBe(4);
});

test('TC-3.3a: a running tool call shows its name and state', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await send('tool t1 read Read `src/main.rs`\nhang');
  await expect(parts(frame).calls).toContainText('Read src/main.rs');
  await expect(parts(frame).calls.locator('code')).toHaveText('src/main.rs');
  await expect(parts(frame).calls).toContainText('running');
});

test('TC-3.3b: a finished tool call is collapsed, marked as done, and opens', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await send('tool t1 read Read src/main.rs\ntool-done t1 fn main() {}');
  const { calls, ends } = parts(frame);
  await expect(ends).toHaveCount(1);
  await expect(calls).toContainText('done');
  await expect(frame.getByText('fn main() {}', { exact: true })).toBeHidden();
  await calls.locator('summary').first().click();
  await expect(frame.getByText('fn main() {}', { exact: true })).toBeVisible();
});

test('TC-3.3c: a failed tool call shows its error', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await send('tool t1 execute Run tests\ntool-fail t1 no such file');
  await expect(parts(frame).calls).toContainText('failed');
  await expect(frame.getByText('no such file', { exact: true })).toBeVisible();
  const red = await frame.locator('html').evaluate((html) => {
    const probe = html.querySelector('body')?.appendChild(document.createElement('i'));
    if (!probe) return '';
    probe.style.color = 'var(--red)';
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  });
  await expect(parts(frame).calls.locator('.tool-state')).toHaveCSS('color', red);
});

test('a tool call shows its whole title, and its output at the left edge', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const command = `echo ${'very '.repeat(60)}long`;
  const call = { sessionUpdate: 'tool_call', toolCallId: 't1', title: 'Run the tests of all crates', kind: 'execute' };
  const terminal = [{ type: 'terminal', terminalId: 't1' }];
  await send(
    [
      `update ${JSON.stringify({ ...call, status: 'failed', rawInput: { command }, content: terminal })}`,
      'say done',
    ].join('\n'),
  );
  const place = frame.locator('.tool-place');
  await expect(place.locator('.tool-detail')).toContainText('echo very');
  const isCut = await place.locator('.tool-name').evaluate((name) => name.scrollWidth > name.clientWidth);
  expect(isCut).toBe(false);
  const left = async (/** @type {string} */ selector) => (await place.locator(selector).first().boundingBox())?.x;
  expect(await left('.body')).toBe(await left('summary'));
});

test('three finished tool calls collapse into one line that opens', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const call = /** @param {number} n @param {string} kind */ (n, kind) =>
    `tool t${n} ${kind} Call ${n}\ntool-done t${n} ok`;
  await send([call(1, 'read'), call(2, 'read'), call(3, 'edit')].join('\n'));
  await expect(frame.getByText('2 reads, 1 edit')).toBeVisible();
  await expect(frame.getByText('Call 1', { exact: true })).toBeHidden();
  await frame.getByText('2 reads, 1 edit').click();
  await expect(frame.getByText('Call 3', { exact: true })).toBeVisible();
});

test('TC-3.4a: thoughts are muted, open while streaming and collapsed afterwards', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const seen = join(liminal.home, 'seen');
  await send(`think weighing it\nsleep 1500\nuntil ${seen}\nsay decided\nhang`);
  await expect(frame.getByText('Thinking…')).toBeVisible();
  await expect(frame.getByText('weighing it', { exact: true })).toBeVisible();
  writeFileSync(seen, '');
  await expect(frame.getByText(/^Thought for \d+ s/)).toBeVisible();
  await expect(frame.getByText('weighing it', { exact: true })).toBeHidden();
  await frame.getByText(/^Thought/).click();
  await expect(frame.getByText('weighing it', { exact: true })).toBeVisible();
  const colour = /** @param {string} selector */ (selector) =>
    frame.locator(selector).evaluate((one) => getComputedStyle(one).color);
  expect(await colour('.thinking .prose')).not.toBe(await colour('.answer .prose'));
});

test('TC-3.5a: the input stays at the bottom with any history and accepts text', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { input, ends } = parts(frame);
  const bottom = async () => {
    const box = await input.boundingBox();
    return box ? box.y + box.height : 0;
  };
  await expect(input).toBeVisible();
  expect(await bottom()).toBeGreaterThan(800);
  await send(entries(30));
  await expect(ends).toHaveCount(1);
  expect(await bottom()).toBeGreaterThan(800);
  await input.fill('one\ntwo\nthree');
  expect((await input.boundingBox())?.height).toBeGreaterThan(60);
  await input.fill('line\n'.repeat(100));
  expect((await input.boundingBox())?.height).toBeLessThanOrEqual(900 * 0.4 + 1);
});

test('TC-3.5b: during a turn Send is disabled and the page shows progress', async ({ page, liminal }) => {
  const { frame, send: say } = await openSession(page, liminal);
  const { input, send, working, queue } = parts(frame);
  const go = `${liminal.home}/go`;
  await say(`until ${go}`);
  await expect(working).toContainText(/Working 0:0\d/);
  await input.fill('typing goes on');
  await expect(input).toHaveValue('typing goes on');
  await expect(send).toBeDisabled();
  await input.press('Enter');
  await expect(input).toHaveValue('typing goes on');
  await expect(queue).toBeEnabled();
  writeFileSync(go, '');
  await expect(working).toBeHidden();
  await expect(send).toBeEnabled();
});

test('TC-3.7a, TC-3.7b, TC-3.7c: Stop ends the answer, keeps its text and is hidden', async ({ page, liminal }) => {
  const { frame, send: say } = await openSession(page, liminal);
  const { stop, send, input, ends, answers } = parts(frame);
  await expect(stop).toBeHidden();
  const words = Array.from({ length: 200 }, (_, number) => `w${number}.`);
  await say(words.map((word) => `say ${word}\nsleep 50`).join('\n'));
  await expect(answers).toContainText('w5.');
  await expect(stop).toBeVisible();
  const shown = (await answers.textContent())?.match(/w\d+\./g) ?? [];
  await stop.click();
  await expect(ends).toContainText('Stopped');
  await expect(stop).toBeHidden();
  expect(liminal.agentLog().filter((line) => line.startsWith('session/cancel'))).toHaveLength(1);
  const kept = (await answers.textContent())?.match(/w\d+\./g) ?? [];
  expect(kept).toEqual(words.slice(0, kept.length));
  expect(kept.length).toBeGreaterThanOrEqual(shown.length);
  expect(kept.length).toBeLessThan(words.length);
  await input.fill('say next');
  await expect(send).toBeEnabled();
  await send.click();
  await expect(ends).toHaveCount(2);
  await expect(answers.last()).toContainText('next');
  // Text that was still on its way would appear here or earlier.
  await expect(answers.last()).not.toContainText(/w\d/);
  expect((await answers.first().textContent())?.match(/w\d+\./g)).toEqual(kept);
  await expect(stop).toBeHidden();
});

test('Escape stops the turn from the input and from anywhere else', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { input, scroller, ends, stop } = parts(frame);
  await send('hang');
  await expect(stop).toBeVisible();
  await input.press('Escape');
  await expect(ends).toHaveCount(1);
  await send('hang');
  await expect(stop).toBeVisible();
  await scroller.press('Escape');
  await expect(ends).toHaveCount(2);
});

test('Enter sends, Shift+Enter breaks the line, an IME keeps its Enter', async ({ page, liminal }) => {
  const { frame } = await openSession(page, liminal);
  const { input, said } = parts(frame);
  await input.fill('say one');
  await input.press('Shift+Enter');
  await input.pressSequentially('say two');
  await input.evaluate((one) => {
    one.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }),
    );
  });
  await expect(said).toHaveCount(0);
  await input.press('Enter');
  await expect(said).toHaveCount(1);
  await expect(said.locator('.plain')).toHaveText('say one\nsay two');
});

test('a queued message is shown, edited, removed, and sent after the turn', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { input, queue, said, stop } = parts(frame);
  const goOn = join(liminal.home, 'go-on');
  await send(`until ${goOn}`);
  await expect(stop).toBeVisible();
  await input.fill('say second');
  await input.press('Alt+Enter');
  await input.fill('say third');
  await queue.click();
  const waiting = frame.getByRole('region', { name: 'Queue' });
  const texts = waiting.getByRole('textbox', { name: 'Queued message' });
  await expect(texts).toHaveCount(2);
  await expect(texts.first()).toHaveValue('say second');
  await texts.first().fill('say changed');
  await texts.first().press('Enter');
  await waiting.getByRole('button', { name: 'Remove from the queue' }).last().click();
  await expect(texts).toHaveCount(1);
  writeFileSync(goOn, '');
  await expect(waiting).toBeHidden();
  await expect(said).toHaveCount(2);
  await expect(said.last()).toContainText('say changed');
});

test('queue of a stopped turn is paused until "Send now" is pressed', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { input, said, answers, stop } = parts(frame);
  const waiting = frame.getByRole('region', { name: 'Queue' });
  const sendNow = waiting.getByRole('button', { name: 'Send now' });
  await send('hang');
  await expect(stop).toBeVisible();
  for (const text of ['say second', 'say third']) {
    await input.fill(text);
    await input.press('Alt+Enter');
  }
  await expect(waiting).toContainText('2 messages queued');
  await expect(sendNow).toBeHidden();
  await input.press('Escape');
  await expect(stop).toBeHidden();
  await expect(waiting).toContainText('Paused — 2 messages waiting');
  await send('say new');
  await expect(answers.last()).toContainText('new');
  await expect(stop).toBeHidden();
  await expect(waiting).toContainText('Paused — 2 messages waiting');
  await expect(said).toHaveCount(2);
  await sendNow.click();
  await expect(waiting).toBeHidden();
  await expect(said).toHaveText([/hang/, /say new/, /say second/, /say third/]);
  await expect(answers.last()).toContainText('third');
});

test('slash commands are suggested, chosen by keyboard, closed by Escape', async ({ page, liminal }) => {
  const { frame } = await openSession(page, liminal);
  const { input } = parts(frame);
  const offered = frame.getByRole('option', { name: /dance/ });
  await input.pressSequentially('/d');
  await expect(offered).toBeVisible();
  await expect(input).toHaveAttribute('aria-activedescendant', 'completion-0');
  await input.press('Escape');
  await expect(offered).toBeHidden();
  await input.pressSequentially('a');
  await expect(offered).toBeVisible();
  await input.press('Tab');
  await expect(input).toHaveValue('/dance ');
  // A command that is typed in full is sent, even while it is still suggested.
  await input.fill('');
  await input.pressSequentially('/dance');
  await expect(offered).toBeVisible();
  await input.press('Enter');
  await expect(frame.locator('.said')).toContainText('/dance');
  await expect(input).toHaveValue('');
});

test('Up in an empty input recalls the last message', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { input, ends } = parts(frame);
  await send('say one');
  await expect(ends).toHaveCount(1);
  await send('say two');
  await expect(ends).toHaveCount(2);
  await input.press('ArrowUp');
  await input.press('ArrowUp');
  await expect(input).toHaveValue('say one');
  await input.press('ArrowDown');
  await input.press('ArrowDown');
  await expect(input).toHaveValue('');
});

test('model, mode and approval policy are shown and can be changed', async ({ page, liminal }) => {
  const { frame } = await openSession(page, liminal);
  for (const [name, from, to] of [
    ['Model', 'fast', 'deep'],
    ['Mode', 'code', 'plan'],
    ['Permissions', 'allow', 'ask'],
  ]) {
    const select = frame.getByRole('combobox', { name, exact: true });
    await expect(select).toHaveValue(from);
    await select.selectOption(to);
    await expect(select).toHaveValue(to);
  }
});

test('a permission request at its tool call is answered by button or key', async ({ page, liminal }) => {
  liminal.env.LIMINAL_PERMISSIONS = 'ask';
  await liminal.stop();
  await liminal.start();
  const { frame, send } = await openSession(page, liminal);
  const { answers, scroller, ends, input } = parts(frame);
  await send('permission t1 Remove target');
  const question = frame.getByRole('region', { name: 'Claude Code asks' });
  await expect(question).toContainText('Remove target');
  await expect(question).toContainText('would choose “Yes”');
  await expect(frame.getByRole('status').filter({ hasText: 'Claude Code asks: Remove target' })).toBeAttached();
  expect(await violations(page)).toEqual([]);
  await question.getByRole('button', { name: 'Yes' }).click();
  await expect(question).toBeHidden();
  await expect(answers).toContainText('id-allow_once');

  await send('permission t2 Remove src');
  await expect(question).toBeVisible();
  await scroller.press('3');
  await expect(answers.last()).toContainText('id-reject_once');
  await expect(ends).toHaveCount(2);

  await send('permission t3 Remove all');
  await expect(question).toBeVisible();
  await input.fill('1 is not an answer while I write');
  await input.press('1');
  // With Alt, a digit still selects a tab.
  await input.press('Alt+1');
  await expect(question).toBeVisible();
  await input.press('Alt+Shift+Digit1');
  await expect(answers.last()).toContainText('id-allow_always');
});

test('after answering by mouse the input has focus and the answer stays', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { input, working, answers, calls } = parts(frame);
  await frame.getByRole('combobox', { name: 'Permissions' }).selectOption('ask');
  await send('permission t1 Remove dist');
  await expect(working).toContainText('Waiting for your answer');
  await frame.locator('.question').getByRole('button').first().click();
  await expect(answers).toContainText('id-allow_always');
  await expect(input).toBeFocused();
  await expect(calls).toContainText('You: Always');
  await page.reload();
  await expect(calls).toContainText('You: Always');
});

test('Enter during a turn sends nothing and shows how to queue', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { input, working, said } = parts(frame);
  await send('hang');
  await expect(working).toContainText('Working');
  await input.fill('say next');
  await input.press('Enter');
  await expect(working.getByRole('status')).toHaveText('Alt+Enter queues the message, Escape stops the turn.');
  await expect(input).toHaveValue('say next');
  await expect(said).toHaveCount(1);
  await input.press('Alt+Enter');
  await expect(working.getByRole('status')).toBeEmpty();
});

test('a long user message is collapsed and opens', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { said, ends } = parts(frame);
  await send(Array.from({ length: 40 }, (_, at) => `think thought ${at}`).join('\n'));
  await expect(ends).toHaveCount(1);
  const text = said.locator('.plain');
  const height = () => text.evaluate((one) => one.clientHeight);
  const folded = await height();
  await said.getByRole('button', { name: 'Show all' }).click();
  expect(await height()).toBeGreaterThan(folded * 2);
  await said.getByRole('button', { name: 'Show less' }).click();
  expect(await height()).toBe(folded);
});

test('a failed command is marked, terminal colours show in any output', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { calls, ends } = parts(frame);
  const done = { sessionUpdate: 'tool_call_update', toolCallId: 't2', status: 'completed' };
  const text = { type: 'text', text: '\u001b[32mgreen\u001b[0m and plain' };
  const update = { ...done, content: [{ type: 'content', content: text }] };
  await send(`terminal t1 exit 3\ntool t2 execute Build\nupdate ${JSON.stringify(update)}`);
  await expect(ends).toHaveCount(1);
  const failed = calls.filter({ hasText: 'exit code 3' }).locator('.tool-state').first();
  await expect(failed).toHaveClass(/error/);
  const build = calls.filter({ hasText: 'Build' }).first();
  await build.locator('summary').first().click();
  await expect(build.locator('.output .fg-green')).toHaveText('green');
  await expect(build.locator('.unseen')).toHaveCount(0);
});

test('diffs, plans and usage each have their own view', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const path = `${liminal.home}/app/src/lib.rs`;
  const content = [{ type: 'diff', path, oldText: 'let a = 1;\nb();\n', newText: 'let a = 2;\nb();\nc();\n' }];
  const update = JSON.stringify({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'completed', content });
  await send(`tool t edit Edit lib.rs\nupdate ${update}\nplan One|Two\nusage 50000 200000`);
  await expect(frame.getByRole('region', { name: 'Plan' })).toContainText('0 of 2 done');
  await expect(frame.getByText('25 %')).toBeVisible();
  await frame.getByText('Edit lib.rs', { exact: true }).click();
  const diff = frame.locator('.diff');
  await expect(diff.locator('figcaption')).toHaveText('src/lib.rs+2−1');
  await expect(diff.locator('.removed mark')).toHaveText('1');
  await expect(diff.locator('.added mark')).toHaveText('2');
  // Both sides are highlighted in the file's language, also within a changed word.
  await expect(diff.locator('.removed .diff-text')).toHaveText('let a = 1;');
  for (const side of ['removed', 'added']) {
    await expect(diff.locator(`.${side} .k`).first()).toHaveText('let');
    await expect(diff.locator(`.${side} .n mark`)).toHaveCount(1);
  }
});

test('a diff without server highlighting is shown as plain text', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const content = [{ type: 'diff', path: 'a.rs', oldText: '', newText: `${'let a = 1;\n'.repeat(5000)}` }];
  const update = JSON.stringify({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'completed', content });
  await send(`tool t edit Edit a.rs\nupdate ${update}`);
  await frame.getByText('Edit a.rs', { exact: true }).click();
  const line = frame.locator('.diff-line').first();
  await expect(line).toContainText('let a = 1;');
  await expect(line.locator('.k')).toHaveCount(0);
});

test('TC-5.2a, TC-5.2b, TC-5.2d: a dead agent is shown and restarted', async ({ page, liminal }) => {
  const { frame, send: say } = await openSession(page, liminal);
  const { status, send, input, ends, answers } = parts(frame);
  await expect(status).toContainText('connected');
  await expect(status).toHaveAttribute('data-status', 'connected');
  // The server restarts a lost agent within a second, so the next start is made to fail until the user requests a
  // restart.
  liminal.agentStarts('exit-start');
  await say('say before\ncrash 1');
  await expect(ends.last()).toContainText('Interrupted');
  await expect(status).toContainText('disconnected');
  await input.fill('kept');
  await expect(send).toBeDisabled();
  expect(await violations(page)).toEqual([]);
  liminal.agentStarts();
  await frame.getByRole('button', { name: 'Reconnect' }).click();
  await expect(status).toHaveText('connected');
  await expect(input).toHaveValue('kept');
  await expect(send).toBeEnabled();
  await say('say after');
  await expect(answers.last()).toContainText('after');
});

test('a server restart keeps the page readable and sends a message once', async ({ page, liminal }) => {
  const { frame, send: say } = await openSession(page, liminal);
  const { status, send, input, said, answers, ends } = parts(frame);
  await say('say before');
  await expect(ends).toHaveCount(1);
  await liminal.stop();
  await expect(status).toContainText('server unreachable');
  await expect(parts(frame).working).toHaveText(/The server is not reachable/);
  await expect(answers).toContainText('before');
  await input.fill('say after');
  await expect(send).toBeDisabled();
  expect(await violations(page)).toEqual([]);
  await liminal.start();
  await expect(send).toBeEnabled();
  await send.click();
  await expect(answers).toHaveCount(2);
  await expect(said).toHaveCount(2);
});

for (const width of [1440, 390]) {
  test(`axe finds no violations in a conversation, ${width} pixels wide`, async ({ page, liminal }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const { frame, send } = await openSession(page, liminal);
    await page.setViewportSize({ width, height: 844 });
    const { ends, stop, input } = parts(frame);
    await expect(frame.getByText('A new session with')).toBeVisible();
    expect(await violations(page)).toEqual([]);
    await send(
      'think hm\nsay text\ntool a read Read\ntool-done a x\ntool b execute Run\ntool-fail b bad\nplan A|B\nusage 3 4\ndiff a f.rs text\ntool c edit E\ntool-done c y',
    );
    await expect(ends).toHaveCount(1);
    for (const summary of await frame.locator('summary:visible').all()) await summary.click();
    expect(await violations(page)).toEqual([]);
    // Every highlight colour on both backgrounds, also within a search result.
    const oldText = '// old\nuse a::B;\nfn go(x: u8) -> B { let s = "a"; s.len() + 1 }\n';
    const content = [{ type: 'diff', path: 'a.rs', oldText, newText: oldText.replace('old', 'new').replace('1', '2') }];
    const update = { sessionUpdate: 'tool_call_update', toolCallId: 'd', status: 'completed', content };
    await send(`tool d edit Colours\nupdate ${JSON.stringify(update)}`);
    await frame.getByText('Colours', { exact: true }).click();
    await expect(frame.locator('.diff-line .k').first()).toBeVisible();
    await input.press('Control+f');
    await frame.getByRole('searchbox').fill('len');
    await expect(frame.locator('.find-count')).toHaveText(/of/);
    expect(await violations(page)).toEqual([]);
    await frame.getByRole('searchbox').press('Escape');
    await send('hang');
    await expect(stop).toBeVisible();
    await input.fill('later');
    await input.press('Alt+Enter');
    await input.fill('/');
    await expect(frame.getByRole('option', { name: /dance/ })).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });
}
