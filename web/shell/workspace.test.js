import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ambiguousPlaces, apply, EMPTY } from './workspace.js';

/** @param {string} id @param {string} addedAt @param {string} [path] */
const project = (id, addedAt, path = `/code/${id}`) => ({ id, path, name: path.split('/').at(-1) ?? '', addedAt });
const A = project('a', '2026-01-01T00:00:00.000Z');
const B = project('b', '2026-01-01T00:00:00.001Z');
const C = project('c', '2026-01-02T00:00:00.000Z');

/** @param {import('../types/wire.js').ServerMessage[]} messages */
const after = (...messages) => messages.reduce(apply, EMPTY);
/** @param {import('./workspace.js').Workspace} workspace */
const ids = (workspace) => workspace.projects?.map(({ id }) => id);

test('nothing is known before the first list', () => {
  assert.equal(after().projects, null);
});

test('a restored project returns to its place', () => {
  const state = after(
    { type: 'project:list', projects: [A, B, C] },
    { type: 'project:removed', projectId: 'b' },
    { type: 'project:added', project: B },
  );
  assert.deepEqual(ids(state), ['a', 'b', 'c']);
});

test('an event that the list already contained changes nothing', () => {
  const state = after({ type: 'project:list', projects: [A, B] }, { type: 'project:added', project: B });
  assert.deepEqual(ids(state), ['a', 'b']);
});

test('a message of an unknown type is ignored', () => {
  const unknown = /** @type {any} */ ({ type: 'session:sparkle' });
  assert.deepEqual(after({ type: 'project:list', projects: [A] }, unknown).projects, [A]);
});

test('another version after a reconnect makes the page stale, the same one does not', () => {
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

test('equal names are told apart by their parent folder', () => {
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
