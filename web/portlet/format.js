/** Compact formats for numbers, durations and paths. */

/** @param {number} milliseconds */
export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds / 100) / 10)} s`;
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Formats a duration as a clock: 0:07, 12:30, 1:02:03. @param {number} milliseconds */
export function clock(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = /** @param {number} number */ (number) => String(number).padStart(2, '0');
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** Formats a count with at most three significant digits: 950, 12.3k, 1.2M. @param {number} count */
export function short(count) {
  if (count < 1000) return String(count);
  if (count < 999_500) return `${trim(count / 1000)}k`;
  return `${trim(count / 1_000_000)}M`;
}

/** @param {number} number */
function trim(number) {
  return number >= 100 ? String(Math.round(number)) : String(Math.round(number * 10) / 10);
}

/** A count with its noun, such as `2 searches`. @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${trim(bytes / 1024 / 1024)} MB`;
}

/** The path relative to the project, unchanged if it is outside. @param {string} path @param {string} project */
export function within(path, project) {
  return project && path.startsWith(`${project}/`) ? path.slice(project.length + 1) : path;
}
