/**
 * Hostile pages in the browser that has the workspace open: from another port, under another name for this machine,
 * from an opaque origin, and under our own address after DNS rebinding. Each attack also runs against a server without
 * access checks, where it must succeed.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { LAUNCH } from '../support/browser.js';
import { askForPort, frameAll, openSockets, PICTURE, post, read, submitForms } from '../support/intruder.js';
import { expect, test } from '../support/liminal.js';
import { listening, startNaive } from '../support/naive.js';
import { addProvenSocket } from '../support/page-socket.js';
import { routes } from '../support/routes.js';
import { openSession } from '../support/session.js';
import { enter } from '../support/workspace.js';

/** @typedef {import('@playwright/test').Frame} Frame */
/** @typedef {import('@playwright/test').Page} Page */
/** @typedef {import('../support/liminal.js').Liminal} Liminal */

const NAME = 'intruder.example';

// Without Chromium's own protection (Local Network Access), which would stop the page before our checks.
const ARGS = [`--host-resolver-rules=MAP ${NAME} 127.0.0.1`, '--disable-features=LocalNetworkAccessChecks'];
test.use({ launchOptions: { ...LAUNCH, args: [...LAUNCH.args, ...ARGS] } });

const INNER = '<!doctype html><title>Inner</title><body></body>';
const OUTER = `<!doctype html><title>Intruder</title><body><iframe name="inner"
  sandbox="allow-scripts allow-forms allow-popups" src="/inner"></iframe></body>`;

/** The hostile page's own server. */
async function startHostileServer() {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html').end(request.url === '/inner' ? INNER : OUTER);
  });
  return listening(server);
}

/** The state that an attack could change. @param {Liminal} liminal */
function state(liminal) {
  const data = join(liminal.home, '.liminal-builder');
  const file = /** @param {string} name */ (name) =>
    existsSync(join(data, name)) ? readFileSync(join(data, name), 'utf8') : '';
  const uploads = existsSync(join(data, 'uploads')) ? readdirSync(join(data, 'uploads')) : [];
  return { projects: file('projects.json'), sessions: file('sessions.json'), uploads, asked: liminal.agentLog() };
}

/** Opens a hostile page in the same browser. @param {Page} page @param {string} address */
async function openHostilePage(page, address) {
  const other = await page.context().newPage();
  await other.goto(address);
  return other;
}

/** The encodings an HTML form can send. */
const ENCODINGS = ['text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded'];

const FILES = routes().filter((path) => path.startsWith('/styles/'));
/** Every route of the server except public files. */
const PATHS = routes().filter((path) => !FILES.includes(path));

