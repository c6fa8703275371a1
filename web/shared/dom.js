/** Helpers that build DOM elements without parsing HTML, so that text can never become markup. */

/**
 * @typedef {string | Node | null | undefined | false} Child
 * @typedef {{ [name: string]: string | boolean | EventListener | undefined }} Properties
 */

/**
 * Creates an element with attributes (`true` sets an empty attribute, `false` sets none), `on…` listeners and children.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (typeof value === 'string') element.setAttribute(name, value);
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

const ICONS = {
  archive: 'M2 3h12v3H2zM3 6v7h10V6M6.5 9h3',
  bell: 'M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 14h2',
  chevron: 'M6 3l5 5-5 5',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M6 6h7v7H6zM10 6V3H3v7h3',
  dark: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z',
  help: 'M6 6a2 2 0 1 1 2.6 1.9c-.4.1-.6.5-.6.9V9.5M8 12v.1M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13',
  light:
    'M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6M8 1v1.4M8 13.6V15M1 8h1.4M13.6 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  list: 'M3 4h10M3 8h10M3 12h10',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  plus: 'M8 3v10M3 8h10',
  system: 'M2 3h12v8H2zM6 14h4M8 11v3',
};

/**
 * @param {keyof typeof ICONS} name
 * @param {string} [className]
 */
export function icon(name, className = '') {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('aria-hidden', 'true');
  if (className) svg.setAttribute('class', className);
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * Returns the element with this id. Throws if the page has no such element of this class.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function part(id, kind) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`the page has no ${kind.name} #${id}`);
  return element;
}
