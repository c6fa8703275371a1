import assert from 'node:assert/strict';
import { test } from 'node:test';
import { challengeIn, retryDelay } from './socket.js';

test('retry delays grow from zero to five seconds', () => {
  const delays = [0, 1, 2, 3, 4, 5, 6, 1000].map(retryDelay);
  assert.deepEqual(delays, [0, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
});

test('a first frame is a challenge only if it has all fields of one', () => {
  const challenge = { type: 'challenge', nonce: 'a', signature: 'b' };
  assert.deepEqual(challengeIn(JSON.stringify({ ...challenge, more: 1 })), challenge);
  for (const text of ['', '{', 'null', '[]', '{"type":"hello"}', '{"type":"challenge","nonce":1,"signature":"b"}']) {
    assert.equal(challengeIn(text), null, text);
  }
});
