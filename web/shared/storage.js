/**
 * What this browser remembers. Content we do not understand, or a browser without storage, counts
 * as nothing remembered: never an error.
 */

/**
 * @template T
 * @param {string} key
 * @param {(value: unknown) => T | undefined} check  returns undefined for what it cannot use
 * @param {T} otherwise
 * @returns {T}
 */
export function recall(key, check, otherwise) {
  try {
    const text = localStorage.getItem(key);
    return (text === null ? undefined : check(JSON.parse(text))) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/**
 * @param {string} key
 * @param {unknown} value
 */
export function remember(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Full or forbidden: the choice then lasts as long as the page.
  }
}
