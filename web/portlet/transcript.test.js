import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apply, emptyTranscript, mayGrow, optimistic, setPageRequested, TERMINAL_OUTPUT_MAX } from './transcript.js';

/** @typedef {import('../types/wire.js').ChatEntry} ChatEntry */
/** @typedef {import('../types/wire.js').ServerMessage} ServerMessage */

const sessionId = 'a:1';
/** @type {import('../types/wire.js').SessionInfo} */
const INFO = {
  state: 'idle',
  attachment: 'attached',
  policy: 'allow',
  queue: [],
  queueHeld: false,
  permissions: [],
  questions: [],
  commands: [],
  options: [],
  takesImages: false,
};
const WORKING = { ...INFO, turn: { startedAt: '', phase: /** @type {const} */ ('working') } };
/** @param {string} entryId @param {string} content @returns {ChatEntry} */
const answer = (entryId, content) => ({ type: 'assistant', entryId, content, timestamp: '' });
/** @param {string} entryId @param {string} [requestId] @returns {ChatEntry} */
const userMessage = (entryId, requestId) => ({ type: 'user', entryId, content: entryId, timestamp: '', requestId });
/** @param {ChatEntry[]} entries @param {Partial<Extract<ServerMessage, { type: 'session:history' }>>} [more] @returns {ServerMessage} */
const history = (entries, more) => ({
  type: 'session:history',
  sessionId,
  entries,
  first: 0,
  total: entries.length,
  seq: 0,
  bootId: 'b',
  info: INFO,
  ...more,
});
/** @param {number} seq @param {ChatEntry} entry @param {import('../types/wire.js').Rendered} [html] @returns {ServerMessage} */
const update = (seq, entry, html) => ({ type: 'session:update', sessionId, entry, seq, html });
/** @type {typeof update} */
const begun = (seq, entry, html) => ({ type: 'session:update', sessionId, entry, begins: true, seq, html });
/** @param {number} seq @param {string} entryId @param {string} content @param {object} [more] @returns {ServerMessage} */
const chunk = (seq, entryId, content, more) => ({ type: 'session:chunk', sessionId, entryId, content, seq, ...more });

/** @param {...ServerMessage} messages */
const after = (...messages) => {
  const transcript = emptyTranscript();
  for (const [at, message] of messages.entries()) apply(transcript, message, at);
  return transcript;
};
/** @param {import('./transcript.js').Transcript} transcript */
const texts = ({ items }) => items.map(({ entry }) => ('content' in entry ? entry.content : entry.type));

test('begun entries are added, chunks extend text, updates replace it', () => {
  const transcript = after(
    history([]),
    begun(1, userMessage('e1')),
    begun(2, answer('e2', 'Hel')),
    chunk(3, 'e2', 'lo'),
    update(4, answer('e2', 'Hello there')),
  );
  assert.deepEqual(texts(transcript), ['e1', 'Hello there']);
  assert.equal(transcript.seq, 4);
});

test('an event replayed after a reconnect is applied once', () => {
  const transcript = after(history([answer('e1', 'a')], { seq: 5 }), chunk(6, 'e1', 'b'));
  assert.deepEqual(apply(transcript, chunk(6, 'e1', 'b'), 0).items, []);
  apply(transcript, chunk(5, 'e1', 'x'), 0);
  assert.deepEqual(texts(transcript), ['ab']);
});

test('a chunk for an unknown entry changes nothing', () => {
  assert.deepEqual(texts(after(history([]), chunk(1, 'e9', 'x'))), []);
});

/** @param {number} seq @param {ChatEntry[]} entries @returns {ServerMessage} */
const firstPage = (seq, ...entries) => ({ type: 'session:page', sessionId, entries, first: 0, total: 3, seq });

test('a page of older entries is added in front only if it adjoins', () => {
  const transcript = after(history([answer('e3', 'c')], { first: 2, total: 3 }));
  const page = firstPage(0, answer('e1', 'a'), answer('e2', 'b'));
  assert.equal(apply(transcript, page, 0).all, true);
  assert.deepEqual(texts(transcript), ['a', 'b', 'c']);
  assert.deepEqual(
    transcript.items.map(({ number }) => number),
    [0, 1, 2],
  );
  apply(transcript, page, 0);
  assert.equal(transcript.items.length, 3);
});

