import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Terminal } from './ansi.js';

/** @param {...string} pieces */
const fed = (...pieces) => {
  const terminal = new Terminal();
  for (const piece of pieces) terminal.feed(piece);
  return terminal;
};
/** @param {Pick<Terminal, 'lines'>} terminal */
const text = ({ lines }) => lines.map((line) => line.map((run) => run.text).join(''));

test('colours hold until they are reset', () => {
  const [line] = fed('a\x1b[1;31mb\x1b[0mc').lines;
  assert.deepEqual(line, [
    { text: 'a', style: {} },
    { text: 'b', style: { bold: true, color: 'red' } },
    { text: 'c', style: {} },
  ]);
});

test('the 256 colours and true colours', () => {
  const [line] = fed('\x1b[38;5;9ma\x1b[48;5;196mb\x1b[38;2;1;2;255mc\x1b[38;5;244md').lines;
  assert.deepEqual(
    line.map(({ style }) => [style.color, style.ground]),
    [
      ['bright-red', undefined],
      ['bright-red', '#ff0000'],
      ['#0102ff', '#ff0000'],
      ['#808080', '#ff0000'],
    ],
  );
});

test('a progress bar overwrites itself', () => {
  assert.deepEqual(text(fed('10 %\r20 %\r100 %\ndone')), ['100 %', 'done']);
  assert.deepEqual(text(fed('downloading\r\x1b[Kok\n')), ['ok', '']);
  assert.deepEqual(text(fed('abc\b\bX')), ['aXc']);
});

test('several lines are redrawn by moving up', () => {
  assert.deepEqual(text(fed('one 1\ntwo 1\n\x1b[2Aone 2\n\x1b[Ktwo 2\n')), ['one 2', 'two 2', '']);
});

test('a sequence cut anywhere is the same sequence', () => {
  const whole = 'x\x1b[38;5;196mred\x1b]8;;http://a.example\x07link\x1b]8;;\x1b\\\x1b[0m!\x1b[2Kz';
  const expected = fed(whole).lines;
  for (let at = 1; at < whole.length; at += 1) {
    assert.deepEqual(text(fed(whole.slice(0, at), whole.slice(at))), text({ lines: expected }), `cut at ${at}`);
  }
});

test('tabs reach the next stop, other control characters vanish', () => {
  assert.deepEqual(text(fed('a\tb\x07\x00c')), ['a       bc']);
});

test('a sequence that never ends is not waited for for ever', () => {
  assert.ok(
    text(fed(`a\x1b[${'1;'.repeat(400)}`, 'b'))
      .join('')
      .endsWith('b'),
  );
  assert.ok(
    text(fed('a\x1b]0;', 'x'.repeat(5000), 'b'))
      .join('')
      .endsWith('b'),
  );
});

test('the oldest lines go, and what changed is known', () => {
  const terminal = fed('line\n'.repeat(6000));
  assert.equal(terminal.lines.length, 5000);
  assert.equal(terminal.dropped, 1001);
  terminal.changed = Infinity;
  terminal.feed('more');
  assert.equal(terminal.changed, 4999);
});

test('absurd numbers do no harm', () => {
  const terminal = fed('\x1b[999999999Cx\x1b[99999999A\x1b[999999999Gy\x1b[999999D\x1b[9999999Bz');
  assert.equal(terminal.lines.length, 1);
  assert.ok(text(terminal)[0].length < 20_010);
});
