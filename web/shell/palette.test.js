import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitting } from './palette.js';

const run = () => {};
const CHOICES = [
  { label: 'Fix the login', note: 'app', run },
  { label: 'Add a login page', note: 'lib', run },
  { label: 'Login', note: 'app', run },
];
/** @param {string} query */
const found = (query) => fitting(CHOICES, query).map(({ label }) => label);

test('every word counts, also those of the project, and a beginning comes first', () => {
  assert.deepEqual(found(''), ['Fix the login', 'Add a login page', 'Login']);
  assert.deepEqual(found('LOG'), ['Login', 'Fix the login', 'Add a login page']);
  assert.deepEqual(found('login lib'), ['Add a login page']);
  assert.deepEqual(found('nothing'), []);
});

test('what was typed is above what only contains it', () => {
  const numbered = ['31', '21', '10', '1', '11'].map((number) => ({
    label: `say Session number ${number} of all`,
    run,
  }));
  const labels = (/** @type {string} */ query) => fitting(numbered, query).map(({ label }) => label.split(' ')[3]);
  assert.deepEqual(labels('number 1'), ['1', '10', '11', '31', '21']);
  const named = ['Login page', 'The login', 'Loginless', 'Login'].map((label) => ({ label, run }));
  assert.deepEqual(
    fitting(named, 'login').map(({ label }) => label),
    ['Login', 'Login page', 'The login', 'Loginless'],
  );
});

test('of very many only as many as one looks at', () => {
  const many = Array.from({ length: 50_000 }, (_, number) => ({ label: `session ${number}`, run }));
  assert.equal(fitting(many, '').length, 50);
  assert.equal(fitting(many, 'session').length, 50);
  assert.equal(fitting(many, '49999').length, 1);
});
