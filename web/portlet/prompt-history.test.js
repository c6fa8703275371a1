import assert from 'node:assert/strict';
import { test } from 'node:test';
import { promptHistory } from './prompt-history.js';

test('Up goes back through the prompts and Down returns', () => {
  const history = promptHistory(() => ['one', 'two']);
  assert.equal(history.step('ArrowUp', ''), 'two');
  assert.equal(history.step('ArrowUp', 'two'), 'one');
  assert.equal(history.step('ArrowUp', 'one'), null);
  assert.equal(history.step('ArrowDown', 'one'), 'two');
  assert.equal(history.step('ArrowDown', 'two'), '');
});

test('a text one is writing is left alone', () => {
  const history = promptHistory(() => ['one']);
  assert.equal(history.step('ArrowUp', 'draft'), null);
  history.step('ArrowUp', '');
  assert.equal(history.step('ArrowUp', 'one, changed'), null);
  history.reset();
  assert.equal(history.step('ArrowUp', ''), 'one');
});
