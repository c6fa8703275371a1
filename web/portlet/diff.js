/**
 * The unified diff of two texts, with the changed words of changed lines. Pure, and bounded: if the texts differ too
 * much to be compared in reasonable time, all old lines are removed and all new lines are added.
 *
 * @typedef {object} Part
 * @property {string} text
 * @property {boolean} changed
 *
 * @typedef {object} Line
 * @property {'same' | 'removed' | 'added'} kind
 * @property {number} [old]  line number in the old text, from 1
 * @property {number} [new]  line number in the new text, from 1
 * @property {Part[]} parts
 *
 * @typedef {object} Diff
 * @property {Line[][]} hunks
 * @property {number} added
 * @property {number} removed
 */

/** Unchanged lines shown before and after a change. */
const CONTEXT = 3;
/** Maximum number of edits (added plus removed lines) for which the shortest edit script is computed. */
const EDITS_MAX = 1000;
/** Maximum number of edits (added plus removed words) for which the words of a line are compared. */
const WORD_EDITS_MAX = 60;
/** Maximum line length in characters for a comparison by words. */
const WORD_LINE_MAX = 500;

/** @param {string | undefined} before  missing for a new file  @param {string} after @returns {Diff} */
export function diff(before, after) {
  const [old, now] = [lines(before ?? ''), lines(after)];
  const steps = compare(old, now, EDITS_MAX);
  /** @type {Line[]} */
  const all = [];
  let [a, b] = [0, 0];
  for (const step of steps) {
    if (step === 'same') {
      all.push({ kind: step, old: a + 1, new: b + 1, parts: [{ text: old[a], changed: false }] });
    } else if (step === 'removed') {
      all.push({ kind: step, old: a + 1, parts: [{ text: old[a], changed: false }] });
    } else {
      all.push({ kind: step, new: b + 1, parts: [{ text: now[b], changed: false }] });
    }
    if (step !== 'added') a += 1;
    if (step !== 'removed') b += 1;
  }
  markWords(all);
  const count = /** @param {Line['kind']} kind */ (kind) => all.filter((line) => line.kind === kind).length;
  return { hunks: hunks(all), added: count('added'), removed: count('removed') };
}

/** The lines of a text. A final newline does not add an empty line. @param {string} text */
function lines(text) {
  if (text === '') return [];
  const all = text.split('\n');
  if (all.at(-1) === '') all.pop();
  return all;
}

/**
 * The shortest edit script from one list to the other (Myers), after the common prefix and suffix are removed.
 * @param {string[]} old @param {string[]} now @param {number} max
 * @returns {Line['kind'][]}
 */
export function compare(old, now, max) {
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < now.length - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) {
    end += 1;
  }
  const middle = shortest(old.slice(start, old.length - end), now.slice(start, now.length - end), max);
  return [...Array(start).fill('same'), ...middle, ...Array(end).fill('same')];
}

/** @param {string[]} old @param {string[]} now @param {number} max @returns {Line['kind'][]} */
function shortest(old, now, max) {
  const [n, m] = [old.length, now.length];
  /** @type {Line['kind'][]} */
  const replaceAll = [...Array(n).fill('removed'), ...Array(m).fill('added')];
  if (n === 0 || m === 0) return replaceAll;
  const limit = Math.min(max, n + m);
  // Furthest x on each diagonal, per number of edits; only the diagonals reachable with that number are stored.
  /** @type {Int32Array[]} */
  const trace = [];
  const reach = new Int32Array(2 * limit + 3);
  const zero = limit + 1;
  for (let edits = 0; edits <= limit; edits += 1) {
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && reach[zero + k - 1] < reach[zero + k + 1]);
      let x = down ? reach[zero + k + 1] : reach[zero + k - 1] + 1;
      while (x < n && x - k < m && old[x] === now[x - k]) x += 1;
      reach[zero + k] = x;
      if (x >= n && x - k >= m) {
        trace.push(reach.slice(zero - edits, zero + edits + 1));
        return walkBack(trace, n, m);
      }
    }
    trace.push(reach.slice(zero - edits, zero + edits + 1));
  }
  return replaceAll;
}

/** @param {Int32Array[]} trace @param {number} n @param {number} m */
function walkBack(trace, n, m) {
  /** @type {Line['kind'][]} */
  const steps = [];
  let [x, y] = [n, m];
  for (let edits = trace.length - 1; edits > 0; edits -= 1) {
    const before = trace[edits - 1];
    const at = /** @param {number} k */ (k) => (Math.abs(k) > edits - 1 ? -1 : before[k + edits - 1]);
    const k = x - y;
    const down = k === -edits || (k !== edits && at(k - 1) < at(k + 1));
    const from = down ? k + 1 : k - 1;
    const fromX = at(from);
    while (x > fromX + (down ? 0 : 1) && y > fromX - from + (down ? 1 : 0)) {
      steps.push('same');
      x -= 1;
      y -= 1;
    }
    steps.push(down ? 'added' : 'removed');
    x = fromX;
    y = fromX - from;
  }
  for (; x > 0; x -= 1) steps.push('same');
  return steps.reverse();
}

/**
 * Marks the changed words where as many lines were removed as added; these lines are compared in pairs.
 * @param {Line[]} all
 */
function markWords(all) {
  for (let at = 0; at < all.length; ) {
    let middle = at;
    while (all[middle]?.kind === 'removed') middle += 1;
    let end = middle;
    while (all[end]?.kind === 'added') end += 1;
    if (middle > at && end - middle === middle - at) {
      for (let line = at; line < middle; line += 1) markPair(all[line], all[line + middle - at]);
    }
    at = Math.max(end, at + 1);
  }
}

/** @param {Line} removed @param {Line} added */
function markPair(removed, added) {
  const [from, to] = [removed.parts[0].text, added.parts[0].text];
  if (from.length > WORD_LINE_MAX || to.length > WORD_LINE_MAX) return;
  const [old, now] = [words(from), words(to)];
  const steps = compare(old, now, WORD_EDITS_MAX);
  const same = steps.filter((step) => step === 'same').length;
  // Lines with few common words are treated as unrelated.
  if (same * 3 < Math.max(old.length, now.length)) return;
  removed.parts = parts(old, steps, 'removed');
  added.parts = parts(now, steps, 'added');
}

/** @param {string} line */
const words = (line) => line.match(/\w+|\s+|[^\w\s]/gu) ?? [];

/** @param {string[]} tokens @param {Line['kind'][]} steps @param {Line['kind']} own */
function parts(tokens, steps, own) {
  /** @type {Part[]} */
  const found = [];
  let at = 0;
  for (const step of steps) {
    if (step !== 'same' && step !== own) continue;
    const changed = step === own;
    const last = found.at(-1);
    if (last?.changed === changed) last.text += tokens[at];
    else found.push({ text: tokens[at], changed });
    at += 1;
  }
  return found;
}

/** Groups changes into hunks with context lines. @param {Line[]} all */
function hunks(all) {
  /** @type {Line[][]} */
  const found = [];
  let shownTo = 0;
  for (let at = 0; at < all.length; at += 1) {
    if (all[at].kind === 'same') continue;
    let end = at;
    let same = 0;
    for (let next = at; next < all.length && same <= 2 * CONTEXT; next += 1) {
      same = all[next].kind === 'same' ? same + 1 : 0;
      if (same === 0) end = next;
    }
    const start = Math.max(shownTo, at - CONTEXT);
    shownTo = Math.min(all.length, end + 1 + CONTEXT);
    found.push(all.slice(start, shownTo));
    at = end;
  }
  return found;
}
