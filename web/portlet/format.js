/** Compact formats for numbers, durations and paths, and the plain form of tool output. */

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

/**
 * The text inside a code fence that encloses the whole text, otherwise the text unchanged. Agents fence the output of
 * tools for clients that render it as markdown; here it is shown as plain text. @param {string} text
 */
export function unfenced(text) {
  const fence = /^(`{3,})[^`\n]*\n/.exec(text);
  if (!fence) return text;
  const inside = text.trimEnd();
  const end = `\n${fence[1]}`;
  if (!inside.endsWith(end) || inside.length < fence[0].length + fence[1].length) return text;
  const content = inside.slice(fence[0].length, Math.max(fence[0].length, inside.length - end.length));
  // A second block after the first: the fences belong to the text.
  return content.split('\n').some((line) => line.startsWith(fence[1])) ? text : content;
}
