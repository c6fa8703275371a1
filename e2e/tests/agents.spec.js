import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from '../support/liminal.js';
import {
  addProject,
  begin,
  enter,
  newSession,
  send,
  sessionPage,
  sessionRow,
  tab,
  tabsOf,
  violations,
} from '../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** @param {Page} page */
const claude = (page) => page.locator('.agent-line[data-agent="claude-code"]');

/** @param {Page} page @param {import('../support/liminal.js').Liminal} liminal */
async function withProject(page, liminal) {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
}

/** @param {Page} page */
async function choose(page) {
  await page.getByRole('button', { name: 'New session in app' }).click();
  await page.getByRole('menuitem', { name: 'Claude Code' }).click();
}

/**
 * Holds the agent's start until the returned function is called.
 * @param {import('../support/liminal.js').Liminal} liminal
 */
function holdStart(liminal) {
  const go = `${liminal.home}/go`;
  const script = readFileSync(liminal.agent, 'utf8');
  writeFileSync(liminal.agent, script.replace('\n', `\nuntil [ -e ${go} ]; do sleep 0.05; done\n`));
  return () => writeFileSync(go, '');
}

test('TC-5.1a, TC-5.1b: the first session starts the agent, later ones share it', async ({ page, liminal }) => {
  await withProject(page, liminal);
  expect(liminal.agentProcesses()).toEqual([]);
  await newSession(page, 'app');
  await send(page, 'say hello', 'hello');
  const first = liminal.agentProcesses();
  expect(first.length).toBe(1);
  await newSession(page, 'app');
  await send(page, 'say again', 'again');
  expect(liminal.agentProcesses()).toEqual(first);
});

test('TC-5.2a: a running agent is shown as connected', async ({ page, liminal }) => {
  await withProject(page, liminal);
  await expect(claude(page)).toHaveCount(0);
  await newSession(page, 'app');
  await expect(claude(page)).toHaveAttribute('data-status', 'connected');
  await expect(claude(page)).toContainText('Claude Code');
  await expect(claude(page)).toContainText('connected');
  await expect(page.getByRole('button', { name: /Reconnect/ })).toHaveCount(0);
});

test("a running agent's version and memory are shown only while it is open", async ({ page, liminal }) => {
  let asked = 0;
  page.on('websocket', (socket) =>
    socket.on('framesent', ({ payload }) => {
      if (String(payload).includes('"agent:memory"')) asked += 1;
    }),
  );
  await page.clock.install();
  await withProject(page, liminal);
  await newSession(page, 'app');
  await send(page, 'linger 60', '');
  expect(asked).toBe(0);
  const name = claude(page).getByRole('button', { name: 'Claude Code' });
  await name.click();
  const details = page.getByRole('region', { name: 'About Claude Code' });
  await expect(details).toContainText(/Version1\.0\.0/);
  await expect(details).toContainText(/Memory\d+ MiB in 2 processes/);
  expect(await violations(page)).toEqual([]);
  await expect(details.getByRole('button', { name: 'Restart' })).toBeFocused();
  const first = asked;
  await page.clock.fastForward(2500);
  await expect.poll(() => asked).toBeGreaterThan(first);
  await page.keyboard.press('Escape');
  await expect(details).toHaveCount(0);
  await expect(name).toBeFocused();
  const before = asked;
  await page.clock.fastForward(10_000);
  await send(page, 'say more', 'more');
  expect(asked).toBe(before);
});

test('TC-5.2c: an agent that died is restarted, and the page shows both', async ({ page, liminal }) => {
  await withProject(page, liminal);
  await newSession(page, 'app');
  await send(page, 'say hello', 'hello');
  const frame = sessionPage(page);
  const status = frame.locator('.agent-status');
  const button = frame.getByRole('button', { name: 'Send', exact: true });
  await expect(status).toHaveText('connected');
  const start = holdStart(liminal);
  await begin(page, 'crash 1');
  await expect(claude(page)).toHaveAttribute('data-status', 'reconnecting');
  await expect(claude(page)).toContainText('reconnecting…');
  await expect(status).toHaveAttribute('data-status', 'reconnecting');
  await expect(status).toHaveText('reconnecting');
  const yellow = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.color = 'var(--state-waiting)';
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  });
  for (const dot of [claude(page).locator('.agent-dot'), status.locator('.dot')]) {
    await expect(dot).toHaveCSS('border-top-color', yellow);
  }
  // The user can type, but not send.
  await frame.locator('textarea').fill('say meanwhile');
  await frame.locator('textarea').press('Enter');
  await expect(frame.locator('textarea')).toHaveValue('say meanwhile');
  await expect(button).toBeDisabled();
  await expect(status).toHaveText('reconnecting');
  // The conversation stays readable.
  await expect(frame.locator('[data-entry-id]').filter({ hasText: 'say hello' }).first()).toBeVisible();
  expect(await violations(page)).toEqual([]);
  start();
  await expect(claude(page)).toHaveAttribute('data-status', 'connected');
  await expect(status).toHaveText('connected');
  await expect(button).toBeEnabled();
  await send(page, 'say back again', 'back again');
});

