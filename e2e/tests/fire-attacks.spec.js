/**
 * Pages of somebody else's against a workspace that is open in the same browser: from another port, under a name that
 * leads to this machine, without an origin, and under our own address by a name that was bound anew. Each also against
 * a server that asks nobody who they are, which the same page does take over.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { LAUNCH } from '../support/browser.js';
import { askForPort, frameAll, openSockets, PICTURE, post, read, submitForms } from '../support/intruder.js';
import { expect, test } from '../support/liminal.js';
import { listening, startNaive } from '../support/naive.js';
import { routes } from '../support/routes.js';
import { openSession } from '../support/session.js';
import { enter } from '../support/workspace.js';

/** @typedef {import('@playwright/test').Frame} Frame */
/** @typedef {import('@playwright/test').Page} Page */
/** @typedef {import('../support/liminal.js').Liminal} Liminal */

const NAME = 'intruder.example';

// Our walls, not the browser's newest: without asking, a page may reach this machine.
const ARGS = [`--host-resolver-rules=MAP ${NAME} 127.0.0.1`, '--disable-features=LocalNetworkAccessChecks'];
test.use({ launchOptions: { ...LAUNCH, args: [...LAUNCH.args, ...ARGS] } });

const INNER = '<!doctype html><title>Inner</title><body></body>';
const OUTER = `<!doctype html><title>Intruder</title><body><iframe name="inner"
  sandbox="allow-scripts allow-forms allow-popups" src="/inner"></iframe></body>`;

/** The intruder's own server. */
async function startIntruder() {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html').end(request.url === '/inner' ? INNER : OUTER);
  });
  return listening(server);
}

/** What somebody could have changed. @param {Liminal} liminal */
function state(liminal) {
  const data = join(liminal.home, '.liminal-builder');
  const file = /** @param {string} name */ (name) =>
    existsSync(join(data, name)) ? readFileSync(join(data, name), 'utf8') : '';
  const uploads = existsSync(join(data, 'uploads')) ? readdirSync(join(data, 'uploads')) : [];
  return { projects: file('projects.json'), sessions: file('sessions.json'), uploads, asked: liminal.agentLog() };
}

/** A window of somebody else's beside ours. @param {Page} page @param {string} address */
async function intrude(page, address) {
  const other = await page.context().newPage();
  await other.goto(address);
  return other;
}

/** What a form of the old web can send. */
const ENCODINGS = ['text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded'];

const FILES = routes().filter((path) => path.startsWith('/styles/'));
/** Every address of the server that is not a file anybody may have. */
const PATHS = routes().filter((path) => !FILES.includes(path));

for (const [from, address, sandboxed] of /** @type {const} */ ([
  ['another port of this machine', (/** @type {number} */ port) => `http://127.0.0.1:${port}/`, false],
  ['another name for this machine', (/** @type {number} */ port) => `http://${NAME}:${port}/`, false],
  ['a sandboxed frame without an origin', (/** @type {number} */ port) => `http://127.0.0.1:${port}/`, true],
  ['0.0.0.0', (/** @type {number} */ port) => `http://0.0.0.0:${port}/`, false],
])) {
  test(`a page from ${from} opens no socket, posts nothing, reads nothing and frames nothing`, async ({
    page,
    liminal,
  }) => {
    const [intruder, naive] = [await startIntruder(), await startNaive()];
    await enter(page, liminal);
    const before = state(liminal);
    const window_ = await intrude(page, address(intruder.port));
    const frame = sandboxed ? window_.frame('inner') : window_.mainFrame();
    if (!frame) throw new Error('no frame');
    await frame.waitForLoadState();
    expect(await frame.evaluate(() => self.origin)).toBe(sandboxed ? 'null' : new URL(address(intruder.port)).origin);

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
    // What a session's page loads has to be readable without an origin, and says nothing about anybody.
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
    // The same picture from a page of ours is taken, so it was not the picture.
    expect(await page.evaluate(post, { target, paths: ['/uploads'], picture: PICTURE })).not.toEqual([]);
    await window_.close();
    intruder.stop();
    naive.stop();
  });
}

test('a page of somebody else gets nothing at the door for programs, by any name', async ({ page, liminal }) => {
  const [intruder, naive, free] = [await startIntruder(), await startNaive(), await startNaive()];
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
    const window_ = await intrude(page, `http://127.0.0.1:${intruder.port}/`);
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
  intruder.stop();
  naive.stop();
});

/** The frame in which another page stands. @param {Frame} frame @param {string} path */
async function held(frame, path) {
  return (await frame.locator(`iframe[name="held ${path}"]`).elementHandle())?.contentFrame();
}

for (const name of [NAME, '0.0.0.0']) {
  test(`a page that comes under our port as ${name} gets nothing from any route`, async ({ page, liminal }) => {
    const naive = await startNaive();
    await enter(page, liminal);
    const before = state(liminal);
    /** A page that was loaded while the name still led to the intruder. @param {string} origin */
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

test('who opened the workspace, or asks from beside or inside it, gets no port; a naive page hands one out', async ({
  page,
  liminal,
}) => {
  const [intruder, naive] = [await startIntruder(), await startNaive()];
  await enter(page, liminal);
  for (const [target, ports] of /** @type {const} */ ([
    [naive.origin, 1],
    [liminal.origin, 0],
  ])) {
    // A popup's opener, and a window that was opened.
    const opener = await intrude(page, intruder.origin);
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
  intruder.stop();
  naive.stop();
});

test('a hook is written only after a click, though the policy allows everything', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const hook = join(liminal.home, 'app/.git/hooks/pre-commit');
  await send(`ask fs/write_text_file ${JSON.stringify({ path: hook, content: '#!/bin/sh\n' })}`);
  const question = frame.locator('.question');
  await expect(question).toContainText('Write .git/hooks/pre-commit');
  await expect(question).toContainText('Asked whatever the policy');
  expect(existsSync(hook)).toBe(false);
  await question.getByRole('button', { name: 'Write it' }).click();
  await expect(frame.getByRole('button', { name: 'Stop' })).toBeHidden();
  expect(existsSync(hook)).toBe(true);
});
