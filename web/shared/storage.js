/**
 * Settings stored in this browser (`localStorage`). Invalid content or unavailable storage yields the default value and
 * is never an error.
 */

/**
 * @template T
 * @param {string} key
 * @param {(value: unknown) => T | undefined} check  returns undefined for an invalid value
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
    // Storage is full or not allowed: the value is then lost with the page.
  }
}
