import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitting, mention, wordAt } from './completion.js';

const COMMANDS = ['review', 'init', 'preview', 'compact'].map((name) => ({ name, description: '' }));
/** @param {string} part */
const names = (part) => fitting(COMMANDS, part).map(({ name }) => name);
/** @param {string} text @param {number} [caret] */
const word = (text, caret = text.length) => wordAt(text, caret);

test('commands that begin with the word come first, then those that hold it', () => {
  assert.deepEqual(names('re'), ['review', 'preview']);
  assert.deepEqual(names(''), ['review', 'init', 'preview', 'compact']);
});

test('only a first word with a slash is a command', () => {
  assert.deepEqual(word('/re'), { kind: 'command', part: 're', from: 0 });
  assert.deepEqual(word('/review now', 3), { kind: 'command', part: 're', from: 0 });
  for (const text of ['/review now', 'see /re', '']) assert.equal(word(text), null);
});

test('a word with an at sign is a file wherever it stands', () => {
  assert.deepEqual(word('@'), { kind: 'file', part: '', from: 0 });
  assert.deepEqual(word('see @src/ma'), { kind: 'file', part: 'src/ma', from: 4 });
  assert.deepEqual(word('(@a and', 3), { kind: 'file', part: 'a', from: 1 });
  assert.deepEqual(word('look at @"my fi'), { kind: 'file', part: 'my fi', from: 8 });
});

test('an address is no file, nor is what was written before a space', () => {
  for (const text of ['me@example.org', '@main.rs ', 'a@@', '@"a b" ']) assert.equal(word(text), null, text);
});

test('a path with a space is quoted', () => {
  assert.equal(mention('src/main.rs'), '@src/main.rs');
  assert.equal(mention('my notes.md'), '@"my notes.md"');
});
