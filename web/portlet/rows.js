/**
 * The rows of the conversation, computed from its items. A row is one element of the page. Most rows show one item; a
 * run of finished tool calls is grouped into one collapsible row. Pure.
 *
 * @typedef {import('./transcript.js').Item} Item
 * @typedef {import('../types/wire.js').ToolKind} ToolKind
 *
 * @typedef {object} Row
 * @property {string} id
 * @property {Item[]} items  more than one for a group
 * @property {boolean} headed  whether this is the agent's first row of a turn
 */

/** Minimum number of tool calls in a group; fewer are as quick to read as the line that would replace them. */
const GROUP_MIN = 3;

/**
 * The rows for `items`. Rows of `before` that cannot have changed are reused.
 * @param {Row[]} before
 * @param {Item[]} items
 * @param {number} from  the number of the first item that may have changed
 * @param {(item: Item) => boolean} apart  whether a finished tool call must not be grouped
 * @returns {Row[]}
 */
export function toRows(before, items, from, apart) {
  const first = items[0]?.number ?? 0;
  let keep = before.length;
  // A finished call may join the run before it, and that run may consist of several rows.
  while (keep > 0 && (last(before[keep - 1]).number >= from || foldable(before[keep - 1].items[0], apart))) {
    keep -= 1;
  }
  if (before[0]?.items[0].number !== first) keep = 0;
  const rows = before.slice(0, keep);
  let at = keep > 0 ? last(rows[keep - 1]).number - first + 1 : 0;
  while (at < items.length) {
    let end = at;
    while (end < items.length && foldable(items[end], apart)) end += 1;
    const run = end - at >= GROUP_MIN ? items.slice(at, end) : [items[at]];
    const after = items[at - 1]?.entry.type;
    const headed = items[at].entry.type !== 'user' && (after === undefined || after === 'user' || after === 'turn');
    rows.push({ id: run.length > 1 ? `group-${run[0].id}` : run[0].id, items: run, headed });
    at += run.length;
  }
  return rows;
}

/** @param {Row} row */
const last = (row) => row.items[row.items.length - 1];

/** @param {Item} item @param {(item: Item) => boolean} apart */
function foldable(item, apart) {
  return item.entry.type === 'tool-call' && item.entry.status === 'complete' && !apart(item);
}

/** @type {Record<ToolKind, [string, string]>} */
const NOUNS = {
  read: ['read', 'reads'],
  edit: ['edit', 'edits'],
  delete: ['deletion', 'deletions'],
  move: ['move', 'moves'],
  search: ['search', 'searches'],
  execute: ['command', 'commands'],
  think: ['thought', 'thoughts'],
  fetch: ['fetch', 'fetches'],
  'switch-mode': ['mode change', 'mode changes'],
  other: ['other call', 'other calls'],
};

/** A summary such as `7 reads, 2 edits`, in order of first occurrence. @param {Item[]} items */
export function summary(items) {
  /** @type {Map<ToolKind, number>} */
  const counts = new Map();
  for (const { entry } of items) {
    if (entry.type === 'tool-call') counts.set(entry.kind, (counts.get(entry.kind) ?? 0) + 1);
  }
  return [...counts].map(([kind, count]) => `${count} ${NOUNS[kind][count === 1 ? 0 : 1]}`).join(', ');
}
