import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countsText, markOf, mostUrgent, needed, newlyNeeded, windowTitle } from './attention.js';
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
const turnedBy = (before, message) =>
  newlyNeeded(before, apply(before, message), message).map(({ session: { id }, mark }) => [id, mark]);

test('a session that starts waiting, fails or finishes needs the user', () => {
  const running = apply(EMPTY, list({ a: 'running' }));
  assert.deepEqual(turnedBy(running, becomes('a', 'waiting')), [['a', 'waiting']]);
  assert.deepEqual(turnedBy(running, becomes('a', 'failed')), [['a', 'failed']]);
  assert.deepEqual(turnedBy(running, becomes('a', 'idle')), [['a', 'finished']]);
});

test('a session that starts running or is unchanged does not need the user', () => {
  const idle = apply(EMPTY, list({ a: 'idle', f: 'failed' }));
  assert.deepEqual(turnedBy(idle, becomes('a', 'running')), []);
  assert.deepEqual(turnedBy(idle, becomes('a', 'idle')), []);
  assert.deepEqual(turnedBy(idle, becomes('f', 'idle')), []);
  assert.deepEqual(turnedBy(idle, becomes('unknown', 'waiting')), []);
});

test('changes during a lost connection are detected from the list', () => {
  const before = apply(EMPTY, list({ a: 'running', b: 'running', c: 'idle' }));
  assert.deepEqual(turnedBy(before, list({ a: 'idle', b: 'waiting', c: 'idle' })), [
    ['a', 'finished'],
    ['b', 'waiting'],
  ]);
  // The first list has nothing to be compared with.
  assert.deepEqual(turnedBy(EMPTY, list({ a: 'waiting' })), []);
});

test('failed and finished sessions count until seen, waiting until answered', () => {
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

test('the single number is the count of the most urgent kind', () => {
  assert.deepEqual(mostUrgent({ waiting: 2, failed: 3, finished: 4 }), { mark: 'waiting', number: 2 });
  assert.deepEqual(mostUrgent({ waiting: 0, failed: 3, finished: 4 }), { mark: 'failed', number: 3 });
  assert.deepEqual(mostUrgent({ waiting: 0, failed: 0, finished: 4 }), { mark: 'finished', number: 4 });
  assert.deepEqual(mostUrgent({ waiting: 0, failed: 0, finished: 0 }), { mark: 'idle', number: 0 });
  assert.equal(countsText({ waiting: 0, failed: 0, finished: 0 }), '');
});

test('the window title lists the counts and the session in view', () => {
  assert.equal(windowTitle({ waiting: 0, failed: 0, finished: 0 }, undefined), 'Liminal Builder');
  assert.equal(
    windowTitle({ waiting: 2, failed: 0, finished: 1 }, 'Fix auth'),
    '(2 waiting, 1 finished) Fix auth – Liminal Builder',
  );
});
