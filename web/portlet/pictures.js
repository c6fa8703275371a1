/**
 * Pictures attached to the next message: pasted, dropped or selected. Each is uploaded to the server at once, before
 * the message is sent.
 */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { size } from './format.js';

const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const BYTES_MAX = 10 * 1024 * 1024;
const COUNT_MAX = 10;
export const LIMITS = `PNG, JPEG, GIF or WebP, up to ${size(BYTES_MAX)} each, ${COUNT_MAX} at most`;

/** @param {(file: Blob) => Promise<string>} upload @param {() => void} onChange */
export function startPictures(upload, onChange) {
  const list = h('ul', { class: 'attached', 'aria-label': 'Pictures to send' });
  const problem = h('p', { class: 'field-error', role: 'alert' });
  /** @type {{ element: HTMLElement, imageId: string, url: string }[]} */
  let pictures = [];

  const show = () => {
    list.hidden = pictures.length === 0;
    onChange();
  };
  /** @param {(typeof pictures)[number]} picture */
  const drop = (picture) => {
    pictures = pictures.filter((one) => one !== picture);
    picture.element.remove();
    URL.revokeObjectURL(picture.url);
    show();
  };

  /** @param {File} file */
  const add = async (file) => {
    const wrong = rejectionReason(file, pictures.length);
    problem.textContent = wrong && `${file.name || 'Not taken'}: ${wrong}`;
    if (wrong) return;
    const label = `Remove ${file.name || 'picture'}`;
    const url = URL.createObjectURL(file);
    const remove = h(
      'button',
      { class: 'icon-button', type: 'button', 'aria-label': label, title: label },
      icon('remove'),
    );
    const element = h('li', { class: 'uploading' }, h('img', { src: url, alt: file.name || 'Picture' }), remove);
    const picture = { element, imageId: '', url };
    remove.addEventListener('click', () => drop(picture));
    pictures.push(picture);
    list.append(element);
    show();
    try {
      picture.imageId = await upload(file);
      element.classList.remove('uploading');
      onChange();
    } catch (error) {
      drop(picture);
      problem.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  list.hidden = true;

  return {
    element: h('div', {}, list, problem),
    /** @param {Iterable<File>} files */
    add: (files) => {
      for (const file of files) add(file);
    },
    count: () => pictures.length,
    ready: () => pictures.every(({ imageId }) => imageId !== ''),
    take: () => {
      problem.textContent = '';
      const ids = pictures.map(({ imageId }) => imageId);
      for (const picture of pictures) drop(picture);
      return ids;
    },
  };
}

/**
 * The reason why a file cannot be attached; empty if it can.
 * @param {{ type: string, size: number }} file @param {number} count
 */
export function rejectionReason(file, count) {
  if (!TYPES.includes(file.type)) return `unsupported file type (${LIMITS}).`;
  if (file.size > BYTES_MAX) return `it has ${size(file.size)} (${LIMITS}).`;
  if (count >= COUNT_MAX) return `too many pictures (${LIMITS}).`;
  return '';
}

export const ACCEPT = TYPES.join(',');