test('an event for an entry that is not loaded adds no entry', () => {
  const transcript = after(history([answer('e3', 'c')], { first: 2, total: 3 }));
  apply(transcript, update(1, answer('e1', 'as it is now')), 0);
  apply(transcript, chunk(2, 'e1', '!'), 0);
  assert.deepEqual(texts(transcript), ['c']);
  apply(transcript, firstPage(2, answer('e1', 'as it is now!'), answer('e2', 'b')), 0);
  assert.deepEqual(texts(transcript), ['as it is now!', 'b', 'c']);
});

test('events during a page request are applied once, in any order', () => {
  for (const seq of [0, 1, 2, 3]) {
    const transcript = after(history([answer('e3', 'c')], { first: 2, total: 3 }));
    setPageRequested(transcript, true);
    for (const [at, letter] of ['x', 'y', 'z'].entries()) apply(transcript, chunk(at + 1, 'e1', letter), 0);
    apply(transcript, firstPage(seq, answer('e1', ['w', 'wx', 'wxy', 'wxyz'][seq]), answer('e2', 'b')), 0);
    assert.deepEqual(texts(transcript), ['wxyz', 'b', 'c']);
    apply(transcript, chunk(4, 'e1', '!'), 0);
    assert.deepEqual(texts(transcript), ['wxyz!', 'b', 'c']);
  }
});

test('TC-3.1a: a sent message appears at once and is then confirmed', () => {
  const transcript = after(history([]));
  const item = optimistic(transcript, 'u-1', 'hi', [], '');
  assert.equal(transcript.sent[0], item);
  apply(transcript, begun(1, userMessage('e1', 'u-1')), 0);
  assert.deepEqual(transcript.sent, []);
  assert.equal(transcript.items[0].id, 'u-1');
  assert.equal(transcript.items[0].sending, null);
});

test('a sent message found in a history or in the queue is shown once', () => {
  const transcript = after(history([]));
  optimistic(transcript, 'u-1', 'hi', [], '');
  optimistic(transcript, 'u-2', 'ho', [], '');
  apply(transcript, history([userMessage('e1', 'u-1')]), 0);
  assert.deepEqual(
    transcript.sent.map(({ id }) => id),
    ['u-2'],
  );
  const queue = [{ queueId: 'q', content: 'ho', requestId: 'u-2' }];
  apply(transcript, { type: 'session:info', sessionId, info: { ...INFO, queue } }, 0);
  assert.deepEqual(transcript.sent, []);
});

test('only the last entry of a running turn may grow', () => {
  const transcript = after(history([answer('e1', ''), answer('e2', '')], { info: WORKING }));
  assert.equal(mayGrow(transcript, transcript.items[0]), false);
  assert.equal(mayGrow(transcript, transcript.items[1]), true);
  const change = apply(transcript, { type: 'session:info', sessionId, info: INFO }, 0);
  assert.equal(mayGrow(transcript, transcript.items[1]), false);
  assert.deepEqual(change.items, [transcript.items[1]]);
});

test('a thought ends when the next entry begins', () => {
  const transcript = after(history([]));
  apply(transcript, begun(1, { type: 'thinking', entryId: 'e1', content: 'hm' }), 1000);
  apply(transcript, chunk(2, 'e1', 'm'), 1500);
  apply(transcript, begun(3, answer('e2', 'so')), 3000);
  const [thought] = transcript.items;
  assert.deepEqual([thought.began, thought.ended], [1000, 3000]);
});

test('finished parts are appended and the tail is replaced', () => {
  const [heading, paragraph, longer] = ['<h1>A</h1>', '<p>b</p>', '<p>bc</p>'].map((html) => ({ html }));
  const transcript = after(
    history([]),
    begun(1, answer('e1', '# A'), { tail: [heading] }),
    chunk(2, 'e1', '\n\nb', { html: { finished: [heading], tail: [paragraph] } }),
    chunk(3, 'e1', 'c', { html: { tail: [longer] } }),
  );
  assert.deepEqual(transcript.items[0].markup, { finished: [heading], tail: [longer] });
  const { generation } = transcript.items[0];
  const html = { finished: [longer] };
  apply(transcript, { type: 'session:complete', sessionId, entryId: 'e1', html, seq: 4 }, 0);
  assert.deepEqual(transcript.items[0].markup, { finished: [heading, longer], tail: [] });
  assert.equal(transcript.items[0].generation, generation, 'unchanged content is not rendered again');
});

