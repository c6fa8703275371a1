/**
 * What the word before the caret could become, offered while it is typed: one of the agent's slash commands, or
 * with `@` a file of the project.
 *
 * @typedef {import('../types/wire.js').SlashCommand} SlashCommand
 *
 * @typedef {object} Word
 * @property {'command' | 'file'} kind
 * @property {string} part  what is typed of it
 * @property {number} from  where it begins, its sign included
 *
 * @typedef {object} Choice
 * @property {string} text  what takes the place of the word
 * @property {(Node | string)[]} shown
 *
 * @typedef {object} Sources
 * @property {() => SlashCommand[]} commands
 * @property {(part: string) => Promise<string[]>} files  paths, the best first
 */

import { h } from '../shared/dom.js';

const SHOWN_MAX = 50;

/** The word that ends at the caret, if it is one that can be completed. @param {string} text @param {number} caret @returns {Word | null} */
export function wordAt(text, caret) {
  const before = text.slice(0, caret);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { kind: 'command', part: command[1], from: 0 };
  const file = /(?:^|[\s(])@(?:"([^"\n]*)|([^\s"@]*))$/.exec(before);
  if (!file) return null;
  const part = file[1] ?? file[2];
  return { kind: 'file', part, from: before.lastIndexOf('@', caret - part.length) };
}

/** @param {SlashCommand[]} commands @param {string} part */
export function fitting(commands, part) {
  const word = part.toLowerCase();
  const begins = commands.filter(({ name }) => name.toLowerCase().startsWith(word));
  const holds = commands.filter(
    ({ name }) => !begins.some((one) => one.name === name) && name.toLowerCase().includes(word),
  );
  return [...begins, ...holds].slice(0, SHOWN_MAX);
}

/** How a file is named in a message. @param {string} path */
export function mention(path) {
  return /[\s"]/.test(path) ? `@"${path}"` : `@${path}`;
}

/**
 * @param {HTMLTextAreaElement} input
 * @param {Sources} sources
 * @param {(from: number, to: number, text: string) => void} replace
 * @param {() => void} send
 */
export function startCompletion(input, sources, replace, send) {
  const list = h('div', { class: 'completions', id: 'completions', role: 'listbox' });
  list.hidden = true;
  /** @type {Choice[]} */
  let offered = [];
  let chosen = 0;
  /** What was typed when the person sent the list away. */
  let dismissed = '';
  /** Counts what was asked, so that a late answer is known for one. */
  let asked = 0;
  /** Whether what is offered is for less than what is typed by now. */
  let stale = false;
  /** What was pressed meanwhile: it is for the answer, not for what the list still shows. */
  let pressed = '';

  const close = () => {
    asked += 1;
    stale = false;
    list.hidden = true;
    offered = [];
    input.removeAttribute('aria-activedescendant');
  };
  const mark = () => {
    for (const [at, option] of [...list.children].entries())
      option.setAttribute('aria-selected', String(at === chosen));
    list.children[chosen]?.scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', `completion-${chosen}`);
  };
  const take = () => {
    const choice = offered[chosen];
    const word = wordAt(input.value, input.selectionStart);
    const to = input.selectionStart;
    close();
    if (choice && word) replace(word.from, to, `${choice.text} `);
  };
  /** Whether what is chosen stands there already. */
  const isTyped = () => {
    const word = wordAt(input.value, input.selectionStart);
    return word !== null && input.value.slice(word.from, input.selectionStart) === offered[chosen]?.text;
  };
  /** @param {string} label @param {Choice[]} choices */
  const show = (label, choices) => {
    if (choices.length === 0) return close();
    offered = choices;
    dismissed = '';
    chosen = 0;
    list.setAttribute('aria-label', label);
    list.replaceChildren(
      ...choices.map(({ shown }, at) => {
        const option = h('div', { class: 'completion', role: 'option', id: `completion-${at}` }, ...shown);
        option.addEventListener('pointermove', () => {
          if (chosen === at) return;
          chosen = at;
          mark();
        });
        // Before the input loses the focus.
        option.addEventListener('pointerdown', (event) => {
          event.preventDefault();
          chosen = at;
          take();
        });
        return option;
      }),
    );
    list.hidden = false;
    mark();
  };
  /** @param {string} part */
  const findFiles = async (part) => {
    asked += 1;
    const mine = asked;
    // What is shown stays until the answer is there: a list that comes and goes with each letter flickers.
    stale = !list.hidden;
    pressed = '';
    const paths = await sources.files(part).catch(() => []);
    if (mine !== asked || document.activeElement !== input) return;
    stale = false;
    show('Files', paths.map(ofFile));
    if (pressed) finish(pressed);
  };
  /** Enter sends what there is nothing to complete in. @param {string} key */
  const finish = (key) => {
    if (offered.length > 0 && !(key === 'Enter' && isTyped())) return take();
    close();
    if (key === 'Enter') send();
  };

  return {
    element: list,
    /** Looks at what is typed. */
    offer: () => {
      const text = input.value;
      const word = text === dismissed ? null : wordAt(text, input.selectionStart);
      if (word?.kind === 'command') show('Commands', fitting(sources.commands(), word.part).map(ofCommand));
      else if (word?.kind === 'file') findFiles(word.part);
      else close();
    },
    close,
    /** Whether the key was for the list. @param {KeyboardEvent} event */
    key: (event) => {
      if (list.hidden) return false;
      const moves = { ArrowDown: 1, ArrowUp: -1 };
      const move = moves[/** @type {'ArrowDown'} */ (event.key)];
      if (move) {
        chosen = (chosen + move + offered.length) % offered.length;
        mark();
      } else if ((event.key === 'Enter' || event.key === 'Tab') && !event.shiftKey && !event.altKey) {
        if (stale) pressed = event.key;
        else finish(event.key);
      } else if (event.key === 'Escape') {
        dismissed = input.value;
        close();
      } else {
        return false;
      }
      return true;
    },
  };
}

/** @param {SlashCommand} command @returns {Choice} */
function ofCommand({ name, description, hint }) {
  return {
    text: `/${name}`,
    shown: [
      h('span', { class: 'mono' }, `/${name}`),
      hint ? h('span', { class: 'hint mono' }, hint) : '',
      h('span', { class: 'hint' }, description),
    ],
  };
}

/** @param {string} path @returns {Choice} */
function ofFile(path) {
  const name = path.lastIndexOf('/') + 1;
  return {
    text: mention(path),
    shown: [h('span', { class: 'mono' }, h('span', { class: 'hint' }, path.slice(0, name)), path.slice(name))],
  };
}
