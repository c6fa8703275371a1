import assert from 'node:assert/strict';
import test from 'node:test';
import { asJsonLines, asScript, filtered } from './traffic-script.js';

/** @param {'agent' | 'client'} from @param {string} label @param {unknown} message */
const frame = (from, label, message) => ({
  number: 1,
  at: 0,
  from,
  label,
  bytes: 9,
  cut: false,
  text: typeof message === 'string' ? message : JSON.stringify(message),
});
const update = { sessionUpdate: 'plan', entries: [] };
const FRAMES = [
  frame('client', 'session/prompt', { id: 1, method: 'session/prompt', params: { sessionId: 's' } }),
  frame('agent', 'session/update plan', { method: 'session/update', params: { sessionId: 's', update } }),
  frame('agent', 'fs/read_text_file', { id: 2, method: 'fs/read_text_file', params: { sessionId: 's', path: 'a' } }),
  frame('client', 'answer to fs/read_text_file', { id: 2, result: {} }),
  frame('agent', 'answer to session/prompt', { id: 1, result: { stopReason: 'refusal' } }),
  frame('agent', 'cut', '{"a …[9 bytes cut]… '),
  frame('agent', 'error to session/prompt', { id: 3, error: { code: -32000, message: 'no' } }),
];

test('agent messages become script commands, one block per turn', () => {
  const script = `update ${JSON.stringify(update)}\nask fs/read_text_file {"path":"a"}\nstop refusal\n\nfail -32000 no\n`;
  assert.equal(asScript(FRAMES), script);
  assert.equal(asScript([]), '');
});

test('JSON lines contain every frame, including truncated ones', () => {
  const lines = asJsonLines(FRAMES).trimEnd().split('\n');
  assert.equal(lines.length, FRAMES.length);
  assert.deepEqual(JSON.parse(lines[3]), {
    at: '1970-01-01T00:00:00.000Z',
    from: 'client',
    bytes: 9,
    message: { id: 2, result: {} },
  });
  assert.equal(typeof JSON.parse(lines[5]).message, 'string');
});

test('the filter searches labels and texts and can select one direction', () => {
  assert.equal(filtered(FRAMES, '', 'both').length, FRAMES.length);
  assert.equal(filtered(FRAMES, '', 'client').length, 2);
  assert.deepEqual(
    filtered(FRAMES, 'prompt REFUSAL', 'both').map(({ label }) => label),
    ['answer to session/prompt'],
  );
});
