import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromStored } from './places.js';

test('only valid stored scroll positions are loaded, at most 200', () => {
  const place = { entryId: 'e1', offset: 12.5 };
  assert.deepEqual(fromStored({ a: place, b: null, c: 7, d: { entryId: 1, offset: 2 }, e: { entryId: 'x' } }), [
    ['a', place],
  ]);
  for (const nonsense of [null, 3, 'x', [place]]) assert.deepEqual(fromStored(nonsense), []);
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, number) => [`s${number}`, place]));
  assert.equal(fromStored(many).length, 200);
  assert.equal(fromStored(many).at(-1)?.[0], 's299');
});
