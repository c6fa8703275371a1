import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchingChoices } from './palette.js';

const run = () => {};
const CHOICES = [
  { label: 'Fix the login', note: 'app', run },
  { label: 'Add a login page', note: 'lib', run },
  { label: 'Login', note: 'app', run },
];
/** @param {string} query */
const found = (query) => matchingChoices(CHOICES, query).map(({ label }) => label);

test('choices match all words in label or note, prefix matches first', () => {
  assert.deepEqual(found(''), ['Fix the login', 'Add a login page', 'Login']);
  assert.deepEqual(found('LOG'), ['Login', 'Fix the login', 'Add a login page']);
  assert.deepEqual(found('login lib'), ['Add a login page']);
  assert.deepEqual(found('nothing'), []);
});

test('exact matches precede prefixes, whole words precede partial ones', () => {
  const numbered = ['31', '21', '10', '1', '11'].map((number) => ({
    label: `say Session number ${number} of all`,
    run,
  }));
  const labels = (/** @type {string} */ query) =>
    matchingChoices(numbered, query).map(({ label }) => label.split(' ')[3]);
  assert.deepEqual(labels('number 1'), ['1', '10', '11', '31', '21']);
  const named = ['Login page', 'The login', 'Loginless', 'Login'].map((label) => ({ label, run }));
  assert.deepEqual(
    matchingChoices(named, 'login').map(({ label }) => label),
    ['Login', 'Login page', 'The login', 'Loginless'],
  );
});

test('the result is limited to 50 choices', () => {
  const many = Array.from({ length: 50_000 }, (_, number) => ({ label: `session ${number}`, run }));
  assert.equal(matchingChoices(many, '').length, 50);
  assert.equal(matchingChoices(many, 'session').length, 50);
  assert.equal(matchingChoices(many, '49999').length, 1);
});
