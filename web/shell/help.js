/** The help sheet, which lists all keyboard shortcuts by area. */

import { h, part } from '../shared/dom.js';
import { HELP } from './shortcuts.js';

export function startHelp() {
  const dialog = part('help', HTMLDialogElement);
  const body = part('help-body', HTMLElement);
  // Focusable, so that the arrow keys can scroll it.
  body.tabIndex = 0;
  for (const { where, keys } of HELP) {
    const list = h('dl', { class: 'help-keys' });
    for (const [key, label] of keys) list.append(h('dt', {}, h('kbd', {}, key)), h('dd', {}, label));
    body.append(h('h3', {}, where), list);
  }
  part('help-close', HTMLButtonElement).addEventListener('click', () => dialog.close());
  dialog.addEventListener('mousedown', (event) => {
    if (event.target === dialog) dialog.close();
  });
  return { open: () => dialog.open || dialog.showModal() };
}
