import assert from 'node:assert/strict';
import test from 'node:test';
import { isMissing, noteOf, offered } from './agent-choices.js';

/** @param {string} cliType @param {Partial<import('./workspace.js').Agent>} [rest] */
const agent = (cliType, rest = {}) =>
  /** @type {import('./workspace.js').Agent} */ ({ cliType, name: cliType, readiness: 'ready', found: true, ...rest });

test('agents are sorted by readiness, uninstalled registry agents set apart', () => {
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

test('the note names the state of an agent or an outdated Node', () => {
  assert.equal(noteOf(agent('a')), undefined);
  assert.equal(noteOf(agent('a', { node: 'a needs Node 22 or newer' })), 'a needs Node 22 or newer');
  assert.equal(noteOf(agent('a', { readiness: 'needs-login' })), 'Needs a sign-in');
  assert.equal(noteOf(agent('a', { readiness: 'broken' })), 'Failed to start');
  assert.equal(noteOf(agent('a', { readiness: 'not-installed', install: 'npm' })), 'Not installed');
  assert.equal(noteOf(agent('a', { readiness: 'not-installed' })), 'Its command was not found');
  assert.equal(noteOf(agent('a', { readiness: 'not-installed', installing: true })), 'Installing…');
});

test('an agent counts as missing only with an install command or a reason', () => {
  assert.equal(isMissing(agent('a', { readiness: 'not-installed', cannotInstall: 'no npm' })), true);
  assert.equal(isMissing(agent('a', { readiness: 'not-installed' })), false);
  assert.equal(isMissing(agent('a', { install: 'npm' })), false);
});
