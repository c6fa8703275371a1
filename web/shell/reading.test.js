import assert from 'node:assert/strict';
import { test } from 'node:test';
import { receive, requested, UNREAD } from './reading.js';

const info = /** @type {any} */ ({});
/** @param {number} seq @param {string} [bootId] @param {string} [requestId] @returns {import('../types/wire.js').ServerMessage} */
const history = (seq, bootId = 'b', requestId) => ({
  type: 'session:history',
  sessionId: 's',
  entries: [],
  first: 0,
  total: 0,
  seq,
  bootId,
  info,
  requestId,
});
/** @param {number} seq @returns {import('../types/wire.js').ServerMessage} */
const chunk = (seq) => ({ type: 'session:chunk', sessionId: 's', entryId: 'e', content: 'x', seq });
/** @type {import('../types/wire.js').ServerMessage} */
const resumed = { type: 'session:resumed', sessionId: 's', seq: 5, info, requestId: 'r1' };
/** @param {import('./reading.js').Reading} reading @param {import('../types/wire.js').ServerMessage[]} messages */
const passed = (reading, ...messages) => {
  let now = reading;
  return messages.map((message) => {
    const { reading: next, pass, gap } = receive(now, message);
    now = next;
    return gap ? 'gap' : pass;
  });
};

test('messages before the history are dropped', () => {
  const infoMessage = /** @type {any} */ ({ type: 'session:info', sessionId: 's', info });
  assert.deepEqual(passed(requested(UNREAD, 'r1'), chunk(4), infoMessage, resumed, history(5, 'b', 'r1'), chunk(6)), [
    false,
    false,
    false,
    true,
    true,
  ]);
});

test('each event passes once in order, and a gap is reported', () => {
  const { reading } = receive(UNREAD, history(5));
  assert.deepEqual(passed(reading, chunk(5), chunk(6), chunk(6), chunk(7), chunk(9)), [
    false,
    true,
    false,
    true,
    'gap',
  ]);
});

test('after a reconnect the stream resumes at the last position', () => {
  const { reading } = receive(receive(UNREAD, history(5)).reading, chunk(6));
  assert.deepEqual(requested(reading, 'r1'), { position: { bootId: 'b', seq: 6 }, asking: 'r1' });
  assert.deepEqual(passed(requested(reading, 'r1'), chunk(7), resumed, chunk(7)), [false, true, true]);
});

test('a history replaces the position', () => {
  const { reading } = receive(receive(UNREAD, history(50)).reading, history(2, 'c'));
  assert.deepEqual(reading, { position: { bootId: 'c', seq: 2 }, asking: null });
});

test('while a request is open, responses to other requests are dropped', () => {
  const { reading } = receive(UNREAD, history(50));
  const otherResponse = history(51, 'b', 'r1');
  assert.deepEqual(
    passed(requested(reading, 'r2'), otherResponse, resumed, history(52), history(53, 'b', 'r2'), chunk(54)),
    [false, false, false, true, true],
  );
});
