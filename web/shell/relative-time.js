/** Short relative times for lists. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
const YEAR = 365 * DAY;

/**
 * The age as `now`, `2m`, `1h`, `2d`, `1w` or `3y`.
 * @param {string} iso
 * @param {number} now  in milliseconds
 */
export function shortAge(iso, now) {
  const age = now - Date.parse(iso);
  if (Number.isNaN(age)) return '';
  // A negative age means that the server's clock is ahead.
  if (age < MINUTE) return 'now';
  if (age < HOUR) return `${Math.floor(age / MINUTE)}m`;
  if (age < DAY) return `${Math.floor(age / HOUR)}h`;
  if (age < WEEK) return `${Math.floor(age / DAY)}d`;
  if (age < YEAR) return `${Math.floor(age / WEEK)}w`;
  return `${Math.floor(age / YEAR)}y`;
}
