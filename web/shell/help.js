/** The sheet that lists every key, by where it works. */

import { h, part } from '../shared/dom.js';
import { HELP } from './shortcuts.js';

export function startHelp() {
  const dialog = part('help', HTMLDialogElement);
  const body = part('help-body', HTMLElement);
  // Longer than a low window: the keyboard scrolls it from within.
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
