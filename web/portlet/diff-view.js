/**
 * The view of a file change: path, line counts, highlighted lines, and marks on the words that changed.
 */

import { h } from '../shared/dom.js';
import { diff } from './diff.js';
import { within } from './format.js';
import { exact, fragment } from './markup.js';
import { screenReaderText } from './view-context.js';

/**
 * @typedef {Extract<import('../types/wire.js').ToolContent, { type: 'diff' }>} FileChange
 * @typedef {import('../types/wire.js').ColouredDiff} ColouredDiff
 */

/** Maximum lines shown at first; a button shows the rest. */
const LINES_MAX = 200;
const SIGNS = { same: ' ', removed: '−', added: '+' };
const WORDS = { same: '', removed: 'removed: ', added: 'added: ' };

/** @type {WeakMap<FileChange, { added: number, removed: number }>} */
const counts = new WeakMap();

/** Numbers of lines added and removed by a change; computed once per change. @param {FileChange} change */
export function lineCounts(change) {
  let known = counts.get(change);
  if (!known) {
    const { added, removed } = diff(change.oldText, change.newText);
    known = { added, removed };
    counts.set(change, known);
  }
  return known;
}

/** @param {import('./view-context.js').ViewContext} context */
export function diffView(context) {
  const element = h('figure', { class: 'diff' });
  /** @type {FileChange | null} */
  let shown = null;
  /** @type {ColouredDiff | undefined} */
  let colours;
  let whole = false;

  const render = () => {
    if (!shown) return;
    const { hunks, added, removed } = diff(shown.oldText, shown.newText);
    const head = h(
      'figcaption',
      { class: 'diff-head' },
      h('span', { class: 'mono path' }, ...exact(within(shown.path, context.projectPath()))),
      h('span', { class: 'added' }, `+${added}`),
      h('span', { class: 'removed' }, `−${removed}`),
    );
    let left = whole ? Infinity : LINES_MAX;
    const rows = h('div', { class: 'diff-lines code', tabindex: '0', role: 'group', 'aria-label': 'Changed lines' });
    for (const [index, hunk] of hunks.entries()) {
      if (left <= 0) break;
      if (index > 0) rows.append(h('div', { class: 'diff-gap', 'aria-hidden': 'true' }, '⋯'));
      for (const line of hunk.slice(0, left)) rows.append(lineOf(line, colours));
      left -= hunk.length;
    }
    const total = hunks.reduce((sum, hunk) => sum + hunk.length, 0);
    const more =
      left < 0 &&
      h('button', { class: 'link-button', type: 'button', onclick: () => showWhole() }, `Show all ${total} lines`);
    element.replaceChildren(head, total > 0 ? rows : h('p', { class: 'hint' }, 'No changes.'), more || '');
  };
  const showWhole = () => {
    whole = true;
    render();
  };

  return {
    element,
    /** @param {FileChange} change @param {ColouredDiff} [coloured] */
    update: (change, coloured) => {
      const same = shown && shown.path === change.path && shown.oldText === change.oldText;
      if (same && shown?.newText === change.newText && Boolean(coloured) === Boolean(colours)) return;
      shown = change;
      colours = coloured;
      render();
    },
  };
}

/** @param {import('./diff.js').Line} line @param {ColouredDiff} [colours] */
function lineOf(line, colours) {
  const { kind, old, new: now } = line;
  return h(
    'div',
    { class: `diff-line ${kind}` },
    h('span', { class: 'diff-number', 'aria-hidden': 'true' }, String(now ?? old ?? '')),
    h('span', { class: 'diff-sign', 'aria-hidden': 'true' }, SIGNS[kind]),
    WORDS[kind] && screenReaderText(WORDS[kind]),
    textOf(line, colours),
  );
}

/** @param {import('./diff.js').Line} line @param {ColouredDiff} [colours] */
function textOf({ old = 0, new: now, parts }, colours) {
  const text = h('span', { class: 'diff-text' });
  const html =
    colours && (now === undefined ? colours.old[old - 1 - colours.first] : colours.new[now - 1 - colours.first]);
  if (html) text.append(fragment(html));
  const plain = parts.map((part) => part.text).join('');
  // The user decides on this text, so highlighting that alters it is dropped.
  if (text.textContent === plain) markWords(text, parts);
  else
    text.replaceChildren(
      ...parts.flatMap((part) => (part.changed ? [h('mark', {}, ...exact(part.text))] : exact(part.text))),
    );
  return text;
}

/** Marks the changed parts of a highlighted line. @param {HTMLElement} line @param {import('./diff.js').Part[]} parts */
function markWords(line, parts) {
  if (!parts.some(({ changed }) => changed)) return;
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const texts = [];
  while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode));
  let left = 0;
  let part = -1;
  for (const node of texts) {
    /** @type {(string | HTMLElement)[]} */
    const pieces = [];
    for (let rest = node.data; rest; ) {
      while (left === 0) {
        part += 1;
        left = parts[part].text.length;
      }
      const piece = rest.slice(0, left);
      pieces.push(parts[part].changed ? h('mark', {}, piece) : piece);
      rest = rest.slice(piece.length);
      left -= piece.length;
    }
    node.replaceWith(...pieces);
  }
}
