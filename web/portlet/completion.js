/**
 * Completion of the word before the caret while the user types: the agent's slash commands after `/`, project files
 * after `@`.
 *
 * @typedef {import('../types/wire.js').SlashCommand} SlashCommand
 *
 * @typedef {object} Word
 * @property {'command' | 'file'} kind
 * @property {string} part  the text typed so far, without the `/` or `@`
 * @property {number} from  index of the `/` or `@`
 *
 * @typedef {object} Choice
 * @property {string} text  replacement for the word
 * @property {(Node | string)[]} shown  content of the list item
 *
 * @typedef {object} Sources
 * @property {() => SlashCommand[]} commands
 * @property {(part: string) => Promise<string[]>} files  paths, best match first
 */

import { h } from '../shared/dom.js';

const SHOWN_MAX = 50;

/** The completable word before the caret. @param {string} text @param {number} caret @returns {Word | null} */
export function wordAt(text, caret) {
  const before = text.slice(0, caret);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { kind: 'command', part: command[1], from: 0 };
  const file = /(?:^|[\s(])@(?:"([^"\n]*)|([^\s"@]*))$/.exec(before);
  if (!file) return null;
  const part = file[1] ?? file[2];
  return { kind: 'file', part, from: before.lastIndexOf('@', caret - part.length) };
}

/** Commands whose name contains `part`, prefix matches first. @param {SlashCommand[]} commands @param {string} part */
export function matchingCommands(commands, part) {
  const word = part.toLowerCase();
  const prefixMatches = commands.filter(({ name }) => name.toLowerCase().startsWith(word));
  const otherMatches = commands.filter(
    ({ name }) => !prefixMatches.some((one) => one.name === name) && name.toLowerCase().includes(word),
  );
  return [...prefixMatches, ...otherMatches].slice(0, SHOWN_MAX);
}

/** The `@` mention of a file, quoted if its path contains a space or a quote. @param {string} path */
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
  /** Text of the input when the user closed the list with Escape; no completions are offered for it. */
  let dismissed = '';
  /** Number of the latest request; the answer to an older request is dropped. */
  let latestRequest = 0;
  /** Whether the list shows choices for an earlier state of the input. */
  let stale = false;
  /** The key pressed while the list was stale; it is applied to the new choices once they arrive. */
  let pressed = '';

  const close = () => {
    latestRequest += 1;
    stale = false;
    list.hidden = true;
    offered = [];
    input.removeAttribute('aria-activedescendant');
  };
  const showSelection = () => {
    for (const [at, option] of [...list.children].entries())
      option.setAttribute('aria-selected', String(at === chosen));
    list.children[chosen]?.scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', `completion-${chosen}`);
  };
  const acceptChoice = () => {
    const choice = offered[chosen];
    const word = wordAt(input.value, input.selectionStart);
    const to = input.selectionStart;
    close();
    if (choice && word) replace(word.from, to, `${choice.text} `);
  };
  /** Whether the input already contains the text of the selected choice. */
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
          showSelection();
        });
        // `pointerdown` fires before the input loses focus, and the loss of focus would close the list.
        option.addEventListener('pointerdown', (event) => {
          event.preventDefault();
          chosen = at;
          acceptChoice();
        });
        return option;
      }),
    );
    list.hidden = false;
    showSelection();
  };
  /** @param {string} part */
  const findFiles = async (part) => {
    latestRequest += 1;
    const request = latestRequest;
    // The list stays open until the answer arrives; closing it on each keystroke would make it flicker.
    stale = !list.hidden;
    pressed = '';
    const paths = await sources.files(part).catch(() => []);
    if (request !== latestRequest || document.activeElement !== input) return;
    stale = false;
    show('Files', paths.map(fileChoice));
    if (pressed) acceptOrSend(pressed);
  };
  /** Accepts the selected choice. Enter sends the message if there is nothing to complete. @param {string} key */
  const acceptOrSend = (key) => {
    if (offered.length > 0 && !(key === 'Enter' && isTyped())) return acceptChoice();
    close();
    if (key === 'Enter') send();
  };

  return {
    element: list,
    /** Shows the completions for the current text and caret position. */
    offer: () => {
      const text = input.value;
      const word = text === dismissed ? null : wordAt(text, input.selectionStart);
      if (word?.kind === 'command')
        show('Commands', matchingCommands(sources.commands(), word.part).map(commandChoice));
      else if (word?.kind === 'file') findFiles(word.part);
      else close();
    },
    close,
    /** Handles a key press for the list; returns whether the list used it. @param {KeyboardEvent} event */
    key: (event) => {
      if (list.hidden) return false;
      const moves = { ArrowDown: 1, ArrowUp: -1 };
      const move = moves[/** @type {'ArrowDown'} */ (event.key)];
      if (move) {
        chosen = (chosen + move + offered.length) % offered.length;
        showSelection();
      } else if ((event.key === 'Enter' || event.key === 'Tab') && !event.shiftKey && !event.altKey) {
        if (stale) pressed = event.key;
        else acceptOrSend(event.key);
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
function commandChoice({ name, description, hint }) {
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
function fileChoice(path) {
  const name = path.lastIndexOf('/') + 1;
  return {
    text: mention(path),
    shown: [h('span', { class: 'mono' }, h('span', { class: 'hint' }, path.slice(0, name)), path.slice(name))],
  };
}
