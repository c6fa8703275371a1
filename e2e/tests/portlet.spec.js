/** A session's page without the shell: how it shows messages, and from which windows it accepts them. */

import { createServer } from 'node:http';
import { expect, test } from '../support/liminal.js';
import { openStandIn } from '../support/session.js';

const sessionId = 'claude-code:made-up';
/** @type {import('../../web/types/wire.js').SessionInfo} */
const INFO = {
  state: 'idle',
  attachment: 'attached',
  policy: 'allow',
  queue: [],
  queueHeld: false,
  permissions: [],
  questions: [],
  commands: [],
  options: [],
  takesImages: true,
};
/**
 * @param {import('../../web/types/wire.js').ChatEntry[]} entries
 * @param {Partial<Extract<import('../../web/types/wire.js').ServerMessage, { type: 'session:history' }>>} [more]
 * @returns {import('../../web/types/bridge.js').ToPortlet}
 */
const history = (entries, more) => ({
  type: 'server',
  message: {
    type: 'session:history',
    sessionId,
    entries,
    first: 0,
    total: entries.length,
    seq: 1000,
    bootId: 'made-up',
    info: INFO,
    ...more,
  },
});

test('TC-3.2b: server-rendered markup is shown part by part, its code can be copied', async ({ page, liminal }) => {
  const { frame, hand, said } = await openStandIn(page, liminal);
  const code =
    '<figure class="code"><figcaption><button type="button" class="copy">Copy</button></figcaption><pre>let a = 1;</pre></figure>';
  const finished = [{ html: `<h2>Plan</h2>${code}<ul><li>one</li></ul>` }];
  const tail = [{ depth: 1, html: '<li>tw</li>' }];
  const entry = { type: /** @type {const} */ ('assistant'), entryId: 'e1', content: '## Plan', timestamp: '' };
  await hand(history([entry], { html: { e1: { finished, tail } } }));
  const answer = frame.locator('.answer');
  await expect(answer.getByRole('heading', { name: 'Plan' })).toBeVisible();
  await expect(answer.getByRole('listitem')).toHaveText(['one', 'tw']);
  const html = { finished: [{ depth: 1, html: '<li>two</li>' }], tail: [{ html: '<p>open</p>' }] };
  const chunk = {
    type: /** @type {const} */ ('session:chunk'),
    sessionId,
    entryId: 'e1',
    content: ' on',
    html,
    seq: 1001,
  };
  await hand({ type: 'server', message: chunk });
  await expect(answer.getByRole('listitem')).toHaveText(['one', 'two']);
  await expect(answer.locator('p')).toHaveText(['open']);
  await answer.getByRole('button', { name: 'Copy', exact: true }).click();
  await answer.getByRole('button', { name: 'Copy answer' }).click();
  const copied = (await said()).filter(({ type }) => type === 'copy');
  expect(copied).toEqual([
    { type: 'copy', text: 'let a = 1;' },
    { type: 'copy', text: '## Plan on' },
  ]);
});

test('a link is opened by the shell, and no markup runs', async ({ page, liminal }) => {
  const { frame, hand, said } = await openStandIn(page, liminal);
  const hostile =
    '<p><a href="https://a.example/">there</a></p><img src="data:,x" onerror="document.title = \'owned\'"><script>document.title = "owned"</script>';
  const entry = { type: /** @type {const} */ ('assistant'), entryId: 'e1', content: 'x', timestamp: '' };
  /** @type {string[]} */
  const blocked = [];
  page.removeAllListeners('console');
  page.on('console', (message) => blocked.push(message.text()));
  await hand(history([entry], { html: { e1: { finished: [{ html: hostile }] } } }));
  await frame.getByRole('link', { name: 'there' }).click();
  await expect
    .poll(async () => (await said()).filter(({ type }) => type === 'open-link'))
    .toEqual([{ type: 'open-link', href: 'https://a.example/' }]);
  expect(await frame.locator(':root').evaluate(() => document.title)).not.toBe('owned');
  await expect.poll(() => blocked.some((text) => text.includes('inline event handler'))).toBe(true);
});

