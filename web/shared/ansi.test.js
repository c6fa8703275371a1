import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Terminal } from './ansi.js';

/** @param {...string} pieces */
const terminalWith = (...pieces) => {
  const terminal = new Terminal();
  for (const piece of pieces) terminal.feed(piece);
  return terminal;
};
/** @param {Pick<Terminal, 'lines'>} terminal */
const text = ({ lines }) => lines.map((line) => line.map((run) => run.text).join(''));

test('a colour applies until it is reset', () => {
  const [line] = terminalWith('a\x1b[1;31mb\x1b[0mc').lines;
  assert.deepEqual(line, [
    { text: 'a', style: {} },
    { text: 'b', style: { bold: true, color: 'red' } },
    { text: 'c', style: {} },
  ]);
});

test('256-colour and true-colour sequences set foreground and background', () => {
  const [line] = terminalWith('\x1b[38;5;9ma\x1b[48;5;196mb\x1b[38;2;1;2;255mc\x1b[38;5;244md').lines;
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

test('text after a carriage return or backspace overwrites the line', () => {
  assert.deepEqual(text(terminalWith('10 %\r20 %\r100 %\ndone')), ['100 %', 'done']);
  assert.deepEqual(text(terminalWith('downloading\r\x1b[Kok\n')), ['ok', '']);
  assert.deepEqual(text(terminalWith('abc\b\bX')), ['aXc']);
});

test('text after a cursor move up overwrites earlier lines', () => {
  assert.deepEqual(text(terminalWith('one 1\ntwo 1\n\x1b[2Aone 2\n\x1b[Ktwo 2\n')), ['one 2', 'two 2', '']);
});

test('an escape sequence split between two chunks is parsed as a whole', () => {
  const whole = 'x\x1b[38;5;196mred\x1b]8;;http://a.example\x07link\x1b]8;;\x1b\\\x1b[0m!\x1b[2Kz';
  const expected = terminalWith(whole).lines;
  for (let at = 1; at < whole.length; at += 1) {
    assert.deepEqual(
      text(terminalWith(whole.slice(0, at), whole.slice(at))),
      text({ lines: expected }),
      `split at ${at}`,
    );
  }
});

test('a tab advances to the next stop, other control characters are dropped', () => {
  assert.deepEqual(text(terminalWith('a\tb\x07\x00c')), ['a       bc']);
});

test('an unterminated sequence is abandoned at the length limit', () => {
  assert.ok(
    text(terminalWith(`a\x1b[${'1;'.repeat(400)}`, 'b'))
      .join('')
      .endsWith('b'),
  );
  assert.ok(
    text(terminalWith('a\x1b]0;', 'x'.repeat(5000), 'b'))
      .join('')
      .endsWith('b'),
  );
});

test('excess lines are dropped and the first changed line is reported', () => {
  const terminal = terminalWith('line\n'.repeat(6000));
  assert.equal(terminal.lines.length, 5000);
  assert.equal(terminal.dropped, 1001);
  terminal.changed = Infinity;
  terminal.feed('more');
  assert.equal(terminal.changed, 4999);
});

test('huge cursor positions are limited', () => {
  const terminal = terminalWith('\x1b[999999999Cx\x1b[99999999A\x1b[999999999Gy\x1b[999999D\x1b[9999999Bz');
  assert.equal(terminal.lines.length, 1);
  assert.ok(text(terminal)[0].length < 20_010);
});