for (const [from, address, sandboxed] of /** @type {const} */ ([
  ['another local port', (/** @type {number} */ port) => `http://127.0.0.1:${port}/`, false],
  ['another local name', (/** @type {number} */ port) => `http://${NAME}:${port}/`, false],
  ['a sandboxed frame', (/** @type {number} */ port) => `http://127.0.0.1:${port}/`, true],
  ['0.0.0.0', (/** @type {number} */ port) => `http://0.0.0.0:${port}/`, false],
])) {
  test(`a page from ${from} cannot connect, post, read or frame us`, async ({ page, liminal }) => {
    const [hostile, naive] = [await startHostileServer(), await startNaive()];
    await enter(page, liminal);
    const before = state(liminal);
    const window_ = await openHostilePage(page, address(hostile.port));
    const frame = sandboxed ? window_.frame('inner') : window_.mainFrame();
    if (!frame) throw new Error('no frame');
    await frame.waitForLoadState();
    expect(await frame.evaluate(() => self.origin)).toBe(sandboxed ? 'null' : new URL(address(hostile.port)).origin);

    const sockets = ['/ws', '/ws?batch=1&html=1', '/gateway'];
    const { origin: target } = liminal;
    expect(await frame.evaluate(openSockets, { target: naive.origin, paths: sockets })).toHaveLength(3);
    expect(await frame.evaluate(openSockets, { target, paths: sockets })).toEqual([]);

    await frame.evaluate(post, { target: naive.origin, paths: PATHS, picture: PICTURE });
    await frame.evaluate(submitForms, { target: naive.origin, paths: ['/login', '/uploads'] });
    for (const path of PATHS) expect(naive.taken).toContain(`POST ${path}`);
    for (const path of ['/login', '/uploads']) {
      for (const encoding of ENCODINGS) expect(naive.taken).toContain(`navigate ${encoding} ${path}`);
    }
    expect(await frame.evaluate(post, { target, paths: PATHS, picture: PICTURE })).toEqual([]);
    await frame.evaluate(submitForms, { target, paths: ['/login', '/uploads'] });

    const stolen = await frame.evaluate(read, { target: naive.origin, paths: ['/'] });
    expect(stolen['/'].text).toContain('private');
    expect(await frame.evaluate(read, { target, paths: PATHS })).toEqual({});
    // The files of a session's page are public: its opaque origin must be able to load them, and they hold no user
    // data.
    expect(Object.keys(await frame.evaluate(read, { target, paths: FILES }))).toEqual(FILES);

    await frame.evaluate(frameAll, { target: naive.origin, paths: ['/'] });
    await expect.poll(async () => (await held(frame, '/'))?.locator('body').textContent()).toContain('private');
    await frame.evaluate(() => document.querySelectorAll('iframe[name^=held]').forEach((one) => void one.remove()));
    await frame.evaluate(frameAll, { target, paths: ['/', '/portlet.html'] });
    for (const path of ['/', '/portlet.html']) {
      await expect.poll(async () => (await held(frame, path))?.url()).toMatch(/^chrome-error:/);
    }
    expect(await frame.evaluate(() => (self.origin === 'null' ? '' : document.cookie))).not.toContain('liminal');

    expect(state(liminal)).toEqual(before);
    // The same picture is accepted from our own page, so it was not rejected for its content.
    await page.evaluate(addProvenSocket);
    const pass = await page.evaluate(readPass);
    const uploads = [`/uploads?pass=${pass}`];
    expect(await page.evaluate(post, { target, paths: uploads, picture: PICTURE })).not.toEqual([]);
    // The hostile page gains nothing by the pass.
    expect(await frame.evaluate(post, { target, paths: uploads, picture: PICTURE })).toEqual([]);
    await window_.close();
    hostile.stop();
    naive.stop();
  });
}

test('a page from another origin gets nothing from the gateway port', async ({ page, liminal }) => {
  const [hostile, naive, free] = [await startHostileServer(), await startNaive(), await startNaive()];
  const { port } = new URL(free.origin);
  free.stop();
  liminal.env.LIMINAL_GATEWAY_PORT = port;
  await liminal.stop();
  await liminal.start();
  await enter(page, liminal);
  const before = state(liminal);
  const sockets = ['/', '/gateway', '/ws'];
  for (const host of ['127.0.0.1', NAME, '0.0.0.0']) {
    const target = `http://${host}:${port}`;
    const control = `http://${host}:${new URL(naive.origin).port}`;
    const window_ = await openHostilePage(page, `http://127.0.0.1:${hostile.port}/`);
    const frame = window_.mainFrame();
    expect(await frame.evaluate(openSockets, { target: control, paths: sockets })).toHaveLength(3);
    expect(await frame.evaluate(openSockets, { target, paths: sockets })).toEqual([]);
    await frame.evaluate(post, { target: control, paths: ['/gateway'], picture: PICTURE });
    expect(naive.taken).toContain('POST /gateway');
    expect(await frame.evaluate(post, { target, paths: PATHS, picture: PICTURE })).toEqual([]);
    await frame.evaluate(submitForms, { target, paths: ['/', '/login'] });
    expect((await frame.evaluate(read, { target: control, paths: ['/'] }))['/'].text).toContain('private');
    expect(await frame.evaluate(read, { target, paths: [...PATHS, ...FILES] })).toEqual({});
    await window_.close();
  }
  expect(state(liminal)).toEqual(before);
  hostile.stop();
  naive.stop();
});

/** Runs in the workspace: the pass that its uploads need. */
async function readPass() {
  const socket = await /** @type {any} */ (window).provenSocket();
  return new Promise((resolve) => {
    socket.onmessage = (/** @type {MessageEvent} */ { data }) => resolve(JSON.parse(data).pass);
  });
}

