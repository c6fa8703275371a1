/** The agent's slash commands, offered while one is typed. */

import { h } from '../shared/dom.js';

/** @typedef {import('../types/wire.js').SlashCommand} SlashCommand */

const SHOWN_MAX = 50;

/** Those that fit what is typed; none when it is no command. @param {SlashCommand[]} commands @param {string} text @param {number} caret */
export function fitting(commands, text, caret) {
  const word = /^\/(\S*)$/.exec(text.slice(0, caret))?.[1]?.toLowerCase();
  if (word === undefined) return [];
  const begins = commands.filter(({ name }) => name.toLowerCase().startsWith(word));
  const holds = commands.filter(
    ({ name }) => !begins.some((one) => one.name === name) && name.toLowerCase().includes(word),
  );
  return [...begins, ...holds].slice(0, SHOWN_MAX);
}

/** @param {HTMLTextAreaElement} input @param {(command: SlashCommand) => void} choose */
export function startCompletion(input, choose) {
  const list = h('div', { class: 'completions', id: 'completions', role: 'listbox', 'aria-label': 'Commands' });
  list.hidden = true;
  /** @type {SlashCommand[]} */
  let offered = [];
  let chosen = 0;
  /** What was typed when the person sent the list away. */
  let dismissed = '';

  const close = () => {
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
    const command = offered[chosen];
    close();
    if (command) choose(command);
  };

  return {
    element: list,
    /** @param {SlashCommand[]} commands */
    offer: (commands) => {
      const text = input.value;
      offered = text === dismissed ? [] : fitting(commands, text, input.selectionStart);
      if (offered.length === 0) return close();
      dismissed = '';
      chosen = 0;
      list.replaceChildren(
        ...offered.map(({ name, description, hint }, at) => {
          const option = h(
            'div',
            { class: 'completion', role: 'option', id: `completion-${at}` },
            h('span', { class: 'mono' }, `/${name}`),
            hint ? h('span', { class: 'hint mono' }, hint) : '',
            h('span', { class: 'hint' }, description),
          );
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
        take();
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
