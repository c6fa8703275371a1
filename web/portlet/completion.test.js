import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitting } from './completion.js';

const COMMANDS = ['review', 'init', 'preview', 'compact'].map((name) => ({ name, description: '' }));
/** @param {string} text @param {number} [caret] */
const names = (text, caret = text.length) => fitting(COMMANDS, text, caret).map(({ name }) => name);

test('commands that begin with the word come first, then those that hold it', () => {
  assert.deepEqual(names('/re'), ['review', 'preview']);
  assert.deepEqual(names('/'), ['review', 'init', 'preview', 'compact']);
});

test('only a first word with a slash is a command', () => {
  assert.deepEqual(names('/review now'), []);
  assert.deepEqual(names('see /re'), []);
  assert.deepEqual(names('/review now', 3), ['review', 'preview']);
  assert.deepEqual(names(''), []);
});
