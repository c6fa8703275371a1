/**
 * A text that may still grow: as markup where the server sends it, as it is otherwise. What is finished
 * is put in once and never touched again.
 */

import { h } from '../shared/dom.js';
import { fragment } from './markup.js';
import { copyButton } from './stage.js';

/** A plain text goes on in a new block here, so that only the last block is laid out again. */
const BLOCK_CHARACTERS = 2000;

/** @param {import('./stage.js').Stage} stage */
export function textView(stage) {
  const blocks = h('div', { class: 'blocks' });
  const tail = h('div', { class: 'tail' });
  const element = h('div', { class: 'prose' }, blocks, tail);
  let generation = 0;
  let markup = false;
  let shownBlocks = 0;
  let shownTail = '';
  let shownText = 0;
  /** @type {Text | null} */
  let open = null;

  const clear = () => {
    blocks.replaceChildren();
    tail.replaceChildren();
    shownBlocks = 0;
    shownTail = '';
    shownText = 0;
    open = null;
  };

  /** @param {DocumentFragment} content */
  const dressed = (content) => {
    for (const code of content.querySelectorAll('pre')) {
      code.tabIndex = 0;
      const holder = h('div', { class: 'code' });
      code.replaceWith(holder);
      holder.append(
        code,
        copyButton(stage, () => code.textContent ?? '', 'code'),
      );
    }
    for (const image of content.querySelectorAll('img')) image.loading = 'lazy';
    return content;
  };

  /** @param {string} text */
  const addPlain = (text) => {
    let rest = text;
    while (rest) {
      if (!open) {
        open = document.createTextNode('');
        blocks.append(h('div', { class: 'plain' }, open));
      }
      const over = open.length + rest.length > BLOCK_CHARACTERS;
      const end = over ? rest.indexOf('\n', Math.max(0, BLOCK_CHARACTERS - open.length)) : -1;
      open.appendData(end < 0 ? rest : rest.slice(0, end));
      rest = end < 0 ? '' : rest.slice(end + 1);
      if (end >= 0) open = null;
    }
  };

  return {
    element,
    /** @param {import('./transcript.js').Item} item @param {string} text */
    update: (item, text) => {
      if (item.generation !== generation || markup !== Boolean(item.markup)) {
        clear();
        generation = item.generation;
        markup = Boolean(item.markup);
      }
      if (!item.markup) {
        addPlain(text.slice(shownText));
        shownText = text.length;
        return;
      }
      for (; shownBlocks < item.markup.blocks.length; shownBlocks += 1) {
        blocks.append(dressed(fragment(item.markup.blocks[shownBlocks])));
      }
      if (item.markup.tail !== shownTail) {
        shownTail = item.markup.tail;
        tail.replaceChildren(dressed(fragment(shownTail)));
      }
    },
  };
}