test('TC-5.2b, TC-5.2d: a disconnected agent is marked and reconnected by hand', async ({ page, liminal }) => {
  liminal.agentStarts('exit-start');
  await withProject(page, liminal);
  await choose(page);
  await expect(claude(page)).toHaveAttribute('data-status', 'disconnected');
  await expect(claude(page)).toContainText('disconnected');
  expect(await violations(page)).toEqual([]);
  liminal.agentStarts('slow-start:4000');
  await claude(page).getByRole('button', { name: 'Reconnect Claude Code' }).click();
  await expect(claude(page)).toHaveAttribute('data-status', 'reconnecting');
  await expect(page.getByRole('button', { name: /Reconnect/ })).toHaveCount(0);
  await expect(claude(page)).toHaveAttribute('data-status', 'connected');
  await expect(page.getByText('Claude Code is connected.')).toBeVisible();
  await page.getByRole('button', { name: 'Retry' }).click();
  await expect(tabsOf(page)).toHaveCount(1);
});

test('a failed reconnect shows its reason', async ({ page, liminal }) => {
  liminal.agentStarts('exit-start');
  await withProject(page, liminal);
  await choose(page);
  await expect(claude(page)).toHaveAttribute('data-status', 'disconnected');
  await page.getByRole('button', { name: 'Close' }).click();
  await claude(page).getByRole('button', { name: 'Reconnect Claude Code' }).click();
  await expect(page.locator('.toast')).toContainText('cannot find my configuration');
  await expect(claude(page).getByRole('button', { name: 'Reconnect Claude Code' })).toBeVisible();
});

test('a silent turn shows for how long, and Restart agent ends it', async ({ page, liminal }) => {
  liminal.env.ACP_PROMPT_TIMEOUT_MS = '1000';
  await liminal.stop();
  await liminal.start();
  await withProject(page, liminal);
  await newSession(page, 'app');
  await begin(page, 'say before\nhang');
  const frame = sessionPage(page);
  await expect(frame.getByText(/quiet for [1-9]\d* s/)).toBeVisible();
  await frame.getByRole('button', { name: 'Restart agent' }).click();
  await expect(frame.getByText(/^Interrupted/)).toBeVisible();
  await expect(claude(page)).toHaveAttribute('data-status', 'connected');
  await send(page, 'say after', 'after');
});

test('TC-5.3a: no agent process outlives the server, idle or working', async ({ page, liminal }) => {
  await withProject(page, liminal);
  await newSession(page, 'app');
  await send(page, 'say hello', 'hello');
  await newSession(page, 'app', 'Codex');
  await send(page, 'say at work\nhang', 'at work');
  expect(liminal.agentProcesses().length).toBe(2);
  await liminal.stop();
  expect(liminal.agentProcesses()).toEqual([]);
  // Both were told to end and did so by themselves; a killed process writes nothing.
  expect(liminal.agentLog().filter((line) => line === 'end of input')).toHaveLength(2);
});

test('TC-5.4a: the main area shows a starting agent, and the start can be cancelled', async ({ page, liminal }) => {
  const start = holdStart(liminal);
  await withProject(page, liminal);
  await choose(page);
  await expect(page.getByRole('heading', { name: 'Starting Claude Code…' })).toBeVisible();
  await expect(claude(page)).toHaveAttribute('data-status', 'starting');
  await expect(tabsOf(page)).toHaveCount(0);
  expect(await violations(page)).toEqual([]);
  start();
  await expect(tabsOf(page)).toHaveCount(1);
  await expect(page.getByRole('heading', { name: 'Starting Claude Code…' })).toHaveCount(0);
  await expect(sessionPage(page).locator('textarea')).toBeVisible();
});

test('a cancelled start leaves no session', async ({ page, liminal }) => {
  liminal.agentStarts('slow-start:1500');
  await withProject(page, liminal);
  await choose(page);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByRole('heading', { name: 'No session open' })).toBeVisible();
  await expect.poll(() => liminal.agentLog().some((line) => line.startsWith('session/new'))).toBe(true);
  await expect(page.locator('.session-row')).toHaveCount(0);
  await expect(tabsOf(page)).toHaveCount(0);
});

