import assert from 'node:assert/strict';
import { test } from 'node:test';
import { add, bringBack, close, fromStored, keep, move, NO_TABS, open, showNone, step, toStored } from './tab-list.js';

/** @param {string[]} order @param {string | null} active */
const tabs = (order, active) => ({ order, active });
const ABC = tabs(['a', 'b', 'c'], 'b');

test('opening adds a tab at the end and shows it, once', () => {
  assert.deepEqual(open(open(NO_TABS, 'a'), 'b'), tabs(['a', 'b'], 'b'));
  assert.deepEqual(open(ABC, 'a'), tabs(['a', 'b', 'c'], 'a'));
  assert.deepEqual(add(ABC, 'd'), tabs(['a', 'b', 'c', 'd'], 'b'));
});

test('tabs that were closed come back to where they were, and one of them into view again', () => {
  const before = tabs(['a', 'b', 'c', 'd'], 'b');
  const closed = keep(before, (id) => id === 'c');
  assert.deepEqual(bringBack(closed, before, ['a', 'b', 'd']), before);
  assert.deepEqual(bringBack(closed, before, ['a']), tabs(['a', 'c'], 'c'));
  // What was opened since stays, what was opened again is not there twice.
  assert.deepEqual(bringBack(tabs(['c', 'x', 'a'], 'x'), before, ['a', 'b']), tabs(['a', 'b', 'c', 'x'], 'b'));
});

test('the tab in view gives way to the next one, the last one to the one before', () => {
  assert.deepEqual(close(ABC, 'b'), tabs(['a', 'c'], 'c'));
  assert.deepEqual(close(tabs(['a', 'b', 'c'], 'c'), 'c'), tabs(['a', 'b'], 'b'));
  assert.deepEqual(close(ABC, 'a'), tabs(['b', 'c'], 'b'));
  assert.deepEqual(close(tabs(['a'], 'a'), 'a'), NO_TABS);
  assert.equal(close(ABC, 'x'), ABC);
});

test('a tab is moved to a place counted without it, and never out of the row', () => {
  assert.deepEqual(move(ABC, 'c', 1).order, ['a', 'c', 'b']);
  assert.deepEqual(move(ABC, 'a', 99).order, ['b', 'c', 'a']);
  assert.deepEqual(move(ABC, 'c', -1).order, ['c', 'a', 'b']);
  assert.equal(move(ABC, 'x', 0), ABC);
});

test('steps go around the ends, and begin somewhere when nothing is in view', () => {
  assert.equal(step(ABC, 1).active, 'c');
  assert.equal(step(tabs(['a', 'b', 'c'], 'c'), 1).active, 'a');
  assert.equal(step(tabs(['a', 'b', 'c'], 'a'), -1).active, 'c');
  assert.equal(step(showNone(ABC), 1).active, 'a');
  assert.equal(step(showNone(ABC), -1).active, 'c');
  assert.deepEqual(step(NO_TABS, 1), NO_TABS);
});

test('several tabs that go at once leave the nearest one in view', () => {
  assert.deepEqual(
    keep(ABC, (id) => id === 'a'),
    tabs(['a'], 'a'),
  );
  assert.equal(
    keep(ABC, () => true),
    ABC,
  );
});

test('what was stored comes back', () => {
  assert.deepEqual(fromStored(JSON.parse(JSON.stringify(toStored(ABC)))), ABC);
});

test('the stored order wins, and what it forgot is added; nonsense is left out', () => {
  const stored = { openTabs: ['a', 'b', 'c', 7, ''], activeTab: 'z', tabOrder: ['c', 'x', 'a', 'c'] };
  assert.deepEqual(fromStored(stored), tabs(['c', 'a', 'b'], null));
  for (const nonsense of [null, 3, 'x', [], { openTabs: 'a' }]) {
    assert.deepEqual(fromStored(nonsense)?.order ?? [], [], JSON.stringify(nonsense));
  }
});
