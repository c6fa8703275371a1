import assert from 'node:assert/strict';
import test from 'node:test';
import { initialValue, rulesOf, validate, valueText } from './form.js';

/** @typedef {import('./form.js').FormField} FormField */

/** @param {FormField['input']} input @param {boolean} [required] @returns {FormField} */
const field = (input, required = false) => ({ name: 'f', required, input });
const options = [
  { value: 'r', title: 'Red' },
  { value: 'b', title: 'Blue' },
];

test('an empty optional field has no value, an empty required one an error', () => {
  assert.deepEqual(validate(field({ type: 'text' }), ''), {});
  assert.deepEqual(validate(field({ type: 'choices', options }), []), {});
  assert.match(validate(field({ type: 'text' }, true), '').problem ?? '', /required/);
  assert.match(validate(field({ type: 'choice', options }, true), '').problem ?? '', /Choose/);
  assert.deepEqual(validate(field({ type: 'boolean' }, true), false), { value: false });
});

test('text length is counted in code points and formats are checked', () => {
  assert.match(validate(field({ type: 'text', minLength: 2 }), '😀').problem ?? '', /at least 2/);
  assert.deepEqual(validate(field({ type: 'text', maxLength: 1 }), '😀'), { value: '😀' });
  assert.match(validate(field({ type: 'text', format: 'email' }), 'a@b@c').problem ?? '', /e-mail/);
  assert.deepEqual(validate(field({ type: 'text', format: 'uri' }), 'mailto:a@b'), { value: 'mailto:a@b' });
  assert.match(validate(field({ type: 'text', format: 'uri' }), 'example.com').problem ?? '', /address/);
  assert.match(validate(field({ type: 'text', format: 'date' }), 'soon').problem ?? '', /date/);
});

test('a local date and time is converted back to UTC', () => {
  const moment = '2026-11-16T09:30:00.000Z';
  const time = field({ type: 'text', format: 'date-time', default: moment });
  assert.deepEqual(validate(time, initialValue(time)), { value: moment });
});

test('numbers outside the range or with an invalid format are rejected', () => {
  const count = field({ type: 'number', whole: true, minimum: 1, maximum: 9 });
  assert.deepEqual(validate(count, ' 4 '), { value: 4 });
  assert.match(validate(count, '1.5').problem ?? '', /whole/);
  assert.match(validate(count, '0').problem ?? '', /at least 1/);
  assert.match(validate(count, '10').problem ?? '', /at most 9/);
  assert.match(validate(count, 'four').problem ?? '', /a number/i);
  assert.match(validate(field({ type: 'number' }), 'Infinity').problem ?? '', /a number/i);
  assert.equal(rulesOf(count), 'A whole number from 1 to 9.');
});

test('too few selected options are rejected', () => {
  const some = field({ type: 'choices', options, minItems: 2 });
  assert.match(validate(some, ['r']).problem ?? '', /at least 2/);
  assert.deepEqual(validate(some, ['r', 'b']), { value: ['r', 'b'] });
});

test('option values are shown by their titles', () => {
  assert.equal(valueText(field({ type: 'choices', options }), ['r', 'b']), 'Red, Blue');
  assert.equal(valueText(field({ type: 'choice', options }), 'b'), 'Blue');
  assert.equal(valueText(field({ type: 'boolean' }), false), 'No');
  assert.equal(valueText(field({ type: 'number' }), 7), '7');
});
