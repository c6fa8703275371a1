/**
 * Finding in the whole conversation. Only a part of it is in the page, so the browser's own search would miss the
 * rest: this one looks through what is known, and asks for what is older until it has found something.
 *
 * @typedef {import('./transcript.js').Item} Item
 *
 * @typedef {object} Needs
 * @property {() => Item[]} items
 * @property {() => boolean} more  whether there are older entries than these
 * @property {() => Promise<void>} older  asks for some of them
 * @property {(item: Item) => HTMLElement | null} show  brings it into view, open, and gives its element
 * @property {(range: Range) => void} reveal  brings a piece of its text into view
 * @property {() => void} left  the person is done
 */

import { h } from '../shared/dom.js';
import { glyph } from './icons.js';

const HIGHLIGHT = 'found';
const HERE = 'found-here';

/** The words of an entry that can be seen. @param {Item} item */
export function wordsOf({ entry }) {
  switch (entry.type) {
    case 'user':
    case 'assistant':
    case 'thinking':
      return entry.content;
    case 'tool-call':
      return [
        entry.name,
        entry.result,
        entry.error,
        ...(entry.content ?? []).map((part) => {
          if (part.type === 'text') return part.text;
          if (part.type === 'terminal') return part.output;
          return part.type === 'diff' ? `${part.path}\n${part.newText}` : '';
        }),
      ].join('\n');
    case 'plan':
      return entry.items.map(({ content }) => content).join('\n');
    case 'notice':
      return `${entry.title}\n${entry.description ?? ''}`;
    case 'question':
      return [entry.message, ...Object.values(entry.answers ?? {}).flat()].join('\n');
    case 'turn':
      return entry.message ?? '';
    default:
      return '';
  }
}

/** The entries that hold a text, whatever the case. @param {Item[]} items @param {string} text */
export function holding(items, text) {
  const wanted = text.toLowerCase();
  return wanted === '' ? [] : items.filter((item) => wordsOf(item).toLowerCase().includes(wanted));
}

/** How often an entry holds a text. @param {Item} item @param {string} text */
export function timesIn(item, text) {
  return text === '' ? 0 : wordsOf(item).toLowerCase().split(text.toLowerCase()).length - 1;
}

/** @param {HTMLElement} place @param {Needs} needs */
export function startFind(place, { items, more, older, show, reveal, left }) {
  const field = h('input', {
    class: 'field',
    type: 'search',
    'aria-label': 'Find in the conversation',
    placeholder: 'Find',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const count = h('span', { class: 'find-count', role: 'status' });
  /** @param {string} label @param {import('./icons.js').Glyph} shape @param {() => void} run */
  const button = (label, shape, run) =>
    h(
      'button',
      { class: 'icon-button', type: 'button', 'aria-label': label, title: label, onclick: run },
      glyph(shape),
    );
  const bar = h(
    'search',
    { class: 'find' },
    field,
    count,
    button('Previous (Shift+Enter)', 'up', () => step(-1)),
    button('Next (Enter)', 'down', () => step(1)),
    button('Close (Escape)', 'remove', () => close()),
  );
  bar.hidden = true;
  place.append(bar);
  /** @type {Item | null} */
  let current = null;
  /** @type {HTMLElement | null} */
  let element = null;
  /** Which of the places in the current entry. */
  let here = 0;
  /** Counts what was wanted, so that a search that was overtaken stops loading. */
  let wanted = 0;

  const close = () => {
    wanted += 1;
    bar.hidden = true;
    current = null;
    element = null;
    mark([]);
    left();
  };

  /** Where the text stands in the current entry. @returns {Range[]} */
  const ranges = () => {
    const text = field.value.toLowerCase();
    if (!element || !text) return [];
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const all = [];
    while (walker.nextNode()) {
      const node = /** @type {Text} */ (walker.currentNode);
      const words = node.data.toLowerCase();
      for (let at = words.indexOf(text); at >= 0; at = words.indexOf(text, at + text.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, Math.min(node.length, at + text.length));
        all.push(range);
      }
    }
    return all;
  };

  /** @param {Range[]} all */
  const mark = (all) => {
    if (globalThis.CSS?.highlights) {
      CSS.highlights.set(HIGHLIGHT, new Highlight(...all));
      CSS.highlights.set(HERE, new Highlight(...all.slice(here, here + 1)));
    }
    if (all[here]) reveal(all[here]);
  };

  /** At the last place in an entry, or at the first. @param {Item[]} found @param {number} at @param {boolean} last */
  const point = (found, at, last) => {
    current = found[at] ?? null;
    element = current && show(current);
    const all = ranges();
    here = last ? Math.max(0, all.length - 1) : 0;
    mark(all);
    tell(found);
  };

  /** @param {Item[]} found */
  const tell = (found) => {
    if (!current) {
      count.textContent = field.value ? 'Nothing found' : '';
      return;
    }
    const at = found.findIndex(({ id }) => id === current?.id);
    const times = found.map((item) => timesIn(item, field.value));
    const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, one) => all + one, 0);
    // Not all of what is written is seen: an address behind a link is not.
    const number = sum(times.slice(0, at)) + Math.min(here + 1, times[at]);
    count.textContent = `${number} of ${sum(times)}${more() ? '+' : ''}`;
  };

  /** From the newest, or from where one is. @param {1 | -1 | 0} by */
  const step = async (by) => {
    wanted += 1;
    const mine = wanted;
    let found = holding(items(), field.value);
    if (current && by !== 0) {
      if (!element?.isConnected) element = show(current);
      const all = ranges();
      if (all[here + by]) {
        here += by;
        mark(all);
        tell(found);
        return;
      }
    }
    let at = current ? found.findIndex(({ id }) => id === current?.id) + by : found.length - 1;
    // Up past what is known: there may be more of it.
    while (field.value && (found.length === 0 || at < 0) && more()) {
      count.textContent = 'Looking further back…';
      const before = items().length;
      await older();
      if (mine !== wanted || items().length === before) break;
      const now = holding(items(), field.value);
      at += now.length - found.length;
      found = now;
    }
    if (mine === wanted) point(found, (at + found.length) % (found.length || 1), by <= 0);
  };

  field.addEventListener('input', () => {
    current = null;
    step(0);
  });
  bar.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && event.target === field) step(event.shiftKey ? -1 : 1);
    else if (event.key === 'Escape') close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    open: () => {
      bar.hidden = false;
      field.focus();
      field.select();
      if (field.value) step(0);
      return true;
    },
    /** Whether the person is in the field: then the browser's own search is wanted. */
    has: () => document.activeElement === field,
  };
}
