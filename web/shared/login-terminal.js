/**
 * The terminal of a sign-in command: its output and an input line.
 *
 * Input is sent when the user presses Enter. While the line is empty, arrow keys, Backspace and Escape are sent to the
 * command at once. Input and output are not stored.
 *
 * @typedef {object} Actions
 * @property {(text: string) => void} type
 * @property {() => void} stop
 * @property {(text: string) => void} copy
 */

import { Terminal } from './ansi.js';
import { h } from './dom.js';
import { addressesIn, lineOf } from './terminal-lines.js';

/** Width of the terminal on the server, in columns. */
const COLUMNS = 80;
const LINES_SHOWN = 200;

/** @type {Record<string, string>} */
const KEYS = {
  ArrowUp: '\x1b[A',
  ArrowDown: '\x1b[B',
  ArrowRight: '\x1b[C',
  ArrowLeft: '\x1b[D',
  Backspace: '\x7f',
  Escape: '\x1b',
};

/** @param {string} name @param {Actions} actions */
export function loginTerminal(name, { type, stop, copy }) {
  const terminal = new Terminal();
  const screen = h('pre', { class: 'login-screen', tabindex: '0', role: 'log', 'aria-label': `${name}: output` });
  const links = h('ul', { class: 'login-links', 'aria-label': 'Addresses' });
  const line = h('input', {
    class: 'field mono',
    type: 'text',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    placeholder: 'Type or paste, then Enter',
    'aria-label': `${name}: your input`,
  });
  const enter = () => {
    type(`${line.value}\r`);
    line.value = '';
    line.focus();
  };
  const interrupt = () => type('\x03');
  line.addEventListener('keydown', (event) => {
    if (event.isComposing || event.altKey || event.metaKey) return;
    const control = event.ctrlKey && /^[a-z]$/.test(event.key) ? event.key : '';
    const selected = line.selectionStart !== line.selectionEnd;
    if (event.key === 'Enter') enter();
    else if (control === 'd' || (control === 'c' && !selected)) type(control === 'c' ? '\x03' : '\x04');
    else if (!event.ctrlKey && line.value === '' && event.key in KEYS) type(KEYS[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const controls = h(
    'div',
    { class: 'login-controls' },
    line,
    h('button', { class: 'button', type: 'button', onclick: enter }, 'Enter'),
    h('button', { class: 'button', type: 'button', onclick: interrupt, title: 'Interrupt the command' }, 'Ctrl+C'),
    h('button', { class: 'button', type: 'button', onclick: stop }, 'Close'),
  );
  let listed = '';

  return {
    element: h('div', { class: 'login-terminal', role: 'group', 'aria-label': name }, screen, links, controls),
    focus: () => line.focus(),
    /** Removes the input line: the command has ended. */
    end: () => controls.remove(),
    /** @param {string} text */
    write: (text) => {
      terminal.feed(text);
      const lines = terminal.lines.at(-1)?.length === 0 ? terminal.lines.slice(0, -1) : terminal.lines;
      screen.replaceChildren(...lines.slice(-LINES_SHOWN).map(lineOf));
      screen.scrollTop = screen.scrollHeight;
      const addresses = addressesIn(lines, COLUMNS);
      if (addresses.join(' ') === listed) return;
      listed = addresses.join(' ');
      links.replaceChildren(...addresses.map((address) => h('li', {}, ...addressView(address, copy))));
    },
  };
}

/** A link that shows its full address, and a copy button. @param {string} address @param {(text: string) => void} copy */
export function addressView(address, copy) {
  return [
    h('a', { href: address, target: '_blank', rel: 'noopener noreferrer', class: 'mono' }, address),
    ' ',
    h('button', { class: 'link-button', type: 'button', onclick: () => copy(address) }, 'Copy'),
  ];
}
