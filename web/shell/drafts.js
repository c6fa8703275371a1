/** Unsent messages, kept across reloads. The shell stores them because the sandboxed page of a session cannot. */

import { recall, remember } from '../shared/storage.js';

const KEY = 'liminal:drafts';
const DRAFTS_MAX = 200;
const WRITE_AFTER_MS = 250;

export function startDrafts() {
  /** Drafts not written to storage yet, by session id. @type {Map<string, string>} */
  const changed = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const write = () => {
    clearTimeout(timer);
    timer = undefined;
    if (changed.size === 0) return;
    // Read again, because another window may have written since.
    const all = new Map(Object.entries(recallDrafts()));
    for (const [id, text] of changed) {
      all.delete(id);
      if (text) all.set(id, text);
    }
    changed.clear();
    remember(KEY, Object.fromEntries([...all].slice(-DRAFTS_MAX)));
  };

  addEventListener('pagehide', write);
  return {
    /** @param {string} sessionId */
    of: (sessionId) => changed.get(sessionId) ?? recallDrafts()[sessionId] ?? '',
    /** @param {string} sessionId @param {string} text */
    keep: (sessionId, text) => {
      changed.set(sessionId, text);
      timer ??= setTimeout(write, WRITE_AFTER_MS);
    },
  };
}

function recallDrafts() {
  return recall(KEY, asDrafts, /** @type {Record<string, string>} */ ({}));
}

/** @param {unknown} value */
function asDrafts(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.fromEntries(Object.entries(value).filter(([, text]) => typeof text === 'string'));
}
