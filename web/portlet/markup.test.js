import assert from 'node:assert/strict';
import { test } from 'node:test';
import { splitInvisible } from './markup.js';

const shown = (/** @type {string} */ text) =>
  splitInvisible(text)
    .map((piece) => (piece.invisible ? `[${piece.text}]` : piece.text))
    .join('');

test('invisible characters and direction controls are shown as code points', () => {
  assert.equal(shown('rm \u202etxt.exe\u202c'), 'rm [U+202E]txt.exe[U+202C]');
  assert.equal(shown('a\u200bb\ufeff\u2066c\u00ad\u0000'), 'a[U+200B]b[U+FEFF][U+2066]c[U+00AD][U+0000]');
  assert.equal(shown('\u{e0041}x\u3164'), '[U+E0041]x[U+3164]');
});

test('visible text is unchanged', () => {
  for (const text of ['', 'a b\tc\r\nd', 'Zo\u00eb \u0645\u0631 \u65e5\u672c', '\u2764\ufe0f'])
    assert.equal(shown(text), text);
});

test('joiners and tags are kept only inside emoji and flags', () => {
  for (const text of [
    '\u{1f469}\u200d\u{1f467}',
    '\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}',
    '\u2764\ufe0f\u200d\u{1f525}',
  ])
    assert.equal(shown(text), text);
  assert.equal(shown('a\u200db'), 'a[U+200D]b');
  assert.equal(shown('x\u{e0067}'), 'x[U+E0067]');
});
