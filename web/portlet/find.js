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
 * @property {() => void} left  the person is done
 */

import { h } from '../shared/dom.js';
import { glyph } from './icons.js';

const HIGHLIGHT = 'found';

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

/** @param {HTMLElement} place @param {Needs} needs */
export function startFind(place, { items, more, older, show, left }) {
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
  /** Counts what was wanted, so that a search that was overtaken stops loading. */
  let wanted = 0;

  const close = () => {
    wanted += 1;
    bar.hidden = true;
    current = null;
    mark(null);
    left();
  };

  /** The ranges of the text within an element, in the browser's own colour for it. @param {HTMLElement | null} element */
  const mark = (element) => {
    if (!globalThis.CSS?.highlights) return;
    CSS.highlights.delete(HIGHLIGHT);
    const text = field.value.toLowerCase();
    if (!element || !text) return;
    const highlight = new Highlight();
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    /** @type {Range | undefined} */
    let first;
    while (walker.nextNode()) {
      const node = /** @type {Text} */ (walker.currentNode);
      const words = node.data.toLowerCase();
      for (let at = words.indexOf(text); at >= 0; at = words.indexOf(text, at + text.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, Math.min(node.length, at + text.length));
        highlight.add(range);
        first ??= range;
      }
    }
    CSS.highlights.set(HIGHLIGHT, highlight);
    first?.startContainer.parentElement?.scrollIntoView({ block: 'nearest' });
  };

  /** @param {Item[]} found @param {number} at */
  const point = (found, at) => {
    current = found[at] ?? null;
    const rest = more() ? '+' : '';
    count.textContent = current ? `${at + 1} of ${found.length}${rest}` : field.value ? 'Nothing found' : '';
    mark(current && show(current));
  };

  /** From the newest, or from where one is. @param {1 | -1 | 0} by */
  const step = async (by) => {
    wanted += 1;
    const mine = wanted;
    let found = holding(items(), field.value);
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
    if (mine === wanted) point(found, (at + found.length) % (found.length || 1));
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
