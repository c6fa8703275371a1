/**
 * Search in the whole conversation. The page contains only a part of it, so the browser's own search would miss the
 * rest. This search covers the loaded entries and loads older ones until it finds a match.
 *
 * @typedef {import('./transcript.js').Item} Item
 *
 * @typedef {object} Needs
 * @property {() => Item[]} items
 * @property {() => boolean} more  whether older entries can be loaded
 * @property {() => Promise<void>} older  loads a page of older entries
 * @property {(item: Item) => HTMLElement | null} show  scrolls the entry into view, expands it and returns its element
 * @property {(range: Range) => void} reveal  scrolls a range of text into view
 * @property {() => void} left  called when the user closes the search
 */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';

const HIGHLIGHT = 'found';
const CURRENT_HIGHLIGHT = 'found-here';

/** The searchable text of an entry. @param {Item} item */
export function textOfEntry({ entry }) {
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

/** The entries that contain a text, ignoring case. @param {Item[]} items @param {string} text */
export function matchingItems(items, text) {
  const wanted = text.toLowerCase();
  return wanted === '' ? [] : items.filter((item) => textOfEntry(item).toLowerCase().includes(wanted));
}

/** Number of matches in an entry. @param {Item} item @param {string} text */
export function matchCount(item, text) {
  return text === '' ? 0 : textOfEntry(item).toLowerCase().split(text.toLowerCase()).length - 1;
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
  /** @param {string} label @param {import('../shared/icons.js').IconName} shape @param {() => void} run */
  const button = (label, shape, run) =>
    h('button', { class: 'icon-button', type: 'button', 'aria-label': label, title: label, onclick: run }, icon(shape));
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
  /** Index of the current match within the current entry. */
  let matchIndex = 0;
  /** Number of the latest search; an older search that is still loading stops. */
  let latestSearch = 0;

  const close = () => {
    latestSearch += 1;
    bar.hidden = true;
    current = null;
    element = null;
    highlight([]);
    left();
  };

  /** The matches in the current entry's element. @returns {Range[]} */
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
  const highlight = (all) => {
    if (globalThis.CSS?.highlights) {
      CSS.highlights.set(HIGHLIGHT, new Highlight(...all));
      CSS.highlights.set(CURRENT_HIGHLIGHT, new Highlight(...all.slice(matchIndex, matchIndex + 1)));
    }
    if (all[matchIndex]) reveal(all[matchIndex]);
  };

  /** Selects the last or first match of entry `at`. @param {Item[]} found @param {number} at @param {boolean} last */
  const selectEntry = (found, at, last) => {
    current = found[at] ?? null;
    element = current && show(current);
    const all = ranges();
    matchIndex = last ? Math.max(0, all.length - 1) : 0;
    highlight(all);
    showCount(found);
  };

  /** @param {Item[]} found */
  const showCount = (found) => {
    if (!current) {
      count.textContent = field.value ? 'Nothing found' : '';
      return;
    }
    const at = found.findIndex(({ id }) => id === current?.id);
    const times = found.map((item) => matchCount(item, field.value));
    const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, one) => all + one, 0);
    // The text may contain more matches than the element shows, for example in the address of a link.
    const number = sum(times.slice(0, at)) + Math.min(matchIndex + 1, times[at]);
    count.textContent = `${number} of ${sum(times)}${more() ? '+' : ''}`;
  };

  /**
   * Moves to the next (1) or previous (-1) match, or starts a search at the newest entry (0).
   * @param {1 | -1 | 0} by
   */
  const step = async (by) => {
    latestSearch += 1;
    const search = latestSearch;
    let found = matchingItems(items(), field.value);
    if (current && by !== 0) {
      if (!element?.isConnected) element = show(current);
      const all = ranges();
      if (all[matchIndex + by]) {
        matchIndex += by;
        highlight(all);
        showCount(found);
        return;
      }
    }
    let at = current ? found.findIndex(({ id }) => id === current?.id) + by : found.length - 1;
    // No match in the loaded entries: load older ones.
    while (field.value && (found.length === 0 || at < 0) && more()) {
      count.textContent = 'Searching older entries…';
      const before = items().length;
      await older();
      if (search !== latestSearch || items().length === before) break;
      const now = matchingItems(items(), field.value);
      at += now.length - found.length;
      found = now;
    }
    if (search === latestSearch) selectEntry(found, (at + found.length) % (found.length || 1), by <= 0);
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
    /** Whether the search field has focus; Ctrl+F then opens the browser's own search. */
    has: () => document.activeElement === field,
  };
}
