/**
 * The command palette: a search field over all sessions, projects and actions. It can also show another list, such as
 * the projects for a new session.
 *
 * @typedef {object} Choice
 * @property {string} label
 * @property {string} [note]
 * @property {string} [badge]
 * @property {string} [keys]  shortcut for the same action
 * @property {import('./attention.js').Mark} [mark]
 * @property {boolean} [current]  whether it is selected at first
 * @property {() => void} run
 */

import { h, part } from '../shared/dom.js';
import { markSign } from './marks.js';

const SHOWN_MAX = 50;
/** Maximum choices shown for a list that is browsed rather than searched. */
export const WHOLE_LIST = 500;

/**
 * The choices whose label or note contains every word of the query, closest match of the label first.
 * @param {Choice[]} choices
 * @param {string} query
 * @param {number} [max]
 */
export function matchingChoices(choices, query, max = SHOWN_MAX) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return choices.slice(0, max);
  const typed = words.join(' ');
  /** @type {Choice[][]} */
  const ranks = Array.from({ length: FARTHEST + 1 }, () => []);
  for (const choice of choices) {
    const label = choice.label.toLowerCase();
    const text = `${label} ${choice.note?.toLowerCase() ?? ''}`;
    if (!words.every((word) => text.includes(word))) continue;
    ranks[rankOf(label, typed, words[0])].push(choice);
    // Enough exact matches; no later choice can rank higher.
    if (ranks[0].length >= max) break;
  }
  return ranks.flat().slice(0, max);
}

/** Rank of the weakest match. */
const FARTHEST = 5;

/**
 * Rank of a label, 0 is best: it equals the query, starts with it, contains it as whole words, or contains a prefix.
 * @param {string} label @param {string} typed @param {string} first  first word of the query
 */
function rankOf(label, typed, first) {
  if (label === typed) return 0;
  const at = label.indexOf(typed);
  const whole = at >= 0 && !isWordCharacter(label[at + typed.length]);
  if (at === 0) return whole ? 1 : 3;
  if (at > 0 && !isWordCharacter(label[at - 1])) return whole ? 2 : 4;
  return label.startsWith(first) ? 4 : FARTHEST;
}

/** @param {string | undefined} character */
function isWordCharacter(character) {
  return character !== undefined && /[\p{L}\p{N}]/u.test(character);
}

export function startPalette() {
  const dialog = part('palette', HTMLDialogElement);
  const field = part('palette-field', HTMLInputElement);
  const list = part('palette-list', HTMLElement);
  const none = part('palette-none', HTMLElement);
  /** @type {Choice[]} */
  let choices = [];
  /** @type {Choice[]} */
  let found = [];
  let active = 0;
  let max = SHOWN_MAX;

  /** @param {number} index */
  const activate = (index) => {
    active = index;
    for (const [at, option] of [...list.children].entries()) {
      option.setAttribute('aria-selected', String(at === index));
      if (at === index) option.scrollIntoView({ block: 'nearest' });
    }
    if (found.length > 0) field.setAttribute('aria-activedescendant', `choice-${index}`);
    else field.removeAttribute('aria-activedescendant');
  };

  const search = () => {
    found = matchingChoices(choices, field.value, max);
    list.replaceChildren(...found.map((choice, index) => option(choice, index, () => runChoice(choice))));
    list.hidden = found.length === 0;
    none.hidden = found.length > 0;
    const current = field.value === '' ? found.findIndex((choice) => choice.current) : -1;
    activate(Math.max(0, current));
  };

  /** @param {Choice | undefined} choice */
  const runChoice = (choice) => {
    if (!choice) return;
    dialog.close();
    choice.run();
  };

  field.addEventListener('input', search);
  field.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step !== undefined && found.length > 0) {
      const one = Math.abs(step) === 1;
      const to = active + step;
      activate(one ? (to + found.length) % found.length : Math.max(0, Math.min(found.length - 1, to)));
    } else if (event.key === 'Enter') runChoice(found[active]);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener('mousedown', (event) => {
    if (event.target === dialog) dialog.close();
  });

  return {
    /** @param {string} label @param {Choice[]} all @param {number} [shown]  maximum number of choices shown */
    open: (label, all, shown = SHOWN_MAX) => {
      choices = all;
      max = shown;
      field.value = '';
      field.placeholder = label;
      field.setAttribute('aria-label', label);
      dialog.setAttribute('aria-label', label);
      if (!dialog.open) dialog.showModal();
      search();
      field.focus();
    },
    close: () => dialog.close(),
    isOpen: () => dialog.open,
  };
}

/** @typedef {ReturnType<typeof startPalette>} Palette */

/** @param {Choice} choice @param {number} index @param {() => void} runChoice */
function option({ label, note, badge, keys, mark, current }, index, runChoice) {
  const sign = markSign();
  sign.show(mark ?? 'idle');
  return h(
    'div',
    {
      role: 'option',
      id: `choice-${index}`,
      'aria-selected': 'false',
      'aria-current': current && 'true',
      onclick: runChoice,
      // Otherwise the field would lose the focus before the click.
      onmousedown: (event) => event.preventDefault(),
    },
    sign.element,
    h('span', { class: 'choice-label' }, label),
    badge && h('span', { class: 'badge', 'aria-hidden': 'true' }, badge),
    note && h('span', { class: 'choice-note' }, note),
    keys && h('kbd', {}, keys),
  );
}