/** The frame in which the hostile page tries to show ours. @param {Frame} frame @param {string} path */
async function held(frame, path) {
  return (await frame.locator(`iframe[name="held ${path}"]`).elementHandle())?.contentFrame();
}

for (const name of [NAME, '0.0.0.0']) {
  test(`a page rebound to our port as ${name} gets 421 everywhere`, async ({ page, liminal }) => {
    const naive = await startNaive();
    await enter(page, liminal);
    const before = state(liminal);
    /** A page loaded while the name still resolved to the attacker. @param {string} origin */
    const rebound = async (origin) => {
      const target = `http://${name}:${new URL(origin).port}`;
      const window_ = await page.context().newPage();
      await window_.route(`${target}/first`, (route) => route.fulfill({ contentType: 'text/html', body: INNER }));
      await window_.goto(`${target}/first`);
      return { target, frame: window_.mainFrame() };
    };
    const control = await rebound(naive.origin);
    const stolen = await control.frame.evaluate(read, { target: control.target, paths: ['/'] });
    expect(stolen['/'].text).toContain('private');
    expect(await control.frame.evaluate(openSockets, { target: control.target, paths: ['/ws'] })).toHaveLength(1);
    await control.frame.evaluate(post, { target: control.target, paths: ['/login'], picture: PICTURE });
    expect(naive.taken).toContain('POST /login');

    const { target, frame } = await rebound(liminal.origin);
    const all = [...PATHS, ...FILES];
    const got = await frame.evaluate(read, { target, paths: all });
    for (const path of all) expect([path, got[path]?.status]).toEqual([path, 421]);
    expect(await frame.evaluate(openSockets, { target, paths: ['/ws', '/gateway'] })).toEqual([]);
    expect(await frame.evaluate(post, { target, paths: all, picture: PICTURE })).toEqual([]);
    expect(state(liminal)).toEqual(before);
    naive.stop();
  });
}

test('an opener, a sibling frame and a nested frame get no port', async ({ page, liminal }) => {
  const [hostile, naive] = [await startHostileServer(), await startNaive()];
  await enter(page, liminal);
  for (const [target, ports] of /** @type {const} */ ([
    [naive.origin, 1],
    [liminal.origin, 0],
  ])) {
    // The page that opened the workspace in a new window.
    const opener = await openHostilePage(page, hostile.origin);
    const [opened] = await Promise.all([
      page.context().waitForEvent('page'),
      opener.evaluate((url) => void Object.assign(window, { workspace: window.open(url) }), target),
    ]);
    await opened.waitForLoadState();
    if (ports === 0) await expect(opened.locator('#connection')).toContainText('Server connected');
    expect((await opener.evaluate(askForPort)).ports).toBe(ports);
    // A frame beside those of the sessions, and one inside it.
    await opened.evaluate(() => document.body.append(document.createElement('iframe')));
    const beside = opened.frames().at(-1);
    if (!beside) throw new Error('no frame');
    expect(await beside.evaluate(askForPort)).toEqual({ asked: true, ports: ports * 2 });
    await beside.evaluate(() => document.body.append(document.createElement('iframe')));
    await expect.poll(() => beside.childFrames().length).toBe(1);
    expect(await beside.childFrames()[0].evaluate(askForPort)).toEqual({ asked: true, ports });
    await opened.close();
    await opener.close();
  }
  expect(liminal.agentLog().filter((line) => line.includes('spoofed'))).toEqual([]);
  hostile.stop();
  naive.stop();
});

test('a git hook is written only after approval, whatever the policy', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const hook = join(liminal.home, 'app/.git/hooks/pre-commit');
  await send(`ask fs/write_text_file ${JSON.stringify({ path: hook, content: '#!/bin/sh\n' })}`);
  const question = frame.locator('.question');
  await expect(question).toContainText('Write .git/hooks/pre-commit');
  await expect(question).toContainText('Always needs approval');
  expect(existsSync(hook)).toBe(false);
  await question.getByRole('button', { name: 'Write it' }).click();
  await expect(frame.getByRole('button', { name: 'Stop' })).toBeHidden();
  expect(existsSync(hook)).toBe(true);
});
