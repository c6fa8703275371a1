import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inWords, markOf, mostUrgent, needed, turned, windowTitle } from './attention.js';
import { apply, EMPTY } from './workspace.js';

/** @typedef {import('../types/wire.js').SessionState} State */

/** @param {string} id @param {State} state */
const session = (id, state) => ({
  id,
  projectId: 'p',
  title: id,
  lastActiveAt: '2026-01-01T00:00:00.000Z',
  createdAt: '2026-01-01T00:00:00.000Z',
  cliType: 'codex',
  archived: false,
  state,
});
/** @param {Record<string, State>} states @returns {import('../types/wire.js').ServerMessage} */
const list = (states) => ({
  type: 'session:list',
  projectId: 'p',
  archived: false,
  sessions: Object.entries(states).map(([id, state]) => session(id, state)),
});
/** @param {string} id @param {State} state @returns {import('../types/wire.js').ServerMessage} */
const becomes = (id, state) => ({
  type: 'session:state',
  sessionId: id,
  projectId: 'p',
  state,
  lastActiveAt: '2026-01-02',
});
/** @param {import('./workspace.js').Workspace} before @param {import('../types/wire.js').ServerMessage} message */
const news = (before, message) =>
  turned(before, apply(before, message), message).map(({ session: { id }, mark }) => [id, mark]);

test('a session that asks, fails or ends its turn comes to need somebody', () => {
  const running = apply(EMPTY, list({ a: 'running' }));
  assert.deepEqual(news(running, becomes('a', 'waiting')), [['a', 'waiting']]);
  assert.deepEqual(news(running, becomes('a', 'failed')), [['a', 'failed']]);
  assert.deepEqual(news(running, becomes('a', 'idle')), [['a', 'finished']]);
});

test('a session that begins, or that nothing new is said of, needs nobody', () => {
  const idle = apply(EMPTY, list({ a: 'idle', f: 'failed' }));
  assert.deepEqual(news(idle, becomes('a', 'running')), []);
  assert.deepEqual(news(idle, becomes('a', 'idle')), []);
  assert.deepEqual(news(idle, becomes('f', 'idle')), []);
  assert.deepEqual(news(idle, becomes('unknown', 'waiting')), []);
});

test('what happened while the connection was lost is told by the list', () => {
  const before = apply(EMPTY, list({ a: 'running', b: 'running', c: 'idle' }));
  assert.deepEqual(news(before, list({ a: 'idle', b: 'waiting', c: 'idle' })), [
    ['a', 'finished'],
    ['b', 'waiting'],
  ]);
  // The first list of all tells what is, not what became.
  assert.deepEqual(news(EMPTY, list({ a: 'waiting' })), []);
});

test('finished counts until it was seen, waiting until it is answered', () => {
  const workspace = apply(EMPTY, list({ a: 'idle', b: 'idle', w: 'waiting', f: 'failed', g: 'failed', r: 'running' }));
  const unseen = new Set(['a', 'f']);
  const { waiting, failed, finished } = needed(workspace, unseen);
  assert.deepEqual(
    [waiting, failed, finished].map((found) => found.map(({ id }) => id)),
    [['w'], ['f'], ['a']],
  );
  assert.equal(markOf(session('a', 'idle'), unseen), 'finished');
  assert.equal(markOf(session('a', 'running'), unseen), 'running');
  assert.equal(markOf(session('b', 'idle'), unseen), 'idle');
});

test('a single number is that of what is most urgent', () => {
  assert.deepEqual(mostUrgent({ waiting: 2, failed: 3, finished: 4 }), { mark: 'waiting', number: 2 });
  assert.deepEqual(mostUrgent({ waiting: 0, failed: 3, finished: 4 }), { mark: 'failed', number: 3 });
  assert.deepEqual(mostUrgent({ waiting: 0, failed: 0, finished: 4 }), { mark: 'finished', number: 4 });
  assert.deepEqual(mostUrgent({ waiting: 0, failed: 0, finished: 0 }), { mark: 'idle', number: 0 });
  assert.equal(inWords({ waiting: 0, failed: 0, finished: 0 }), '');
});

test('the title of the window says what needs somebody, and nothing else', () => {
  assert.equal(windowTitle({ waiting: 0, failed: 0, finished: 0 }, undefined), 'Liminal Builder');
  assert.equal(
    windowTitle({ waiting: 2, failed: 0, finished: 1 }, 'Fix auth'),
    '(2 waiting, 1 finished) Fix auth – Liminal Builder',
  );
});
