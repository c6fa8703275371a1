import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryDelay } from './socket.js';

test('retry delays grow from zero to five seconds', () => {
  const delays = [0, 1, 2, 3, 4, 5, 6, 1000].map(retryDelay);
  assert.deepEqual(delays, [0, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
});
