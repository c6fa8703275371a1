import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryDelay } from './socket.js';

test('the pauses between attempts grow from none to five seconds and stay there', () => {
  const delays = [0, 1, 2, 3, 4, 5, 6, 1000].map(retryDelay);
  assert.deepEqual(delays, [0, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
});
