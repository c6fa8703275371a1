import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compare, diff } from './diff.js';

const SIGNS = { same: ' ', removed: '-', added: '+' };
/** @param {import('./diff.js').Diff} result */
const shown = ({ hunks }) =>
  hunks.map((lines) => lines.map(({ kind, parts }) => SIGNS[kind] + parts.map(({ text }) => text).join('')));

test('all lines of a new file are added', () => {
  const result = diff(undefined, 'a\nb\n');
  assert.deepEqual(shown(result), [['+a', '+b']]);
  assert.deepEqual([result.added, result.removed], [2, 0]);
});

test('equal texts have no hunks', () => {
  assert.deepEqual(diff('a\nb', 'a\nb\n').hunks, []);
});

test('distant changes form separate hunks with correct line numbers', () => {
  const old = Array.from({ length: 30 }, (_, line) => `line ${line + 1}`);
  const now = old.with(4, 'changed').toSpliced(20, 1);
  const { hunks, added, removed } = diff(old.join('\n'), now.join('\n'));
  assert.equal(hunks.length, 2);
  assert.deepEqual([added, removed], [1, 2]);
  assert.deepEqual([hunks[0][0].old, hunks[0].at(-1)?.old], [2, 8]);
  assert.deepEqual([hunks[1][0].old, hunks[1].at(-1)?.new], [18, 23]);
});

test('changed words are marked unless most words changed', () => {
  const [[removed, added]] = diff('let total = price * 2;', 'let total = price * count;').hunks;
  assert.deepEqual(
    removed.parts.filter(({ changed }) => changed),
    [{ text: '2', changed: true }],
  );
  assert.deepEqual(
    added.parts.filter(({ changed }) => changed),
    [{ text: 'count', changed: true }],
  );
  const [[before]] = diff('one two three', 'wholly { different } things').hunks;
  assert.deepEqual(before.parts, [{ text: 'one two three', changed: false }]);
});

test('every edit script transforms the old list into the new one', () => {
  let seed = 7;
  const random = /** @param {number} below */ (below) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * below);
  };
  for (let round = 0; round < 300; round += 1) {
    const list = () => Array.from({ length: random(14) }, () => 'abcd'[random(4)]);
    const [old, now] = [list(), list()];
    const steps = compare(old, now, round % 3 === 0 ? 3 : 1000);
    const [a, b] = [[...old], [...now]];
    for (const step of steps) {
      if (step === 'same') assert.equal(a.shift(), b.shift());
      else if (step === 'removed') a.shift();
      else b.shift();
    }
    assert.deepEqual([a, b], [[], []]);
  }
});

test('a diff of two large unrelated texts is bounded in time', () => {
  const text = /** @param {string} word */ (word) =>
    Array.from({ length: 20_000 }, (_, n) => `${word} ${n}`).join('\n');
  const began = performance.now();
  const { added, removed } = diff(text('old'), text('new'));
  assert.deepEqual([added, removed], [20_000, 20_000]);
  assert.ok(performance.now() - began < 5000);
});
