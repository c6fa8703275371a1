import assert from 'node:assert/strict';
import test from 'node:test';
import { inWords, read, rulesOf, untouched } from './form.js';

/** @typedef {import('./form.js').FormField} FormField */

/** @param {FormField['input']} input @param {boolean} [required] @returns {FormField} */
const field = (input, required = false) => ({ name: 'f', required, input });
const options = [
  { value: 'r', title: 'Red' },
  { value: 'b', title: 'Blue' },
];

test('what is left empty is left out, unless it is needed', () => {
  assert.deepEqual(read(field({ type: 'text' }), ''), {});
  assert.deepEqual(read(field({ type: 'choices', options }), []), {});
  assert.match(read(field({ type: 'text' }, true), '').problem ?? '', /needed/);
  assert.match(read(field({ type: 'choice', options }, true), '').problem ?? '', /Choose/);
  assert.deepEqual(read(field({ type: 'boolean' }, true), false), { value: false });
});

test('text is counted in characters and has its format', () => {
  assert.match(read(field({ type: 'text', minLength: 2 }), '😀').problem ?? '', /at least 2/);
  assert.deepEqual(read(field({ type: 'text', maxLength: 1 }), '😀'), { value: '😀' });
  assert.match(read(field({ type: 'text', format: 'email' }), 'a@b@c').problem ?? '', /e-mail/);
  assert.deepEqual(read(field({ type: 'text', format: 'uri' }), 'mailto:a@b'), { value: 'mailto:a@b' });
  assert.match(read(field({ type: 'text', format: 'uri' }), 'example.com').problem ?? '', /address/);
  assert.match(read(field({ type: 'text', format: 'date' }), 'soon').problem ?? '', /date/);
});

test('a time is sent as the moment it is here', () => {
  const moment = '2026-11-16T09:30:00.000Z';
  const time = field({ type: 'text', format: 'date-time', default: moment });
  assert.deepEqual(read(time, untouched(time)), { value: moment });
});

test('numbers are numbers, in their range', () => {
  const count = field({ type: 'number', whole: true, minimum: 1, maximum: 9 });
  assert.deepEqual(read(count, ' 4 '), { value: 4 });
  assert.match(read(count, '1.5').problem ?? '', /whole/);
  assert.match(read(count, '0').problem ?? '', /at least 1/);
  assert.match(read(count, '10').problem ?? '', /at most 9/);
  assert.match(read(count, 'four').problem ?? '', /a number/i);
  assert.match(read(field({ type: 'number' }), 'Infinity').problem ?? '', /a number/i);
  assert.equal(rulesOf(count), 'A whole number from 1 to 9.');
});

test('as many are chosen as there may be', () => {
  const some = field({ type: 'choices', options, minItems: 2 });
  assert.match(read(some, ['r']).problem ?? '', /at least 2/);
  assert.deepEqual(read(some, ['r', 'b']), { value: ['r', 'b'] });
});

test('answers are told by their titles', () => {
  assert.equal(inWords(field({ type: 'choices', options }), ['r', 'b']), 'Red, Blue');
  assert.equal(inWords(field({ type: 'choice', options }), 'b'), 'Blue');
  assert.equal(inWords(field({ type: 'boolean' }), false), 'No');
  assert.equal(inWords(field({ type: 'number' }), 7), '7');
});
