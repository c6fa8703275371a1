import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchingCommands, mention, wordAt } from './completion.js';

const COMMANDS = ['review', 'init', 'preview', 'compact'].map((name) => ({ name, description: '' }));
/** @param {string} part */
const names = (part) => matchingCommands(COMMANDS, part).map(({ name }) => name);
/** @param {string} text @param {number} [caret] */
const word = (text, caret = text.length) => wordAt(text, caret);

test('commands that start with the word precede those that contain it', () => {
  assert.deepEqual(names('re'), ['review', 'preview']);
  assert.deepEqual(names(''), ['review', 'init', 'preview', 'compact']);
});

test('a slash starts a command only in the first word', () => {
  assert.deepEqual(word('/re'), { kind: 'command', part: 're', from: 0 });
  assert.deepEqual(word('/review now', 3), { kind: 'command', part: 're', from: 0 });
  for (const text of ['/review now', 'see /re', '']) assert.equal(word(text), null);
});

test('an at sign starts a file in any word', () => {
  assert.deepEqual(word('@'), { kind: 'file', part: '', from: 0 });
  assert.deepEqual(word('see @src/ma'), { kind: 'file', part: 'src/ma', from: 4 });
  assert.deepEqual(word('(@a and', 3), { kind: 'file', part: 'a', from: 1 });
  assert.deepEqual(word('look at @"my fi'), { kind: 'file', part: 'my fi', from: 8 });
});

test('an e-mail address or a finished mention is not completed', () => {
  for (const text of ['me@example.org', '@main.rs ', 'a@@', '@"a b" ']) assert.equal(word(text), null, text);
});

test('a path that contains a space is quoted', () => {
  assert.equal(mention('src/main.rs'), '@src/main.rs');
  assert.equal(mention('my notes.md'), '@"my notes.md"');
});
