import assert from 'node:assert/strict';
import { test } from 'node:test';
import { summary, toRows } from './rows.js';

/** @typedef {import('./transcript.js').Item} Item */

/**
 * One item per letter: u is a user message, a an answer, t the end of a turn, r and e are finished tool calls (a read,
 * an edit), R is a running call, F a failed one.
 * @param {string} letters @param {number} [first]
 * @returns {Item[]}
 */
const items = (letters, first = 0) =>
  [...letters].map((letter, index) => {
    const types = { u: 'user', a: 'assistant', t: 'turn' };
    const type = types[/** @type {'u'} */ (letter)] ?? 'tool-call';
    const status = letter === 'R' ? 'running' : letter === 'F' ? 'error' : 'complete';
    const kind = letter === 'e' ? 'edit' : 'read';
    const entry = { type, status, kind, entryId: `e${first + index}` };
    return /** @type {Item} */ (/** @type {unknown} */ ({ id: entry.entryId, number: first + index, entry }));
  });
const none = () => false;
/** @param {import('./rows.js').Row[]} rows */
const shape = (rows) => rows.map(({ items: { length } }) => length);

test('three consecutive finished tool calls are grouped, two are not', () => {
  assert.deepEqual(shape(toRows([], items('urreat'), 0, none)), [1, 3, 1, 1]);
  assert.deepEqual(shape(toRows([], items('urrat'), 0, none)), [1, 1, 1, 1, 1]);
});

test('a running, failed or excluded tool call is not grouped', () => {
  assert.deepEqual(shape(toRows([], items('rrrRrrrF'), 0, none)), [3, 1, 3, 1]);
  assert.deepEqual(shape(toRows([], items('rrrrr'), 0, ({ number }) => number === 3)), [3, 1, 1]);
});

test('rows built item by item equal rows built at once', () => {
  const all = items('uarrRatuFrrrrreauaRrrrt');
  for (let count = 1; count <= all.length; count += 1) {
    let rows = toRows([], all.slice(0, count), 0, none);
    for (let more = count + 1; more <= all.length; more += 1) {
      rows = toRows(rows, all.slice(0, more), more - 2, none);
    }
    assert.deepEqual(rows, toRows([], all, 0, none), `from ${count}`);
  }
});

test('rows before a change are reused', () => {
  const all = items('uarrrat');
  const before = toRows([], all, 0, none);
  const rows = toRows(before, [...all, ...items('ua', 7)], 6, none);
  assert.equal(rows[0], before[0]);
  assert.equal(rows[2], before[2]);
});

test('items added at the front rebuild all rows', () => {
  const late = items('at', 4);
  assert.deepEqual(shape(toRows(toRows([], late, 4, none), [...items('urrr'), ...late], 0, none)), [1, 3, 1, 1]);
});

test('the summary of a group counts its kinds of tool calls', () => {
  assert.equal(summary(items('rrer')), '3 reads, 1 edit');
});
