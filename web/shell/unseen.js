/** The sessions whose turn ended while they were not in view. Stored, so that a reload does not mark them as seen. */

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
    /** Marks a session as seen. @param {string | null} id @returns {boolean} whether it was unseen */
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
