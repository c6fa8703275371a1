/** The icons of all pages, as SVG paths of 16 × 16. */

const ICONS = {
  read: 'M3 2h6l4 4v8H3zM9 2v4h4',
  edit: 'M3 13l1-3 7-7 2 2-7 7zM9.5 4.5l2 2',
  delete: 'M3 4h10M6 4V2h4v2M4.5 4l.5 10h6l.5-10',
  move: 'M2 8h11M10 5l3 3-3 3',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.5 10.5L14 14',
  execute: 'M2 3h12v10H2zM4.5 6l2 2-2 2M8 10h3',
  think: 'M8 2.5a4 4 0 0 1 2 7.5v1.5H6V10a4 4 0 0 1 2-7.5M6.5 13.5h3',
  fetch: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M2 8h12M8 2c2.5 3.5 2.5 8.5 0 12M8 2c-2.5 3.5-2.5 8.5 0 12',
  'switch-mode': 'M2 5h9M9 3l2 2-2 2M14 11H5M7 9l-2 2 2 2',
  other: 'M8 2.5v3M8 10.5v3M2.5 8h3M10.5 8h3M4.5 4.5l2 2M9.5 9.5l2 2M11.5 4.5l-2 2M6.5 9.5l-2 2',
  group: 'M2 4h12M2 8h12M2 12h8',
  chevron: 'M6 4l4 4-4 4',
  done: 'M3 8.5l3.5 3.5L13 4.5',
  failed: 'M4 4l8 8M12 4l-8 8',
  copy: 'M6 6h7v7H6zM10 6V3H3v7h3',
  down: 'M8 3v10M4 9l4 4 4-4',
  up: 'M8 13V3M4 7l4-4 4 4',
  stop: 'M4.5 4.5h7v7h-7z',
  send: 'M8 13V3M4 7l4-4 4 4',
  queue: 'M2 4h9M2 8h9M2 12h5M12 9v5M9.5 11.5h5',
  picture: 'M2 3h12v10H2zM2 11l4-4 3 3 2-2 3 3M10.5 5.5v.01',
  link: 'M7 9l2-2M6.5 6L8 4.5a2.5 2.5 0 0 1 3.5 3.5L10 9.5M9.5 10L8 11.5A2.5 2.5 0 0 1 4.5 8L6 6.5',
  question: 'M6 6a2 2 0 1 1 3 1.7c-.7.4-1 .8-1 1.6M8 11.5v.01M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13',
  remove: 'M4 4l8 8M12 4l-8 8',
  archive: 'M2 3h12v3H2zM3 6v7h10V6M6.5 9h3',
  bell: 'M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 14h2',
  close: 'M4 4l8 8M12 4l-8 8',
  dark: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z',
  help: 'M6 6a2 2 0 1 1 2.6 1.9c-.4.1-.6.5-.6.9V9.5M8 12v.1M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13',
  light:
    'M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6M8 1v1.4M8 13.6V15M1 8h1.4M13.6 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  list: 'M3 4h10M3 8h10M3 12h10',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  plus: 'M8 3v10M3 8h10',
  system: 'M2 3h12v8H2zM6 14h4M8 11v3',
};

/** @typedef {keyof typeof ICONS} IconName */

/** @param {IconName} name @param {string} [className] */
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
