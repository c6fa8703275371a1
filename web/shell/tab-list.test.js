import assert from 'node:assert/strict';
import { test } from 'node:test';
import { add, close, fromStored, keep, move, NO_TABS, open, reopen, showNone, step, toStored } from './tab-list.js';

/** @param {string[]} order @param {string | null} active */
const tabs = (order, active) => ({ order, active });
const ABC = tabs(['a', 'b', 'c'], 'b');

test('opening appends a tab once and activates it', () => {
  assert.deepEqual(open(open(NO_TABS, 'a'), 'b'), tabs(['a', 'b'], 'b'));
  assert.deepEqual(open(ABC, 'a'), tabs(['a', 'b', 'c'], 'a'));
  assert.deepEqual(add(ABC, 'd'), tabs(['a', 'b', 'c', 'd'], 'b'));
});

test('reopened tabs return to their positions and to the active state', () => {
  const before = tabs(['a', 'b', 'c', 'd'], 'b');
  const closed = keep(before, (id) => id === 'c');
  assert.deepEqual(reopen(closed, before, ['a', 'b', 'd']), before);
  assert.deepEqual(reopen(closed, before, ['a']), tabs(['a', 'c'], 'c'));
  // Tabs opened since then are kept; a tab that is already open again is not duplicated.
  assert.deepEqual(reopen(tabs(['c', 'x', 'a'], 'x'), before, ['a', 'b']), tabs(['a', 'b', 'c', 'x'], 'b'));
});

test('closing the active tab activates the next one or else the previous', () => {
  assert.deepEqual(close(ABC, 'b'), tabs(['a', 'c'], 'c'));
  assert.deepEqual(close(tabs(['a', 'b', 'c'], 'c'), 'c'), tabs(['a', 'b'], 'b'));
  assert.deepEqual(close(ABC, 'a'), tabs(['b', 'c'], 'b'));
  assert.deepEqual(close(tabs(['a'], 'a'), 'a'), NO_TABS);
  assert.equal(close(ABC, 'x'), ABC);
});

test('a tab is moved to a position among the others, within the range', () => {
  assert.deepEqual(move(ABC, 'c', 1).order, ['a', 'c', 'b']);
  assert.deepEqual(move(ABC, 'a', 99).order, ['b', 'c', 'a']);
  assert.deepEqual(move(ABC, 'c', -1).order, ['c', 'a', 'b']);
  assert.equal(move(ABC, 'x', 0), ABC);
});

test('stepping wraps around and starts at an end if no tab is active', () => {
  assert.equal(step(ABC, 1).active, 'c');
  assert.equal(step(tabs(['a', 'b', 'c'], 'c'), 1).active, 'a');
  assert.equal(step(tabs(['a', 'b', 'c'], 'a'), -1).active, 'c');
  assert.equal(step(showNone(ABC), 1).active, 'a');
  assert.equal(step(showNone(ABC), -1).active, 'c');
  assert.deepEqual(step(NO_TABS, 1), NO_TABS);
});

test('closing several tabs activates the nearest remaining one', () => {
  assert.deepEqual(
    keep(ABC, (id) => id === 'a'),
    tabs(['a'], 'a'),
  );
  assert.equal(
    keep(ABC, () => true),
    ABC,
  );
});

test('a stored tab list is restored', () => {
  assert.deepEqual(fromStored(JSON.parse(JSON.stringify(toStored(ABC)))), ABC);
});

test('stored order is kept, missing tabs are appended, invalid ids dropped', () => {
  const stored = { openTabs: ['a', 'b', 'c', 7, ''], activeTab: 'z', tabOrder: ['c', 'x', 'a', 'c'] };
  assert.deepEqual(fromStored(stored), tabs(['c', 'a', 'b'], null));
  for (const nonsense of [null, 3, 'x', [], { openTabs: 'a' }]) {
    assert.deepEqual(fromStored(nonsense)?.order ?? [], [], JSON.stringify(nonsense));
  }
});
