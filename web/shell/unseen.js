/** Which sessions ended while nobody looked. Remembered, so that a reload is not a look. */

import { recall, remember } from '../shared/storage.js';

const KEY = 'liminal:unseen';
const UNSEEN_MAX = 500;

export function startUnseen() {
  const ids = new Set(recall(KEY, asIds, /** @type {string[]} */ ([])));
  const write = () => remember(KEY, [...ids].slice(-UNSEEN_MAX));

  return {
    /** @type {ReadonlySet<string>} */
    ids,
    /** @param {string} id */
    add: (id) => {
      ids.add(id);
      write();
    },
    /** @param {string | null} id @returns {boolean} whether it was news */
    see: (id) => {
      if (id === null || !ids.delete(id)) return false;
      write();
      return true;
    },
  };
}

/** @param {unknown} value */
function asIds(value) {
  return Array.isArray(value) ? value.filter((id) => typeof id === 'string') : undefined;
}
