/**
 * An open session, for tests of the conversation. The only module that knows how a session is opened and which frame
 * holds its page.
 *
 * @typedef {import('@playwright/test').Page} Page
 * @typedef {import('@playwright/test').FrameLocator} FrameLocator
 * @typedef {import('./liminal.js').Liminal} Liminal
 *
 * @typedef {object} Session
 * @property {FrameLocator} frame  the session's page
 * @property {(text: string) => Promise<void>} send  types a message and sends it
 * @property {(message: import('../../web/types/bridge.js').ToPortlet) => Promise<void>} hand  sends a message as the shell does
 * @property {(message: string) => Promise<void>} refuse  answers the next message with an error, only in the stand-in shell
 * @property {() => Promise<import('../../web/types/bridge.js').FromPortlet[]>} said  the page's messages to the shell
 */

import { expect } from './liminal.js';
import { addProvenSocket } from './page-socket.js';
import { addProject, enter, projectHeads } from './workspace.js';

/**
 * Opens the workspace's session, and creates one first if there is none.
 * @param {Page} page @param {Liminal} liminal @returns {Promise<Session>}
 */
export async function openSession(page, liminal) {
  await enter(page, liminal);
  const rows = page.locator('.session-row');
  if ((await projectHeads(page).count()) === 0) await addProject(page, liminal.folder('app'));
  if ((await rows.count()) > 0) {
    await rows.first().click();
  } else {
    await page.getByRole('button', { name: 'New session in app', exact: true }).click();
    await page.getByRole('menuitem', { name: 'Claude Code' }).click();
  }
  return readySession(page, page.frameLocator('.panel.in-view iframe'));
}

/**
 * Opens a session's page in a stand-in shell that only forwards messages, so that a test can send it any message.
 * @param {Page} page @param {Liminal} liminal @returns {Promise<Session>}
 */
export async function openStandIn(page, liminal) {
  await enter(page, liminal);
  // Any response of the server will do; only its origin matters.
  await page.goto(`${liminal.origin}/health`);
  await page.evaluate(addProvenSocket);
  await page.evaluate(standIn, liminal.folder('app'));
  return readySession(page, page.frameLocator('iframe'));
}

/** @param {Page} page @param {FrameLocator} frame @returns {Promise<Session>} */
async function readySession(page, frame) {
  const input = frame.getByRole('textbox', { name: 'Message', exact: true });
  await expect(input).toHaveAttribute('placeholder', 'Message Claude Code');
  return {
    frame,
    send: async (text) => {
      await input.fill(text);
      await expect(frame.getByRole('button', { name: 'Send', exact: true })).toBeEnabled();
      await input.press('Enter');
    },
    hand: (message) => page.evaluate((one) => /** @type {any} */ (window).hand(one), message),
    refuse: (message) =>
      page.evaluate((text) => {
        /** @type {any} */ (window).refusal = text;
      }, message),
    said: () => page.evaluate(() => /** @type {any} */ (window).said),
  };
}

/** The parts of a session's page. @param {FrameLocator} frame */
export const parts = (frame) => ({
  input: frame.getByRole('textbox', { name: 'Message', exact: true }),
  send: frame.getByRole('button', { name: 'Send', exact: true }),
  stop: frame.getByRole('button', { name: 'Stop' }),
  queue: frame.getByRole('button', { name: 'Queue', exact: true }),
  latest: frame.getByRole('button', { name: /latest/ }),
  working: frame.locator('#working'),
  status: frame.locator('.agent-status'),
  scroller: frame.locator('#scroller'),
  said: frame.locator('.row-user'),
  answers: frame.locator('.row-assistant'),
  calls: frame.locator('.tool-place'),
  ends: frame.locator('.row-turn'),
});

/** A script for many separate entries: text and tool calls alternate. @param {number} count @param {string} [name] */
export const entries = (count, name = 't') =>
  Array.from({ length: count }, (_, at) => `say entry ${at}.\ntool ${name}${at} read Read file-${at}.rs`).join('\n');

