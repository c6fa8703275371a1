import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shortcutFor } from './shortcuts.js';

const NONE = { ctrl: false, meta: false, alt: false, shift: false };
/** @param {string} key @param {string} code @param {Partial<typeof NONE>} [held] */
const press = (key, code, held) => shortcutFor({ key, code, ...NONE, ...held });

test('each shortcut is recognised, also with Option on a Mac', () => {
  assert.equal(press('k', 'KeyK', { ctrl: true }), 'palette');
  assert.equal(press('k', 'KeyK', { meta: true }), 'palette');
  assert.equal(press('w', 'KeyW', { alt: true }), 'close-tab');
  assert.equal(press('∑', 'KeyW', { alt: true }), 'close-tab');
  assert.equal(press('¡', 'Digit1', { alt: true }), 'numbered-tab');
  assert.equal(press('ArrowRight', 'ArrowRight', { ctrl: true, alt: true }), 'next-tab');
  assert.equal(press('PageUp', 'PageUp', { alt: true, shift: true }), 'tab-left');
  assert.equal(press('?', 'Slash', { shift: true }), 'help');
});

test('browser shortcuts and text input are not shortcuts', () => {
  for (const [key, code, held] of /** @type {[string, string, Partial<typeof NONE>][]} */ ([
    ['w', 'KeyW', { ctrl: true }],
    ['t', 'KeyT', { ctrl: true }],
    ['n', 'KeyN', { ctrl: true }],
    ['1', 'Digit1', { ctrl: true }],
    ['Tab', 'Tab', { ctrl: true }],
    ['ArrowLeft', 'ArrowLeft', { alt: true }],
    ['f', 'KeyF', { alt: true }],
    ['d', 'KeyD', { alt: true }],
    // AltGr, which writes characters, is Ctrl and Alt together.
    ['@', 'KeyN', { ctrl: true, alt: true }],
    ['k', 'KeyK', {}],
  ])) {
    assert.equal(press(key, code, held), undefined, `${key} ${JSON.stringify(held)}`);
  }
});
