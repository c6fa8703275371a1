import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indexOf, rowAt, rowCount, sections } from './sidebar-rows.js';

/** @param {string} id */
const project = (id) => ({ id, name: id, path: `/${id}`, addedAt: '' });
/** @param {string} id @param {string} [title] @returns {import('../types/wire.js').SessionListItem} */
const session = (id, title = id) => ({
  id,
  projectId: '',
  title,
  lastActiveAt: '',
  createdAt: '',
  cliType: '',
  archived: false,
  state: 'idle',
});
const LISTS = new Map([
  ['a', [session('a1', 'Fix the login'), session('a2', 'Login tests'), session('a3')]],
  ['b', []],
  ['c', [session('c1', 'fix it')]],
]);
/** @param {Partial<import('./sidebar-rows.js').View>} [view] */
const laidOut = (view) =>
  sections({
    projects: ['a', 'b', 'c', 'd'].map(project),
    lists: LISTS,
    isCollapsed: () => false,
    filter: '',
    archived: false,
    ...view,
  });
/** @param {import('./sidebar-rows.js').Section[]} all */
const keys = (all) => Array.from({ length: rowCount(all) }, (_, index) => rowAt(all, index)?.key);

test('each project is followed by its sessions or by an empty row', () => {
  assert.deepEqual(keys(laidOut()), [
    'project a',
    'session a1',
    'session a2',
    'session a3',
    'project b',
    'empty b',
    'project c',
    'session c1',
    'project d', // Its list has not arrived yet, so it has no empty row.
  ]);
});

test('a collapsed project is one row', () => {
  assert.deepEqual(keys(laidOut({ isCollapsed: (id) => id !== 'c' })), [
    'project a',
    'project b',
    'project c',
    'session c1',
    'project d',
  ]);
});

test('a filter matches all words in titles, also in collapsed projects', () => {
  assert.deepEqual(keys(laidOut({ filter: ' LOGIN fix ', isCollapsed: () => true })), ['project a', 'session a1']);
  assert.deepEqual(keys(laidOut({ filter: 'fix' })), ['project a', 'session a1', 'project c', 'session c1']);
  assert.deepEqual(keys(laidOut({ filter: 'nope' })), []);
});

test('the archived view omits projects without archived sessions', () => {
  assert.deepEqual(keys(laidOut({ archived: true, lists: new Map([['c', [session('c9')]]]) })), [
    'project c',
    'session c9',
  ]);
});

test('rows and their numbers map to each other, outside the range to none', () => {
  const all = laidOut();
  for (const [index, key] of keys(all).entries()) {
    if (key && !key.startsWith('empty')) assert.equal(indexOf(all, key), index, key);
  }
  assert.equal(rowAt(all, -1), undefined);
  assert.equal(rowAt(all, rowCount(all)), undefined);
  assert.equal(rowAt([], 0), undefined);
  assert.equal(indexOf(all, 'session nope'), -1);
});
