import assert from 'node:assert/strict';
import test from 'node:test';
import { isMissing, noteOf, offered } from './agent-choices.js';

/** @param {string} cliType @param {Partial<import('./workspace.js').Agent>} [rest] */
const agent = (cliType, rest = {}) =>
  /** @type {import('./workspace.js').Agent} */ ({ cliType, name: cliType, readiness: 'ready', found: true, ...rest });

test('ready agents come first, in their order, and those of the list that are missing are folded away', () => {
  const { first, more } = offered([
    agent('claude', { readiness: 'not-installed', install: 'npm' }),
    agent('codex', { readiness: 'broken' }),
    agent('liminal'),
    agent('gemini', { more: true }),
    agent('goose', { more: true, readiness: 'not-installed' }),
  ]);
  assert.deepEqual(
    first.map(({ cliType }) => cliType),
    ['liminal', 'gemini', 'codex', 'claude'],
  );
  assert.deepEqual(
    more.map(({ cliType }) => cliType),
    ['goose'],
  );
});

test('each state has its words, and a Node that is too old is said', () => {
  assert.equal(noteOf(agent('a')), undefined);
  assert.equal(noteOf(agent('a', { node: 'a needs Node 22 or newer' })), 'a needs Node 22 or newer');
  assert.equal(noteOf(agent('a', { readiness: 'needs-login' })), 'Needs a sign-in');
  assert.equal(noteOf(agent('a', { readiness: 'broken' })), 'Did not start last time');
  assert.equal(noteOf(agent('a', { readiness: 'not-installed', install: 'npm' })), 'Not installed');
  assert.equal(noteOf(agent('a', { readiness: 'not-installed' })), 'Its command was not found');
  assert.equal(noteOf(agent('a', { readiness: 'not-installed', installing: true })), 'Installing…');
});

test('only what we can bring, or say how to bring, is missing', () => {
  assert.equal(isMissing(agent('a', { readiness: 'not-installed', cannotInstall: 'no npm' })), true);
  assert.equal(isMissing(agent('a', { readiness: 'not-installed' })), false);
  assert.equal(isMissing(agent('a', { install: 'npm' })), false);
});
