/**
 * The only module that turns text into elements. The HTML comes from the server's renderer, which allows a short list
 * of elements and no script or style; the page's Content-Security-Policy would block those as well. Plain text that the
 * user must be able to trust, such as a command, shows its invisible characters, as `crates/render` does for code.
 */

import { h } from '../shared/dom.js';

/**
 * @typedef {{ createHTML: (text: string) => string }} Policy
 * @typedef {{ createPolicy: (name: string, rules: Policy) => Policy }} TrustedTypes
 */

const trusted = /** @type {{ trustedTypes?: TrustedTypes }} */ (globalThis).trustedTypes;
const policy = trusted?.createPolicy('liminal-markup', { createHTML: (text) => text });

/** @param {string} html  as rendered by the server @returns {DocumentFragment} */
export function fragment(html) {
  const template = document.createElement('template');
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
}

/** Invisible characters and text direction controls; the same set as in `crates/render/src/escape.rs`. */
const INVISIBLE = /(?![\t\n\r])[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff0-\ufffb]/gu;
/** Exceptions: joiners between emoji, and the tag characters of a flag. */
const IN_EMOJI =
  /(?<=\ufe0f|[\u2190-\u2bff\u{1f000}-\u{1faff}])\u200d(?=\ufe0f|[\u2190-\u2bff\u{1f000}-\u{1faff}])|(?<=\u{1f3f4}[\u{e0061}-\u{e007f}]{0,7})[\u{e0061}-\u{e007f}]/uy;

/**
 * Splits a text at invisible characters; each of them becomes a piece with its code point, such as `U+200B`.
 * @param {string} text @returns {{ text: string, invisible: boolean }[]}
 */
export function splitInvisible(text) {
  const pieces = [];
  let from = 0;
  for (const { 0: character, index } of text.matchAll(INVISIBLE)) {
    const number = Number(character.codePointAt(0));
    IN_EMOJI.lastIndex = index;
    // U+FE00 to U+FE0F are variation selectors, which choose the appearance of the character before them.
    if ((number & ~0xf) === 0xfe00 || IN_EMOJI.test(text)) continue;
    if (index > from) pieces.push({ text: text.slice(from, index), invisible: false });
    pieces.push({ text: `U+${number.toString(16).toUpperCase().padStart(4, '0')}`, invisible: true });
    from = index + character.length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), invisible: false });
  return pieces;
}

/** A text with its invisible characters made visible: for paths, commands, diffs and questions. @param {string} text */
export function exact(text) {
  return splitInvisible(text).map((piece) =>
    piece.invisible ? h('span', { class: 'unseen' }, piece.text) : piece.text,
  );
}

/**
 * A title from an agent with its invisible characters made visible; text between backticks is shown as code.
 * @param {string} text
 */
export function titled(text) {
  return text
    .split(/(`[^`]+`)/)
    .flatMap((part) => (/^`[^`]+`$/.test(part) ? [h('code', {}, ...exact(part.slice(1, -1)))] : exact(part)));
}