test('command output is coloured, live and limited in length', async ({ page, liminal }) => {
  const { frame, hand } = await openStandIn(page, liminal);
  const content = [{ type: /** @type {const} */ ('terminal'), terminalId: 'x', output: '\u001b[32mok\u001b[0m 1\n' }];
  /** @type {import('../../web/types/wire.js').ChatEntry} */
  const entry = {
    type: 'tool-call',
    entryId: 'e1',
    toolCallId: 't',
    name: 'make',
    kind: 'execute',
    status: 'running',
    content,
  };
  const turn = { startedAt: new Date().toISOString(), phase: /** @type {const} */ ('working') };
  await hand(history([entry], { info: { ...INFO, turn } }));
  const screen = frame.locator('.terminal');
  await expect(screen).toHaveText('ok 1');
  await expect(screen.locator('.fg-green')).toHaveText('ok');
  const more = Array.from({ length: 30 }, (_, line) => `line ${line}\n`).join('');
  await hand({
    type: 'server',
    message: {
      type: 'session:chunk',
      sessionId,
      entryId: 'e1',
      terminalId: 'x',
      content: `${more}50 %\r100 %`,
      seq: 1001,
    },
  });
  await expect(screen).toContainText('100 %');
  await expect(screen.locator('.terminal-line')).toHaveCount(20);
  await frame.getByRole('button', { name: 'Show all 32 lines' }).click();
  await expect(screen.locator('.terminal-line')).toHaveCount(32);
});

test("an agent's picture is shown, one of an unsafe type is not", async ({ page, liminal }) => {
  const { frame, hand } = await openStandIn(page, liminal);
  const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  /** @param {string} entryId @param {string} mimeType @returns {import('../../web/types/wire.js').ChatEntry} */
  const media = (entryId, mimeType) => ({
    type: 'media',
    entryId,
    author: 'assistant',
    timestamp: '',
    block: { type: 'image', mimeType, data },
  });
  await hand(history([media('e1', 'image/png'), media('e2', 'image/svg+xml')]));
  const picture = frame.getByRole('img', { name: 'Picture from the agent' });
  await expect(picture).toHaveCount(1);
  await expect.poll(() => picture.evaluate((one) => /** @type {HTMLImageElement} */ (one).naturalWidth)).toBe(1);
  await expect(frame.getByText('Cannot be shown: image/svg+xml')).toBeVisible();
});

test('TC-5.2c, TC-5.4a: starting and reconnecting are shown, and sending is disabled', async ({ page, liminal }) => {
  const { frame, hand } = await openStandIn(page, liminal);
  const status = frame.locator('.agent-status');
  const send = frame.getByRole('button', { name: 'Send', exact: true });
  await frame.getByRole('textbox', { name: 'Message', exact: true }).fill('text');
  await expect(send).toBeEnabled();
  await hand({ type: 'agent', status: 'reconnecting' });
  await expect(status).toHaveText('reconnecting');
  await expect(send).toBeDisabled();
  await hand({ type: 'agent', status: 'starting' });
  await expect(status).toHaveText('starting');
  await expect(frame.locator('#working')).toContainText('Starting Claude Code…');
  await hand({ type: 'agent', status: 'disconnected', reason: 'It ended with exit code 3.' });
  await expect(frame.getByText('It ended with exit code 3.')).toBeVisible();
  await hand({ type: 'agent', status: 'connected' });
  await expect(frame.locator('#working')).toBeHidden();
  await expect(send).toBeEnabled();
});

test('a refused message keeps its error and is retried under the same id', async ({ page, liminal }) => {
  const { frame, refuse, said, send } = await openStandIn(page, liminal);
  await refuse('A hundred messages are waiting already.');
  await send('say fine');
  const turn = frame.locator('.row-user');
  await expect(turn).toContainText('A hundred messages are waiting already.');
  await turn.getByRole('button', { name: 'Retry' }).click();
  await expect(frame.locator('.row-assistant')).toContainText('fine');
  await expect(turn).toHaveCount(1);
  await expect(turn.getByRole('button', { name: 'Retry' })).toBeHidden();
  const ids = (await said()).flatMap((one) => (one.type === 'request' ? [one.requestId] : []));
  expect(ids).toHaveLength(2);
  expect(ids[0]).toBe(ids[1]);

  await refuse('Not now.');
  await send('say more');
  await frame.getByRole('button', { name: 'Discard' }).click();
  await expect(turn).toHaveCount(1);
  await expect(frame.getByRole('textbox', { name: 'Message', exact: true })).toHaveValue('say more');
});

