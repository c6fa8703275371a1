/**
 * A text that may still grow: as markup where the server sends it, as it is otherwise. What is finished
 * is put in once and never touched again.
 */

import { h } from '../shared/dom.js';
import { fragment } from './markup.js';

/** A plain text goes on in a new block here, so that only the last block is laid out again. */
const BLOCK_CHARACTERS = 2000;

const SAID_MS = 1500;

/** @param {import('./stage.js').Stage} stage */
export function textView(stage) {
  const element = h('div', { class: 'prose' });
  let generation = 0;
  let markup = false;
  let shownParts = 0;
  /** @type {import('../types/wire.js').RenderedPart[]} */
  let shownTail = [];
  /** @type {ChildNode[]} */
  let tailNodes = [];
  let shownText = 0;
  /** @type {Text | null} */
  let open = null;

  const clear = () => {
    element.replaceChildren();
    shownParts = 0;
    shownTail = [];
    tailNodes = [];
    shownText = 0;
    open = null;
  };

  element.addEventListener('click', ({ target }) => {
    const button = target instanceof Element ? target.closest('figure.code .copy') : null;
    const code = button?.closest('figure')?.querySelector('pre');
    if (!button || !code) return;
    stage.copy(code.textContent ?? '');
    button.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, SAID_MS);
  });

  /** Appends the parts where each belongs. @param {import('../types/wire.js').RenderedPart[]} parts */
  const append = (parts) => {
    /** @type {ChildNode[]} */
    const nodes = [];
    for (const { depth = 0, html } of parts) {
      /** @type {Element} */
      let place = element;
      for (let down = 0; down < depth; down += 1) place = place.lastElementChild ?? place;
      const content = fragment(html);
      nodes.push(...content.childNodes);
      place.append(content);
    }
    return nodes;
  };

  /** @param {string} text */
  const addPlain = (text) => {
    let rest = text;
    while (rest) {
      if (!open) {
        open = document.createTextNode('');
        element.append(h('div', { class: 'plain' }, open));
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
      if (item.markup.finished.length === shownParts && item.markup.tail === shownTail) return;
      for (const node of tailNodes) node.remove();
      append(item.markup.finished.slice(shownParts));
      shownParts = item.markup.finished.length;
      shownTail = item.markup.tail;
      tailNodes = append(shownTail);
    },
  };
}