/** A minimal shell. Runs in the page. @param {string} path */
function standIn(path) {
  const window_ = /** @type {any} */ (window);
  document.body.replaceChildren();
  /** @type {Map<string, (message: any) => void>} */
  const waiting = new Map();
  window_.said = [];
  let lastId = 0;
  /** @type {any} */
  let socket;
  /** @type {any} */
  let port;
  /** @type {any} */
  let position;
  /** @type {any} */
  let session;
  /** @type {any} */
  let project;
  /** @type {any[]} */
  let agents = [];

  /** @type {any[]} */
  const before = [];
  const hand = /** @param {any} message */ (message) => (port ? port.postMessage(message) : before.push(message));
  window_.hand = hand;
  /** @param {any} message @param {string} [requestId] @returns {Promise<any>} */
  const request = (message, requestId = `r${++lastId}`) =>
    new Promise((resolve) => {
      if (socket.readyState !== 1) return resolve({ type: 'error', code: 'OFFLINE', message: 'away' });
      waiting.set(requestId, resolve);
      socket.send(JSON.stringify({ ...message, requestId }));
    });
  /** @param {any} message */
  const receive = (message) => {
    if (message.bootId && 'seq' in message) position = { bootId: message.bootId, seq: message.seq };
    if (position && message.seq) position.seq = message.seq;
    if (message.type === 'hello') {
      agents = message.agents;
      begin();
    }
    if (message.type === 'agent:status' && message.cliType === 'claude-code')
      hand({ type: 'agent', status: message.status, reason: message.reason });
    if (message.type === 'session:title-updated') hand({ type: 'title', title: message.title });
    if (
      session &&
      message.sessionId === session.id &&
      /history|resumed|update$|chunk|complete|cancelled|info|error/.test(message.type)
    )
      hand({ type: 'server', message });
    waiting.get(message.requestId)?.(message);
    waiting.delete(message.requestId);
  };
  const begin = async () => {
    hand({ type: 'connection', open: true, pass: '' });
    if (session) return request({ type: 'session:open', sessionId: session.id, after: position, tail: 200 });
    const projects = (await request({ type: 'project:list' })).projects;
    project =
      projects.find(/** @param {any} one */ (one) => one.path === path) ??
      (await request({ type: 'project:add', path })).project;
    const sessions = (await request({ type: 'session:list', projectId: project.id })).sessions;
    session =
      sessions[0] ?? (await request({ type: 'session:create', projectId: project.id, cliType: 'claude-code' })).session;
    const agent = agents.find(({ cliType }) => cliType === 'claude-code');
    const frame = document.createElement('iframe');
    frame.setAttribute('sandbox', 'allow-scripts');
    frame.style.cssText = 'position: fixed; inset: 0; border: 0; width: 100%; height: 100%';
    frame.title = 'Session';
    frame.src = '/portlet.html';
    addEventListener('message', (event) => {
      if (event.source !== frame.contentWindow || event.data?.type !== 'portlet:ready') return;
      const channel = new MessageChannel();
      port = channel.port1;
      port.onmessage = /** @param {MessageEvent} event */ ({ data }) => take(data);
      frame.contentWindow?.postMessage({ type: 'portlet:port' }, '*', [channel.port2]);
      const draft = sessionStorage.draft ?? '';
      hand({
        type: 'init',
        session,
        agent: { ...agent, status: 'connected' },
        agents,
        projectName: project.name,
        projectPath: project.path,
        draft,
        place: null,
        pass: '',
      });
      for (const message of before.splice(0)) hand(message);
      request({ type: 'session:open', sessionId: session.id, tail: 200 });
    });
    document.body.append(frame);
  };
  /** @param {any} message */
  const take = async (message) => {
    window_.said.push(message);
    if (window_.refusal && message.message?.type === 'session:send') {
      const refused = { type: 'error', code: 'SESSION_BUSY', message: window_.refusal };
      window_.refusal = '';
      return hand({ type: 'answer', id: message.id, message: refused });
    }
    if (message.type === 'request') {
      const about = message.message.type === 'project:files' ? { projectId: project.id } : { sessionId: session.id };
      const whole = { ...message.message, ...about };
      hand({ type: 'answer', id: message.id, message: await request(whole, message.requestId) });
    }
    if (message.type === 'reconnect') request({ type: 'session:reconnect', cliType: 'claude-code' });
    if (message.type === 'draft') sessionStorage.draft = message.text;
    if (message.type === 'upload') hand({ type: 'uploaded', id: message.id, imageId: 'picture-1' });
  };
  const open = async () => {
    socket = await window_.provenSocket('&batch=1&html=1').catch(() => null);
    if (!socket) return setTimeout(open, 200);
    socket.onmessage = /** @param {{ data: string }} event */ ({ data }) => [JSON.parse(data)].flat().forEach(receive);
    socket.onclose = () => {
      for (const resolve of waiting.values()) resolve({ type: 'error', code: 'OFFLINE', message: 'away' });
      waiting.clear();
      hand({ type: 'connection', open: false, pass: '' });
      setTimeout(open, 200);
    };
  };
  open();
}
