/**
 * The context that every entry view receives (`ViewContext`), and the elements these views share.
 *
 * @typedef {import('./transcript.js').Item} Item
 * @typedef {import('./transcript.js').Transcript} Transcript
 *
 * @typedef {object} ViewContext
 * @property {Transcript} transcript
 * @property {() => string} agentName
 * @property {() => string} projectPath
 * @property {() => string} pass  part of the addresses of pictures
 * @property {Map<string, boolean>} opened  what the user has expanded (true) or collapsed (false), by key of the view
 * @property {(text: string) => void} copy
 * @property {(href: string) => void} openLink
 * @property {(permissionId: string, optionId: string) => Promise<void>} permit
 * @property {(questionId: string, action: import('../types/wire.js').QuestionAction, content?: Record<string, import('./form.js').Value>) => Promise<void>} answer
 * @property {Map<string, Map<string, import('./form.js').Filled>>} drafts  form content, by question id and field name
 * @property {() => void} leave  moves the focus back to the message input
 * @property {(item: Item) => void} sendAgain
 * @property {(item: Item) => void} discard
 * @property {() => void} reconnect
 * @property {() => import('../types/wire.js').SignInMethod[]} signIn  the agent's sign-in methods
 * @property {(message: import('../shared/sign-in.js').Request) => Promise<unknown>} signInRequest
 * @property {() => string} cliType
 *
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {(item: Item) => void} update
 */

import { Terminal } from '../shared/ansi.js';
import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { lineOf } from '../shared/terminal-lines.js';
import { exact } from './markup.js';

/** How long a button confirms its action, in milliseconds. */
const CONFIRMATION_MS = 1500;

/** @param {ViewContext} context @param {() => string} text @param {string} what */
export function copyButton(context, text, what) {
  const label = `Copy ${what}`;
  const button = h('button', { class: 'icon-button copy', type: 'button', 'aria-label': label, title: label });
  button.append(icon('copy'));
  button.addEventListener('click', () => {
    context.copy(text());
    button.replaceChildren(icon('done'));
    button.setAttribute('aria-label', 'Copied');
    setTimeout(() => {
      button.replaceChildren(icon('copy'));
      button.setAttribute('aria-label', label);
    }, CONFIRMATION_MS);
  });
  return button;
}

/**
 * A collapsible element. Its body is filled only while it is open.
 * @param {ViewContext} context
 * @param {string} className
 */
export function disclosure(context, className) {
  const summary = h('summary', {});
  const body = h('div', { class: 'body' });
  const element = h('details', { class: className }, summary, body);
  let key = '';
  /** @type {() => void} */
  let fill = () => {};
  summary.addEventListener('click', () => context.opened.set(key, !element.open));
  element.addEventListener('toggle', () => {
    if (element.open) fill();
  });
  return {
    element,
    summary,
    body,
    /** @param {string} id @param {boolean} otherwise  open by default @param {() => void} fillBody */
    show: (id, otherwise, fillBody) => {
      key = id;
      fill = fillBody;
      const open = context.opened.get(id) ?? otherwise;
      if (element.open !== open) element.open = open;
      if (open) fill();
    },
  };
}

const ESCAPE = '\u001b[';

/** Text with ANSI escape sequences as styled lines. @param {string} text */
function ansiLines(text) {
  const terminal = new Terminal();
  terminal.feed(text);
  return terminal.lines.map(lineOf);
}

/** Text for screen readers only. @param {string} text */
export function screenReaderText(text) {
  return h('span', { class: 'sr-only' }, text);
}

/**
 * A text that is collapsed to its first lines if it is long.
 * @param {ViewContext} context @param {string} key @param {number} [max]
 */
export function cappedText(context, key, max = 20) {
  const shown = h('pre', { class: 'output', tabindex: '0' });
  const more = h('button', { class: 'link-button', type: 'button' });
  const element = h('div', { class: 'capped' }, shown, more);
  let text = '';
  const render = () => {
    const lines = text.split('\n');
    const all = context.opened.get(key) ?? false;
    const cut = !all && lines.length > max;
    const part = cut ? lines.slice(0, max).join('\n') : text;
    shown.replaceChildren(...(part.includes(ESCAPE) ? ansiLines(part) : exact(part)));
    more.hidden = lines.length <= max;
    more.textContent = cut ? `Show all ${lines.length} lines` : 'Show less';
  };
  more.addEventListener('click', () => {
    context.opened.set(key, !(context.opened.get(key) ?? false));
    render();
  });
  return {
    element,
    /** @param {string} now */
    update: (now) => {
      if (now === text && shown.textContent) return;
      text = now;
      render();
    },
  };
}
