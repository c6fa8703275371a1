import assert from 'node:assert/strict';
import test from 'node:test';
import { Terminal } from './ansi.js';
import { addressesIn } from './terminal-lines.js';

/** @param {string} text @param {number} [columns] */
function found(text, columns = 80) {
  const terminal = new Terminal();
  terminal.feed(text);
  return addressesIn(terminal.lines, columns);
}

test('each address is found once, without trailing punctuation or styles', () => {
  const text =
    'Open \x1b[1mhttps://a.example/\x1b[0mlogin?x=1.\r\nor (http://b.example), again https://a.example/login?x=1\r\n';
  assert.deepEqual(found(text), ['https://a.example/login?x=1', 'http://b.example']);
});

test('an address wrapped at the terminal width is joined', () => {
  const address = `https://a.example/${'x'.repeat(50)}`;
  const broken = `${address.slice(0, 20)}\r\n${address.slice(20, 40)}\r\n${address.slice(40)} then\r\n`;
  assert.deepEqual(found(broken, 20), [address]);
  assert.deepEqual(found('https://a.example/\r\nPaste it here\r\n', 20), ['https://a.example/']);
  assert.deepEqual(found(`${address}\r\nPaste it here\r\n`, 20), [address]);
});

test('only http and https addresses are found', () => {
  assert.deepEqual(found('javascript:alert(1) file:///etc/passwd https:// ftp://x'), []);
});