test('a session that becomes ready out of view stays in the background', async ({ page, liminal }) => {
  await withProject(page, liminal);
  await newSession(page, 'app');
  await send(page, 'say first', 'first');
  liminal.agentStarts('slow-start:2000');
  await page.getByRole('button', { name: 'New session in app' }).click();
  await page.getByRole('menuitem', { name: 'Codex' }).click();
  await expect(page.getByRole('heading', { name: 'Starting Codex…' })).toBeVisible();
  await tab(page, 'say first').getByRole('tab').click();
  await expect(tabsOf(page)).toHaveCount(2);
  await expect(tab(page, 'say first').getByRole('tab')).toHaveAttribute('aria-selected', 'true');
});

test('TC-5.5a: a missing agent is explained, with a way to retry', async ({ page, liminal }) => {
  await withProject(page, liminal);
  rmSync(liminal.agent);
  await choose(page);
  const alert = page.getByRole('alert').filter({ hasText: "Could not start Claude Code. Check that it's installed." });
  await expect(alert).toBeVisible();
  await expect(tabsOf(page)).toHaveCount(0);
  liminal.agentStarts();
  await page.getByRole('button', { name: 'Retry' }).click();
  await expect(tabsOf(page)).toHaveCount(1);
});

test('TC-5.5b: an agent whose handshake fails is explained, with a way to retry', async ({ page, liminal }) => {
  liminal.agentStarts('version:99');
  await withProject(page, liminal);
  await choose(page);
  await expect(page.getByRole('alert').filter({ hasText: 'Could not connect to Claude Code' })).toBeVisible();
  liminal.agentStarts();
  await page.getByRole('button', { name: 'Retry' }).click();
  await expect(tabsOf(page)).toHaveCount(1);
});

test('TC-5.6b: the agent keeps running over a page reload', async ({ page, liminal }) => {
  await withProject(page, liminal);
  await newSession(page, 'app');
  await send(page, 'say hello', 'hello');
  const before = liminal.agentProcesses();
  await page.reload();
  await expect(claude(page)).toHaveAttribute('data-status', 'connected');
  await send(page, 'say once more', 'once more');
  expect(liminal.agentProcesses()).toEqual(before);
  expect(liminal.agentLog().filter((line) => line.startsWith('initialize')).length).toBe(1);
});

test('a connection lost in mid-answer resumes without a lost or doubled word', async ({ page, liminal }) => {
  await page.addInitScript(() => {
    window.WebSocket = class extends WebSocket {
      /** @param {string | URL} url */
      constructor(url) {
        super(url);
        Object.assign(window, { lastSocket: this });
      }
    };
  });
  let resumed = 0;
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      if (String(payload).includes('"session:resumed"')) resumed += 1;
    }),
  );
  await withProject(page, liminal);
  await newSession(page, 'app');
  await send(page, 'say hello', 'hello');
  const words = Array.from({ length: 30 }, (_, number) => `w${number}.`);
  await begin(page, words.flatMap((word) => [`say ${word}`, 'sleep 100']).join('\n'));
  const answer = sessionPage(page).locator('.answer').filter({ hasText: 'w0.w1.' }).last();
  for (const word of ['w3.', 'w9.', 'w15.']) {
    await expect(answer).toContainText(word);
    await page.evaluate(() => /** @type {any} */ (window).lastSocket.close());
  }
  await expect(answer).toContainText('w29.');
  expect((await answer.textContent())?.match(/w\d+\./g)).toEqual(words);
  expect(resumed).toBe(3);
});

test('after kill -9 of the server every session and unsent text is back', async ({ page, liminal }) => {
  await withProject(page, liminal);
  await newSession(page, 'app');
  await send(page, 'say hello', 'hello');
  await sessionPage(page).locator('textarea').fill('not sent yet');
  await liminal.kill();
  await expect(page.locator('#connection')).toContainText('Reconnecting…');
  await expect(sessionPage(page).locator('[data-entry-id]').filter({ hasText: 'say hello' }).first()).toBeVisible();
  await liminal.start();
  await expect(page.locator('#connection')).toContainText('Server connected');
  await expect(sessionPage(page).locator('textarea')).toHaveValue('not sent yet');
  await expect(sessionRow(page, 'say hello')).toBeVisible();
  await send(page, 'say here again', 'here again');
  await expect(sessionPage(page).locator('[data-entry-id]').filter({ hasText: 'say hello' })).toHaveCount(1);
});
