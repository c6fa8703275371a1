import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchingItems } from './find.js';
import { apply, emptyTranscript } from './transcript.js';

/** @param {any[]} entries */
function items(entries) {
  const transcript = emptyTranscript();
  const numbered = entries.map((entry, at) => ({ entryId: `e${at}`, ...entry }));
  apply(
    transcript,
    /** @type {any} */ ({
      type: 'session:history',
      entries: numbered,
      first: 0,
      total: entries.length,
      seq: 1,
      info: {},
    }),
    0,
  );
  return transcript.items;
}

test('text is found in messages, answers and tool calls, ignoring case', () => {
  const all = items([
    { type: 'user', content: 'Where is the Needle?' },
    { type: 'assistant', content: 'Nowhere.' },
    { type: 'tool-call', name: 'Run', content: [{ type: 'terminal', terminalId: 't', output: 'a needle\n' }] },
    { type: 'tool-call', name: 'Needle search', result: 'none' },
    { type: 'turn', outcome: 'ended' },
  ]);
  assert.deepEqual(
    matchingItems(all, 'needle').map(({ number }) => number),
    [0, 2, 3],
  );
  assert.deepEqual(matchingItems(all, 'thread'), []);
  assert.deepEqual(matchingItems(all, ''), []);
});
