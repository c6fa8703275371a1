/**
 * The only place where text becomes elements. The server has made it safe: a short list of elements,
 * no script, no style; the page's policy would let none run either. What the server sends as text and a
 * person has to trust to the letter is shown here as `crates/render` shows code.
 */

import { h } from '../shared/dom.js';

/**
 * @typedef {{ createHTML: (text: string) => string }} Policy
 * @typedef {{ createPolicy: (name: string, rules: Policy) => Policy }} TrustedTypes
 */

const trusted = /** @type {{ trustedTypes?: TrustedTypes }} */ (globalThis).trustedTypes;
const policy = trusted?.createPolicy('liminal-markup', { createHTML: (text) => text });

/** @param {string} html  from the server @returns {DocumentFragment} */
export function fragment(html) {
  const template = document.createElement('template');
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
}

/** Characters that cannot be seen or that turn text around; the same as in `crates/render/src/escape.rs`. */
const UNSEEN = /(?![\t\n\r])[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff0-\ufffb]/gu;
/** Not these: joiners between emoji, and the letters of a flag. */
const IN_EMOJI =
  /(?<=\ufe0f|[\u2190-\u2bff\u{1f000}-\u{1faff}])\u200d(?=\ufe0f|[\u2190-\u2bff\u{1f000}-\u{1faff}])|(?<=\u{1f3f4}[\u{e0061}-\u{e007f}]{0,7})[\u{e0061}-\u{e007f}]/uy;

/**
 * A text cut at what cannot be seen.
 * @param {string} text @returns {{ text: string, unseen: boolean }[]}
 */
export function withUnseen(text) {
  const pieces = [];
  let from = 0;
  for (const { 0: character, index } of text.matchAll(UNSEEN)) {
    const number = Number(character.codePointAt(0));
    IN_EMOJI.lastIndex = index;
    // Those from FE00 on choose between two looks of the sign before them.
    if ((number & ~0xf) === 0xfe00 || IN_EMOJI.test(text)) continue;
    if (index > from) pieces.push({ text: text.slice(from, index), unseen: false });
    pieces.push({ text: `U+${number.toString(16).toUpperCase().padStart(4, '0')}`, unseen: true });
    from = index + character.length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), unseen: false });
  return pieces;
}

/** Text in which nothing hides: for paths, commands, changes and questions. @param {string} text */
export function exact(text) {
  return withUnseen(text).map((piece) => (piece.unseen ? h('span', { class: 'unseen' }, piece.text) : piece.text));
}

/** The same for a title, in which agents put commands and names between backticks. @param {string} text */
export function titled(text) {
  return text
    .split(/(`[^`]+`)/)
    .flatMap((part) => (/^`[^`]+`$/.test(part) ? [h('code', {}, ...exact(part.slice(1, -1)))] : exact(part)));
}
