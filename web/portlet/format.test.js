import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clock, counted, duration, short, size, unfenced, within } from './format.js';

test('longer durations are shown with coarser units', () => {
  assert.deepEqual([0, 340, 999, 1000, 59_999, 61_000, 3_720_000].map(duration), [
    '0 s',
    '0.3 s',
    '1 s',
    '1 s',
    '59 s',
    '1 min 1 s',
    '1 h 2 min',
  ]);
});

test('a clock shows minutes and seconds, and hours from one hour on', () => {
  assert.deepEqual([-5, 7000, 750_000, 3_723_000].map(clock), ['0:00', '0:07', '12:30', '1:02:03']);
});

test('counts and sizes are abbreviated', () => {
  assert.deepEqual([950, 12_345, 999_499, 999_999, 1_250_000].map(short), ['950', '12.3k', '999k', '1M', '1.3M']);
  assert.deepEqual([12, 2048, 5_400_000].map(size), ['12 B', '2 KB', '5.1 MB']);
  assert.deepEqual([counted(1, 'read'), counted(2, 'search', 'searches')], ['1 read', '2 searches']);
});

test('only a path inside the project is made relative', () => {
  assert.equal(within('/code/app/src/a.rs', '/code/app'), 'src/a.rs');
  assert.equal(within('/code/application/a.rs', '/code/app'), '/code/application/a.rs');
});

test('a code fence around the whole tool output is not shown, any other fence is', () => {
  assert.equal(unfenced('```\nls: no such file\n```'), 'ls: no such file');
  assert.equal(unfenced('```console\none\n\ntwo\n```\n'), 'one\n\ntwo');
  assert.equal(unfenced('````\na\n```rust\n```\n````'), 'a\n```rust\n```');
  assert.equal(unfenced('```\n```'), '');
  for (const text of ['plain', '```\nopen', 'before\n```\nx\n```', '```\na\n```\nand\n```\nb\n```', '``````']) {
    assert.equal(unfenced(text), text);
  }
});
