/** A change to a file, as a person reads one: name, counts, lines, and the words that changed. */

import { h } from '../shared/dom.js';
import { diff } from './diff.js';
import { within } from './format.js';
import { exact } from './markup.js';
import { unseen } from './stage.js';

/** @typedef {Extract<import('../types/wire.js').ToolContent, { type: 'diff' }>} FileChange */

/** More lines than anybody reads at once; the rest is one click away. */
const LINES_MAX = 200;
const SIGNS = { same: ' ', removed: '−', added: '+' };
const WORDS = { same: '', removed: 'removed: ', added: 'added: ' };

/** @param {import('./stage.js').Stage} stage */
export function diffView(stage) {
  const element = h('figure', { class: 'diff' });
  /** @type {FileChange | null} */
  let shown = null;
  let whole = false;

  const render = () => {
    if (!shown) return;
    const { hunks, added, removed } = diff(shown.oldText, shown.newText);
    const head = h(
      'figcaption',
      { class: 'diff-head' },
      h('span', { class: 'mono path' }, ...exact(within(shown.path, stage.projectPath()))),
      h('span', { class: 'added' }, `+${added}`),
      h('span', { class: 'removed' }, `−${removed}`),
    );
    let left = whole ? Infinity : LINES_MAX;
    const rows = h('div', { class: 'diff-lines', tabindex: '0', role: 'group', 'aria-label': 'Changed lines' });
    for (const [index, hunk] of hunks.entries()) {
      if (left <= 0) break;
      if (index > 0) rows.append(h('div', { class: 'diff-gap', 'aria-hidden': 'true' }, '⋯'));
      for (const line of hunk.slice(0, left)) rows.append(lineOf(line));
      left -= hunk.length;
    }
    const total = hunks.reduce((sum, hunk) => sum + hunk.length, 0);
    const more =
      left < 0 &&
      h('button', { class: 'link-button', type: 'button', onclick: () => showWhole() }, `Show all ${total} lines`);
    element.replaceChildren(head, total > 0 ? rows : h('p', { class: 'hint' }, 'Nothing changes.'), more || '');
  };
  const showWhole = () => {
    whole = true;
    render();
  };

  return {
    element,
    /** @param {FileChange} change */
    update: (change) => {
      const same = shown && shown.path === change.path && shown.oldText === change.oldText;
      if (same && shown?.newText === change.newText) return;
      shown = change;
      render();
    },
  };
}

/** @param {import('./diff.js').Line} line */
function lineOf({ kind, old, new: now, parts }) {
  const text = h('span', { class: 'diff-text' });
  for (const { text: piece, changed } of parts)
    text.append(...(changed ? [h('mark', {}, ...exact(piece))] : exact(piece)));
  return h(
    'div',
    { class: `diff-line ${kind}` },
    h('span', { class: 'diff-number', 'aria-hidden': 'true' }, String(now ?? old ?? '')),
    h('span', { class: 'diff-sign', 'aria-hidden': 'true' }, SIGNS[kind]),
    WORDS[kind] && unseen(WORDS[kind]),
    text,
  );
}
