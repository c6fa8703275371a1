/** The sheet that lists every key. */

import { h, part } from '../shared/dom.js';
import { LOCAL_KEYS, SHORTCUTS } from './shortcuts.js';

export function startHelp() {
  const dialog = part('help', HTMLDialogElement);
  const rows = [...SHORTCUTS.map(({ shown, label }) => [shown, label]), ...LOCAL_KEYS];
  const list = h('dl', { class: 'help-keys' });
  for (const [keys, label] of rows) list.append(h('dt', {}, h('kbd', {}, keys)), h('dd', {}, label));
  part('help-body', HTMLElement).append(list);
  part('help-close', HTMLButtonElement).addEventListener('click', () => dialog.close());
  dialog.addEventListener('mousedown', (event) => {
    if (event.target === dialog) dialog.close();
  });
  return { open: () => dialog.open || dialog.showModal() };
}
