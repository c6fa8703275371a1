/** What one can do with a tab and its session, in a menu. */

import { openMenu } from './menu.js';

/**
 * @typedef {object} Does
 * @property {(ids: string[]) => void} close
 * @property {(id: string) => void} rename
 * @property {(id: string) => void} archive
 */

/**
 * @param {{ id: string, title: string, order: string[] }} of  the tab, among all
 * @param {Does} does
 * @param {HTMLElement} anchor
 * @param {{ x: number, y: number }} [at]  where the pointer was
 */
export function openTabMenu({ id, title, order }, does, anchor, at) {
  const others = order.filter((other) => other !== id);
  const right = order.slice(order.indexOf(id) + 1);
  openMenu(
    anchor,
    `Actions for ${title}`,
    [
      { label: 'Close', note: 'Del', run: () => does.close([id]) },
      { label: 'Close others', disabled: others.length === 0, run: () => does.close(others) },
      { label: 'Close to the right', disabled: right.length === 0, run: () => does.close(right) },
      { label: 'Rename', run: () => does.rename(id) },
      { label: 'Archive', run: () => does.archive(id) },
    ],
    at,
  );
}