/** @param {string} output @param {'running' | 'complete'} [status] @returns {ChatEntry} */
const command = (output, status = 'running') => ({
  type: 'tool-call',
  entryId: 'e1',
  toolCallId: 't',
  name: 'make',
  kind: 'execute',
  status,
  content: [{ type: 'terminal', terminalId: 'x', output }],
});
/** @param {import('./transcript.js').Transcript} transcript */
const output = ({ items: [{ entry }] }) => {
  const part = entry.type === 'tool-call' ? entry.content?.[0] : undefined;
  return part?.type === 'terminal' ? part.output : undefined;
};

test('output is added to its terminal and trimmed at the front', () => {
  const transcript = after(
    history([]),
    begun(1, command('a')),
    chunk(2, 'e1', 'b', { terminalId: 'x' }),
    chunk(3, 'e1', 'c', { terminalId: 'another' }),
  );
  assert.equal(output(transcript), 'ab');
  const { generation } = transcript.items[0];
  apply(transcript, update(4, command('ab', 'complete')), 0);
  assert.equal(transcript.items[0].generation, generation, 'unchanged output is not rendered again');
  for (let seq = 5; seq < 40; seq += 1) {
    apply(transcript, chunk(seq, 'e1', `${seq}`.padEnd(100_000), { terminalId: 'x' }), 0);
  }
  const length = output(transcript)?.length ?? 0;
  assert.ok(length >= TERMINAL_OUTPUT_MAX && length <= TERMINAL_OUTPUT_MAX * 1.1, `${length}`);
  assert.match(output(transcript) ?? '', /39 +$/);
});

test('a permission request changes its tool call when opened and closed', () => {
  const transcript = after(history([]), begun(1, command('')), begun(2, answer('e2', '')));
  const question = { permissionId: 'p', toolCallId: 't', title: '', options: [], guarded: false, askedAt: '' };
  /** @param {import('../types/wire.js').PermissionQuestion[]} permissions @returns {ServerMessage} */
  const info = (permissions) => ({ type: 'session:info', sessionId, info: { ...INFO, permissions } });
  assert.deepEqual(apply(transcript, info([question]), 0).items, [transcript.items[0]]);
  assert.deepEqual(apply(transcript, info([]), 0).items, [transcript.items[0]]);
});

test('messages of an unknown type are ignored', () => {
  const unknown = /** @type {ServerMessage} */ (/** @type {unknown} */ ({ type: 'session:weather' }));
  assert.deepEqual(apply(after(history([])), unknown, 0), { all: false, from: Infinity, items: [] });
});

test('a history keeps older items that adjoin it', () => {
  const older = [userMessage('e0'), userMessage('e1'), answer('e2', 'Hel')];
  const transcript = after(
    history(older),
    history([answer('e2', 'Hello'), userMessage('e3')], { first: 2, total: 4, seq: 9 }),
  );
  assert.deepEqual(texts(transcript), ['e0', 'e1', 'Hello', 'e3']);
  assert.deepEqual([transcript.first, transcript.items.map(({ number }) => number)], [0, [0, 1, 2, 3]]);
  const apart = after(history(older), history([userMessage('e7')], { first: 7, total: 8, seq: 9 }));
  assert.deepEqual([apart.first, texts(apart)], [7, ['e7']]);
  const ran = after(
    history([userMessage('e0'), command('', 'running'), userMessage('e2'), answer('e3', 'Hel')]),
    history([answer('e3', 'Hello')], { first: 3, total: 4, seq: 9 }),
  );
  assert.deepEqual([ran.first, texts(ran)], [2, ['e2', 'Hello']], 'a running call and what precedes it is dropped');
  const another = after(history(older), history([answer('e2', 'Else')], { first: 1, total: 2, seq: 9 }));
  assert.deepEqual([another.first, texts(another)], [1, ['Else']], 'items that do not adjoin are dropped');
});

test('items of a new history have new versions and generations', () => {
  const transcript = after(history([answer('e1', 'Hel')]));
  const [before] = transcript.items;
  apply(transcript, history([answer('e1', 'Hello')], { seq: 2 }), 1);
  const [now] = transcript.items;
  assert.notEqual(now.version, before.version);
  assert.notEqual(now.generation, before.generation);
});
