/** Terminal lines as DOM elements, and the web addresses found in them. */

import { h } from './dom.js';

/** Maximum addresses returned; the latest ones are kept. */
const ADDRESSES_MAX = 5;

/** @param {import('./ansi.js').Run[]} runs */
export function lineOf(runs) {
  const line = h('span', { class: 'terminal-line' });
  for (const { text, style } of runs) {
    const names = Object.keys(style).filter((name) => style[/** @type {keyof typeof style} */ (name)]);
    line.append(names.length === 0 ? text : runOf(text, style));
  }
  line.append('\n');
  return line;
}

/** @param {string} text @param {import('./ansi.js').Style} style */
function runOf(text, style) {
  const run = h('span', {}, text);
  const [color, ground] = style.inverse
    ? [style.ground ?? 'inverse', style.color ?? 'inverse']
    : [style.color, style.ground];
  if (color?.startsWith('#')) run.style.color = color;
  else if (color) run.classList.add(`fg-${color}`);
  if (ground?.startsWith('#')) run.style.backgroundColor = ground;
  else if (ground) run.classList.add(`bg-${ground}`);
  for (const name of /** @type {const} */ (['bold', 'dim', 'italic', 'underline'])) {
    if (style[name]) run.classList.add(name);
  }
  return run;
}

/**
 * The http and https addresses in these lines. An address that was wrapped at the terminal's width is joined again.
 * @param {import('./ansi.js').Run[][]} lines @param {number} columns
 */
export function addressesIn(lines, columns) {
  const texts = lines.map((runs) => runs.map(({ text }) => text).join(''));
  /** @type {string[]} */
  const found = [];
  for (const [at, text] of texts.entries()) {
    for (const match of text.matchAll(/https?:\/\/[^\s"'<>`]+/g)) {
      let address = match[0];
      // Only a line of exactly the terminal's width can have been wrapped.
      const reachesTheEdge = match.index + address.length === text.length && text.length === columns;
      for (let next = at + 1; reachesTheEdge && next < texts.length; next += 1) {
        const more = /^[^\s"'<>`]+/.exec(texts[next])?.[0] ?? '';
        address += more;
        if (more.length !== columns || more.length < texts[next].length) break;
      }
      address = address.replace(/[.,;:!?)\]]+$/, '');
      if (URL.canParse(address) && !found.includes(address)) found.push(address);
    }
  }
  return found.slice(-ADDRESSES_MAX);
}
