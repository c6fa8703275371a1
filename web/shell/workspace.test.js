import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ambiguousPlaces, apply, complete, EMPTY, find } from './workspace.js';

/** @param {string} id @param {string} addedAt @param {string} [path] */
const project = (id, addedAt, path = `/code/${id}`) => ({ id, path, name: path.split('/').at(-1) ?? '', addedAt });
const A = project('a', '2026-01-01T00:00:00.000Z');
const B = project('b', '2026-01-01T00:00:00.001Z');
const C = project('c', '2026-01-02T00:00:00.000Z');

/** @param {import('../types/wire.js').ServerMessage[]} messages */
const after = (...messages) => messages.reduce(apply, EMPTY);
/** @param {import('./workspace.js').Workspace} workspace */
const ids = (workspace) => workspace.projects?.map(({ id }) => id);

test('projects are unknown before the first list', () => {
  assert.equal(after().projects, null);
});

test('a restored project returns to its position', () => {
  const state = after(
    { type: 'project:list', projects: [A, B, C] },
    { type: 'project:removed', projectId: 'b' },
    { type: 'project:added', project: B },
  );
  assert.deepEqual(ids(state), ['a', 'b', 'c']);
});

test('an added project that the list already contains is not duplicated', () => {
  const state = after({ type: 'project:list', projects: [A, B] }, { type: 'project:added', project: B });
  assert.deepEqual(ids(state), ['a', 'b']);
});

test('a message of an unknown type is ignored', () => {
  const unknown = /** @type {any} */ ({ type: 'session:sparkle' });
  assert.deepEqual(after({ type: 'project:list', projects: [A] }, unknown).projects, [A]);
});

test('the page is stale only after the server version has changed', () => {
  /** @param {string} version */
  const hello = (version) => ({
    type: /** @type {const} */ ('hello'),
    bootId: 'x',
    version,
    agents: [],
    permissions: /** @type {const} */ ('allow'),
    notices: [],
  });
  assert.equal(after(hello('1'), hello('1')).stale, false);
  assert.equal(after(hello('1'), hello('2'), hello('2')).stale, true);
});

test('projects with equal names are distinguished by their parent folder', () => {
  const places = ambiguousPlaces([
    project('x', '', '/work/api'),
    project('y', '', '/home/api'),
    A,
    project('r', '', '/api'),
  ]);
  assert.deepEqual(
    [...places],
    [
      ['x', 'work'],
      ['y', 'home'],
      ['r', '/'],
    ],
  );
});

/** @param {string} id @param {string} lastActiveAt @param {string} [projectId] @returns {import('../types/wire.js').SessionListItem} */
const session = (id, lastActiveAt, projectId = 'a') => ({
  id,
  projectId,
  title: id,
  lastActiveAt,
  createdAt: lastActiveAt,
  cliType: 'claude-code',
  archived: false,
  state: 'idle',
});
const OLD = session('old', '2026-01-01T00:00:00.000Z');
const NEW = session('new', '2026-01-02T00:00:00.000Z');
/** @type {import('../types/wire.js').ServerMessage[]} */
const LISTED = [
  { type: 'project:list', projects: [A, B] },
  { type: 'session:list', projectId: 'a', archived: false, sessions: [OLD, NEW] },
  { type: 'session:list', projectId: 'b', archived: false, sessions: [] },
];
/** @param {import('./workspace.js').Workspace} workspace @param {string} [projectId] */
const titles = ({ sessions }, projectId = 'a') => sessions.get(projectId)?.map(({ title }) => title);

test('TC-2.1b: sessions are sorted by last activity and move up with it', () => {
  assert.deepEqual(titles(after(...LISTED)), ['new', 'old']);
  /** @type {import('../types/wire.js').ServerMessage} */
  const active = {
    type: 'session:state',
    sessionId: 'old',
    projectId: 'a',
    state: 'running',
    lastActiveAt: '2026-01-03T00:00:00.000Z',
  };
  const state = after(...LISTED, active);
  assert.deepEqual(titles(state), ['old', 'new']);
  assert.equal(find(state, 'old')?.state, 'running');
});

test('a created session is listed once, whichever message comes first', () => {
  const session = { ...NEW, id: 'x', title: 'x', projectId: 'b' };
  /** @type {import('../types/wire.js').ServerMessage} */
  const created = { type: 'session:created', sessionId: 'x', projectId: 'b', session };
  assert.deepEqual(titles(after(...LISTED, created, created), 'b'), ['x']);
  // Before the list has arrived the event is ignored; the list will contain the session.
  assert.equal(after({ type: 'project:list', projects: [A] }, { ...created }).sessions.size, 0);
});

test('a session moves between the lists when archived and unarchived', () => {
  /** @type {import('../types/wire.js').ServerMessage[]} */
  const archived = [
    { type: 'session:list', projectId: 'a', archived: true, sessions: [] },
    { type: 'session:archived', sessionId: 'old' },
  ];
  const state = after(...LISTED, ...archived);
  assert.deepEqual(titles(state), ['new']);
  assert.deepEqual(
    state.archived.get('a')?.map(({ id, archived }) => [id, archived]),
    [['old', true]],
  );
  const back = apply(state, { type: 'session:unarchived', sessionId: 'old', session: OLD });
  assert.deepEqual(titles(back), ['new', 'old']);
  assert.deepEqual(back.archived.get('a'), []);
});

test('a deleted session is removed, a renamed one gets its new title', () => {
  const state = after(
    ...LISTED,
    { type: 'session:deleted', sessionId: 'new' },
    { type: 'session:title-updated', sessionId: 'old', title: 'Fix auth' },
  );
  assert.deepEqual(titles(state), ['Fix auth']);
  assert.equal(find(state, 'new'), undefined);
});

test('TC-1.3b: removing a project removes its sessions', () => {
  assert.equal(find(after(...LISTED, { type: 'project:removed', projectId: 'a' }), 'old'), undefined);
  assert.equal(find(after(...LISTED, { type: 'project:list', projects: [B] }), 'old'), undefined);
});

test('the workspace is complete once every project has its list', () => {
  assert.equal(complete(EMPTY), false);
  assert.equal(complete(after(...LISTED.slice(0, 2))), false);
  assert.equal(complete(after(...LISTED)), true);
});

test('an agent has the status of the latest message', () => {
  /** @type {import('../types/wire.js').AgentSummary[]} */
  const agents = [{ cliType: 'codex', name: 'Codex', badge: 'CX', found: true, readiness: 'ready', status: 'idle' }];
  const state = after(
    { type: 'hello', bootId: 'x', version: '1', agents, permissions: 'allow', notices: [] },
    { type: 'agent:status', cliType: 'codex', status: 'disconnected', reason: 'it crashed' },
  );
  assert.deepEqual(state.agents, [{ ...agents[0], status: 'disconnected', reason: 'it crashed' }]);
});

test('notices of a running server replace those of its greeting', () => {
  const greeting = { bootId: 'x', version: '1', agents: [], permissions: /** @type {const} */ ('allow') };
  const state = after(
    { type: 'hello', ...greeting, notices: ['before'] },
    { type: 'notices', notices: ['before', 'nothing can be saved'] },
  );
  assert.deepEqual(state.notices, ['before', 'nothing can be saved']);
});

test('a conversation message does not change the workspace', () => {
  const state = after(...LISTED);
  assert.equal(apply(state, { type: 'session:chunk', sessionId: 'old', entryId: 'e', content: 'x', seq: 1 }), state);
});
