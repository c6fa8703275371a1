import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checked } from './bridge.js';

const ID = 'claude-code:one';
const IDS = { sessionId: ID, projectId: 'p1', cliType: 'claude-code' };
const UUID = '6f1c1f0e-8a1d-4f0e-9d6b-0c7f3b1a2d3e';

test('a request keeps only its allowed fields and gets its own ids', () => {
  const message = { type: 'session:send', sessionId: ID, content: 'hi', images: ['a'], admin: true };
  assert.deepEqual(checked({ type: 'request', id: 1, message, requestId: UUID, more: 1 }, IDS), {
    type: 'request',
    id: 1,
    message: { type: 'session:send', sessionId: ID, content: 'hi', images: ['a'] },
    requestId: UUID,
  });
  const own = checked({ type: 'request', id: 2, message: { type: 'session:cancel' } }, IDS);
  assert.deepEqual(own, { type: 'request', id: 2, message: { type: 'session:cancel', sessionId: ID } });
  const files = { type: 'project:files', query: 'ma', limit: 20 };
  assert.deepEqual(checked({ type: 'request', id: 3, message: files }, IDS), {
    type: 'request',
    id: 3,
    message: { ...files, projectId: 'p1' },
  });
  const signIn = { type: 'agent:authenticate', methodId: 'login' };
  assert.deepEqual(checked({ type: 'request', id: 4, message: signIn }, IDS), {
    type: 'request',
    id: 4,
    message: { ...signIn, cliType: 'claude-code' },
  });
});

test('requests of other sessions or types or with bad ids are rejected', () => {
  const cancel = { type: 'session:cancel', sessionId: ID };
  for (const message of [
    { type: 'request', id: 1, message: { ...cancel, sessionId: 'claude-code:two' } },
    { type: 'request', id: 1, message: { type: 'session:delete', sessionId: ID } },
    { type: 'request', id: 1, message: { type: 'project:remove', projectId: 'p' } },
    { type: 'request', id: 1, message: { type: 'project:files', projectId: 'p2', query: '', limit: 1 } },
    { type: 'request', id: 1, message: { type: 'agent:authenticate', cliType: 'codex', methodId: 'login' } },
    { type: 'request', id: 1, message: { type: 'toString', sessionId: ID } },
    { type: 'request', id: 1, message: null },
    { type: 'request', id: '1', message: cancel },
    { type: 'request', id: 1, message: cancel, requestId: 'r1' },
    { type: 'request', id: 1, message: cancel, requestId: 7 },
  ]) {
    assert.equal(checked(message, IDS), undefined, JSON.stringify(message));
  }
});

test('only http, https and mailto links are allowed', () => {
  const link = (/** @type {unknown} */ href) => checked({ type: 'open-link', href }, IDS);
  assert.deepEqual(link('https://example.org/a b'), { type: 'open-link', href: 'https://example.org/a%20b' });
  assert.deepEqual(link('mailto:me@example.org'), { type: 'open-link', href: 'mailto:me@example.org' });
  for (const href of ['javascript:alert(1)', 'file:///etc/passwd', 'data:text/html,x', '/relative', '', 3, 'blob:x']) {
    assert.equal(link(href), undefined, String(href));
  }
});

test('messages outside the contract are rejected', () => {
  for (const nonsense of [
    null,
    undefined,
    'request',
    [],
    {},
    { type: 'portlet:ready' },
    { type: 'draft', text: 3 },
    { type: 'draft', text: 'x'.repeat(1_000_001) },
    { type: 'place', place: { entryId: 'e', offset: Number.NaN } },
    { type: 'upload', id: 1, file: 'text' },
    { type: 'key', key: 1 },
  ]) {
    assert.equal(checked(nonsense, IDS), undefined);
  }
});

test('all other messages of the contract are accepted', () => {
  const file = new Blob(['x'], { type: 'image/png' });
  for (const message of /** @type {const} */ ([
    { type: 'reconnect' },
    { type: 'draft', text: 'half a sen' },
    { type: 'copy', text: 'x' },
    { type: 'place', place: null },
    { type: 'place', place: { entryId: 'e', offset: 12.5 } },
    { type: 'upload', id: 3, file },
    { type: 'key', key: 'k', code: 'KeyK', ctrl: true, meta: false, alt: false, shift: false },
  ])) {
    assert.deepEqual(checked(message, IDS), message);
  }
});
