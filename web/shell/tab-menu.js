/** The context menu of a tab, with the actions on the tab and its session. */

import { openMenu } from './menu.js';

/**
 * @typedef {object} Actions
 * @property {(ids: string[]) => void} close
 * @property {(id: string) => void} rename
 * @property {(id: string) => void} archive
 */

/**
 * @param {{ id: string, title: string, order: string[] }} of  the tab and the order of all tabs
 * @param {Actions} actions
 * @param {HTMLElement} anchor
 * @param {{ x: number, y: number }} [at]  pointer position
 */
export function openTabMenu({ id, title, order }, actions, anchor, at) {
  const others = order.filter((other) => other !== id);
  const right = order.slice(order.indexOf(id) + 1);
  openMenu(
    anchor,
    `Actions for ${title}`,
    [
      { label: 'Close', note: 'Del', run: () => actions.close([id]) },
      { label: 'Close others', disabled: others.length === 0, run: () => actions.close(others) },
      { label: 'Close to the right', disabled: right.length === 0, run: () => actions.close(right) },
      { label: 'Rename', run: () => actions.rename(id) },
      { label: 'Archive', run: () => actions.archive(id) },
    ],
    at,
  );
}
