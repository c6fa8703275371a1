/** The view of non-text content from an agent: images, audio, resources and links. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { size } from './format.js';
import { cappedText } from './view-context.js';

/** @typedef {import('../types/wire.js').MediaBlock} MediaBlock */

/** Maximum length of base64 data that is shown, in characters. */
const DATA_MAX = 20 * 1024 * 1024;
/** Image types the browser may decode. SVG is excluded because it can contain scripts. */
const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp'];

/** @param {MediaBlock} block @param {import('./view-context.js').ViewContext} context @param {string} key @returns {HTMLElement} */
export function mediaView(block, context, key) {
  switch (block.type) {
    case 'image':
      return encoded(block, PICTURES.includes(block.mimeType.toLowerCase()), (url) =>
        h('img', { class: 'picture', src: url, alt: 'Picture from the agent', loading: 'lazy' }),
      );
    case 'audio':
      return encoded(block, /^audio\/[\w.+-]+$/i.test(block.mimeType), (url) =>
        h('audio', { src: url, controls: true, 'aria-label': 'Audio from the agent' }),
      );
    case 'link':
      return h(
        'p',
        { class: 'resource' },
        icon('link'),
        linkTo(block.uri, block.name || block.uri, context),
        block.description ? h('span', { class: 'hint' }, block.description) : '',
      );
    case 'resource': {
      const text = cappedText(context, `${key}-resource`);
      if (block.text !== undefined) text.update(block.text);
      return h(
        'div',
        { class: 'resource-text' },
        h('p', { class: 'resource' }, icon('read'), linkTo(block.uri, block.uri, context)),
        block.text === undefined ? h('p', { class: 'hint' }, 'Binary content.') : text.element,
      );
    }
    default:
      return h('p', { class: 'hint' }, 'Unsupported content type.');
  }
}

/**
 * @param {{ mimeType: string, data: string }} block
 * @param {boolean} known
 * @param {(url: string) => HTMLElement} show
 */
function encoded({ mimeType, data }, known, show) {
  if (!known) return h('p', { class: 'hint' }, `Cannot be shown: ${mimeType}`);
  if (data.length > DATA_MAX) return h('p', { class: 'hint' }, `Too large to show: ${size(data.length * 0.75)}`);
  return show(`data:${mimeType.toLowerCase()};base64,${data}`);
}

/** @param {string} uri @param {string} text @param {import('./view-context.js').ViewContext} context */
function linkTo(uri, text, context) {
  if (!/^(https?|mailto):/i.test(uri)) return h('span', { class: 'mono', title: uri }, text);
  const open = /** @param {Event} event */ (event) => {
    event.preventDefault();
    context.openLink(uri);
  };
  return h('a', { href: uri, title: uri, onclick: open }, text);
}
