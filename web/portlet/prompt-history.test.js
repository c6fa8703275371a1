import assert from 'node:assert/strict';
import { test } from 'node:test';
import { promptHistory } from './prompt-history.js';

test('Up recalls earlier prompts and Down returns to later ones', () => {
  const history = promptHistory(() => ['one', 'two']);
  assert.equal(history.step('ArrowUp', ''), 'two');
  assert.equal(history.step('ArrowUp', 'two'), 'one');
  assert.equal(history.step('ArrowUp', 'one'), null);
  assert.equal(history.step('ArrowDown', 'one'), 'two');
  assert.equal(history.step('ArrowDown', 'two'), '');
});

test('Up does not replace a text the user has written or edited', () => {
  const history = promptHistory(() => ['one']);
  assert.equal(history.step('ArrowUp', 'draft'), null);
  history.step('ArrowUp', '');
  assert.equal(history.step('ArrowUp', 'one, changed'), null);
  history.reset();
  assert.equal(history.step('ArrowUp', ''), 'one');
});