test("a session's page follows the theme of the shell", async ({ page, liminal }) => {
  await page.emulateMedia({ colorScheme: 'light' });
  const { frame, hand } = await openStandIn(page, liminal);
  const ground = () => frame.locator('body').evaluate((one) => getComputedStyle(one).backgroundColor);
  const light = await ground();
  await hand({ type: 'theme', theme: 'dark' });
  await expect.poll(ground).toBe('rgb(26, 27, 38)');
  await hand({ type: 'theme', theme: null });
  await expect.poll(ground).toBe(light);
});

test("only the embedding window can hand a session's page its port, once", async ({ page, context, liminal }) => {
  await page.goto(liminal.url);
  await expect(page.locator('#connection')).toContainText('Server connected');
  await page.goto(`${liminal.origin}/health`);
  // Two session pages without a port, so that the first sender could win.
  await page.evaluate(async () => {
    for (const name of ['victim', 'sibling']) {
      const frame = document.createElement('iframe');
      frame.setAttribute('sandbox', 'allow-scripts');
      frame.name = name;
      frame.src = '/portlet.html';
      const ready = new Promise((resolve) =>
        addEventListener('message', ({ data, source }) => {
          if (data?.type === 'portlet:ready' && source === frame.contentWindow) resolve(true);
        }),
      );
      document.body.append(frame);
      await ready;
    }
  });
  const victim = page.frame('victim');
  const sibling = page.frame('sibling');
  if (!victim || !sibling) throw new Error('the frames are missing');
  const title = () => victim.evaluate(() => document.querySelector('.session-title')?.textContent ?? '');
  /**
   * A script that takes over the victim's window. It is text because the frames evaluate it.
   * @param {string} target
   * @param {string} name
   */
  const attack = (target, name) => `{
    const { port1, port2 } = new MessageChannel();
    const agent = { cliType: 'x', name: 'X', badge: 'X', found: true, status: 'connected' };
    const session = { id: 'x:1', title: ${JSON.stringify(name)} };
    port1.postMessage({ type: 'init', session, agent, agents: [], projectName: 'p', projectPath: '/p', draft: '', place: null });
    ${target}.postMessage({ type: 'portlet:port' }, '*', [port2]);
    ${target}.postMessage({ type: 'title', title: ${JSON.stringify(name)} }, '*');
  }`;
  await sibling.evaluate(attack("window.parent.frames['victim']", 'from a sibling'));
  await sibling.evaluate(() => document.body.append(document.createElement('iframe')));
  const [nested] = sibling.childFrames();
  await nested.evaluate(attack("window.top.frames['victim']", 'from a nested frame'));
  const [popup] = await Promise.all([context.waitForEvent('page'), page.evaluate(() => void window.open('/health'))]);
  await popup.waitForLoadState();
  await popup.evaluate(attack("window.opener.frames['victim']", 'from a popup'));
  await victim.evaluate(attack('window', 'from itself'));
  await page.evaluate("frames['victim'].postMessage({ type: 'portlet:port' }, '*')");
  // The legitimate message is sent last: when it has arrived, all earlier ones have been handled.
  await page.evaluate(attack("frames['victim']", 'from the shell'));
  await expect.poll(title).toBe('from the shell');
  await page.evaluate(attack("frames['victim']", 'once more'));
  await sibling.evaluate(attack("window.parent.frames['victim']", 'and again'));
  await victim.evaluate(() => new Promise((resolve) => setTimeout(resolve)));
  expect(await title()).toBe('from the shell');
});

test("a session's page refuses to be framed by another origin", async ({ page, liminal }) => {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(`<iframe name="held" src="${liminal.origin}/portlet.html"></iframe>`);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(true)));
  const address = server.address();
  page.removeAllListeners('console');
  const refused = page.waitForEvent('console', (message) => message.text().includes('frame-ancestors'));
  await page.goto(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`);
  await refused;
  server.close();
});
