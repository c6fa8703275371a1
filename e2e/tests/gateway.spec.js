/** The gateway, used by a plain WebSocket client without code of ours. */

import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { expect, test } from '../support/liminal.js';
import { enter } from '../support/workspace.js';

/**
 * A stand-in model whose answers depend only on the conversation in the request.
 * @returns {Promise<{ url: string, close: () => void }>}
 */
async function standInModel() {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    const { messages } = JSON.parse(body);
    const said = messages
      .filter((/** @type {any} */ { role }) => role === 'user')
      .map((/** @type {any} */ { content }) => (typeof content === 'string' ? content : JSON.stringify(content)));
    const name = said.map((/** @type {string} */ text) => /my name is (\w+)/i.exec(text)?.[1]).find(Boolean);
    const asked = /what is my name/i.test(said.at(-1) ?? '');
    const answer = asked ? `Your name is ${name ?? 'unknown to me'}.` : 'Nice to meet you.';
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (/** @type {object} */ delta, /** @type {string | null} */ reason = null) =>
      response.write(
        `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`,
      );
    chunk({ role: 'assistant', content: '' });
    for (const word of answer.split(/(?<= )/)) chunk({ content: word });
    chunk({}, 'stop');
    response.end('data: [DONE]\n\n');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}/v1`, close: () => server.close() };
}

/** @param {import('../support/liminal.js').Liminal} liminal @param {string} [token] */
async function connect(liminal, token = new URL(liminal.url).hash.slice('#token='.length)) {
  const socket = new WebSocket(`${liminal.origin.replace('http', 'ws')}/gateway`);
  /** @type {any[]} */
  const frames = [];
  /** @type {(() => void)[]} */
  const waiting = [];
  socket.on('message', (data) => {
    frames.push(JSON.parse(String(data)));
    for (const wake of waiting.splice(0)) wake();
  });
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject));
  /**
   * Takes the next frame that matches; the others stay queued.
   * @param {(frame: any) => boolean} fits
   * @returns {Promise<any>}
   */
  const next = async (fits) => {
    for (;;) {
      const at = frames.findIndex(fits);
      if (at >= 0) return frames.splice(at, 1)[0];
      await new Promise((resolve) => waiting.push(() => resolve(undefined)));
    }
  };
  socket.send(JSON.stringify({ type: 'auth', token: decodeURIComponent(token) }));
  const auth = await next(({ type }) => type === 'auth');
  let lastId = 0;
  return {
    auth,
    next,
    /** @param {string} method @param {object} params */
    call: async (method, params) => {
      const id = String(++lastId);
      socket.send(JSON.stringify({ id, method, params }));
      const { result, error } = await next((frame) => frame.id === id);
      expect(error).toBeUndefined();
      return result;
    },
    close: () => socket.close(),
  };
}

test('a program creates a session, chats, and finds both after a restart', async ({ page, liminal }) => {
  const model = await standInModel();
  liminal.env = { LIMINAL_AGENT_MODEL: 'openai-compatible/stand-in', LIMINAL_AGENT_BASE_URL: model.url };
  // 1 and 2: the server runs, and a program authenticates.
  await liminal.stop();
  await liminal.start();
  let program = await connect(liminal);
  expect(program.auth).toEqual({ type: 'auth', ok: true });
  // 3: the agents that can answer.
  const { agents } = await program.call('agents.list', {});
  expect(agents[0]).toMatchObject({ id: 'assistant', model: 'openai-compatible/stand-in' });
  // 4: a new session.
  const { sessionKey } = await program.call('sessions.create', {});
  expect(sessionKey).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  // 5 and 6: two messages; the second is answered from the first.
  const say = async (/** @type {string} */ message) => {
    const { runId } = await program.call('chat.send', { sessionKey, message });
    const final = await program.next(({ event, data }) => event === 'chat.final' && data.runId === runId);
    expect(final.data.runId).toBe(runId);
    return runId;
  };
  const first = await say('Hello, my name is Alice.');
  const second = await say('What is my name?');
  expect(second).not.toBe(first);
  // 7: the history.
  const { messages } = await program.call('chat.history', { sessionKey });
  const history = messages.map((/** @type {any} */ { role, content }) => [role, content]);
  expect(history).toEqual([
    ['user', 'Hello, my name is Alice.'],
    ['assistant', 'Nice to meet you.'],
    ['user', 'What is my name?'],
    ['assistant', 'Your name is Alice.'],
  ]);
  // 8 and 9: after a restart the session is still listed.
  program.close();
  await liminal.stop();
  await liminal.start();
  program = await connect(liminal);
  const { sessions } = await program.call('sessions.list', {});
  expect(sessions.map((/** @type {any} */ { key }) => key)).toEqual([sessionKey]);
  // 10: with its whole history.
  const got = await program.call('sessions.get', { sessionKey });
  expect(got.messages).toEqual(messages);
  // 11: on disk, one object per line.
  const file = join(liminal.home, '.liminal-builder', 'sessions', `${sessionKey}.jsonl`);
  expect(existsSync(file)).toBe(true);
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) JSON.parse(line);
  // The user finds the session in the sidebar.
  await enter(page, liminal);
  await expect(page.locator('.session-title')).toHaveText(['Hello, my name is Alice.']);
  program.close();
  model.close();
});

test('a wrong token is reported and the connection closed', async ({ liminal }) => {
  const program = await connect(liminal, 'not-the-token');
  expect(program.auth).toEqual({ type: 'auth', ok: false, error: 'invalid token' });
});
