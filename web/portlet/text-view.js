/**
 * The view of a text that may still grow. It shows the server's HTML if there is any, plain text otherwise. A finished
 * part is inserted once and not touched again.
 */

import { h } from '../shared/dom.js';
import { fragment } from './markup.js';

/** Block size of plain text in characters. Text is split into blocks so that only the last one needs a new layout. */
const BLOCK_CHARACTERS = 2000;

/** How long the copy button confirms its action, in milliseconds. */
const CONFIRMATION_MS = 1500;

/** @param {import('./view-context.js').ViewContext} context */
export function textView(context) {
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
    context.copy(code.textContent ?? '');
    button.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, CONFIRMATION_MS);
  });

  /**
   * Appends each part at its depth: inside the last element of that level.
   * @param {import('../types/wire.js').RenderedPart[]} parts
   */
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
