import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holding } from './find.js';
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

test('words are found in what people and agents said and in what tools wrote, whatever the case', () => {
  const all = items([
    { type: 'user', content: 'Where is the Needle?' },
    { type: 'assistant', content: 'Nowhere.' },
    { type: 'tool-call', name: 'Run', content: [{ type: 'terminal', terminalId: 't', output: 'a needle\n' }] },
    { type: 'tool-call', name: 'Needle search', result: 'none' },
    { type: 'turn', outcome: 'ended' },
  ]);
  assert.deepEqual(
    holding(all, 'needle').map(({ number }) => number),
    [0, 2, 3],
  );
  assert.deepEqual(holding(all, 'thread'), []);
  assert.deepEqual(holding(all, ''), []);
});
