/** The state mark beside a session: a colour and a shape, with a text for screen readers. */

import { h } from '../shared/dom.js';
import { MARK_WORDS } from './attention.js';

/** @typedef {import('./attention.js').Mark} Mark */

export function markSign() {
  const shape = h('span', { class: 'mark-shape', 'aria-hidden': 'true' });
  const words = h('span', { class: 'sr-only' });
  const element = h('span', { class: 'state-mark', 'data-mark': 'idle' }, shape, words);
  return {
    element,
    /** @param {Mark} mark */
    show: (mark) => {
      if (element.dataset.mark === mark) return;
      element.dataset.mark = mark;
      words.textContent = MARK_WORDS[mark];
      element.title = MARK_WORDS[mark];
    },
  };
}
