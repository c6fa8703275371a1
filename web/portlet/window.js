/**
 * A virtual list for the rows of a conversation. Rows near the viewport are elements; the rows above and below are
 * replaced by two spacers with their measured or estimated height.
 *
 * Invariant: the text the user reads does not move. The row at the top of the viewport is the anchor, and a change of
 * height above it is compensated before the next paint. While the list follows the end, the end is the anchor.
 *
 * @typedef {import('./rows.js').Row} Row
 * @typedef {import('./entry-views.js').RowView} RowView
 *
 * @typedef {object} Options
 * @property {(row: Row) => RowView} make
 * @property {() => void} onNearTop  called when older rows should be loaded
 * @property {() => void} onMoved  called when `following` or the scroll position may have changed
 */

import { h } from '../shared/dom.js';

/** Estimated height of a row that was never shown, in pixels: the minimum, and the height per character of text. */
const ROW_HEIGHT = 90;
const CHARACTER_HEIGHT = 0.4;
/** Maximum number of rows in the page. */
const ROWS_MAX = 100;
/**
 * Distances in viewport heights: how far the rows must reach beyond the viewport, and up to where rows are added when
 * they do not.
 */
const KEPT_AHEAD = 0.75;
const ADDED_AHEAD = 1.75;
/** Distance from the end that counts as the end, in pixels. */
const AT_END = 40;

/** @param {HTMLElement} scroller @param {HTMLElement} place @param {Options} options */
export function startWindow(scroller, place, { make, onNearTop, onMoved }) {
  const above = h('div', { class: 'spacer' });
  const below = h('div', { class: 'spacer' });
  place.replaceChildren(above, below);
  scroller.tabIndex = 0;
  /** @type {Row[]} */
  let rows = [];
  /** @type {Map<string, { view: RowView, stamp: number }>} */
  const shown = new Map();
  /** @type {Map<string, number>} */
  const heights = new Map();
  let start = 0;
  let end = 0;
  let aboveHeight = 0;
  let belowHeight = 0;
  let following = true;
  /** @type {{ id: string, offset: number }} */
  let anchor = { id: '', offset: 0 };
  let lastTop = 0;

  const viewHeight = () => scroller.clientHeight || 800;
  /** @param {Row} row */
  const heightOf = (row) => heights.get(row.id) ?? Math.max(ROW_HEIGHT, textOf(row).length * CHARACTER_HEIGHT);
  /** @param {number} from @param {number} to */
  const heightBetween = (from, to) => {
    let sum = 0;
    for (let at = from; at < to; at += 1) sum += heightOf(rows[at]);
    return sum;
  };
  /** @param {string} id */
  const elementOf = (id) => shown.get(id)?.view.element;

  /** @param {number} top */
  const scrollTo = (top) => {
    scroller.scrollTop = top;
    lastTop = scroller.scrollTop;
  };

  /** Scrolls back to the anchor. */
  const restoreScroll = () => {
    if (following) return scrollTo(scroller.scrollHeight);
    const element = elementOf(anchor.id);
    if (!element) return;
    const moved = element.offsetTop - scroller.scrollTop - anchor.offset;
    if (Math.abs(moved) >= 1) scrollTo(scroller.scrollTop + moved);
  };

  /** Makes the row at the top of the viewport the anchor. */
  const takeAnchor = () => {
    const top = scroller.scrollTop;
    const bottomOfShown = scroller.scrollHeight - belowHeight;
    if (top >= aboveHeight - 1 && top < bottomOfShown) {
      for (let at = start; at < end; at += 1) {
        const element = elementOf(rows[at].id);
        if (!element || element.offsetTop + element.offsetHeight <= top) continue;
        anchor = { id: rows[at].id, offset: element.offsetTop - top };
        return;
      }
    }
    let sum = above.offsetTop;
    for (const row of rows) {
      const height = heightOf(row);
      if (sum + height > top) {
        anchor = { id: row.id, offset: sum - top };
        return;
      }
      sum += height;
    }
  };

  /**
   * The range of rows to show around a row.
   * @param {number} index @param {number} ahead  in viewport heights @returns {[number, number]}
   */
  const around = (index, ahead) => {
    const reach = viewHeight() * ahead;
    let from = index;
    for (let sum = 0; from > 0 && sum < reach && index - from < ROWS_MAX / 2; from -= 1)
      sum += heightOf(rows[from - 1]);
    let to = index;
    const down = reach + viewHeight();
    for (let sum = 0; to < rows.length && sum < down && to - index < ROWS_MAX / 2; to += 1) sum += heightOf(rows[to]);
    return [from, to];
  };

  /** Index of the anchor row, or the number of rows while following the end. */
  const index = () => {
    const at = following ? rows.length : rows.findIndex((row) => row.id === anchor.id);
    return at < 0 ? Math.max(0, rows.length - 1) : at;
  };
  /** Whether the rows in the page reach far enough around a row. @param {number} at */
  const covers = (at) => {
    const [from, to] = around(at, KEPT_AHEAD);
    return start <= from && end >= to && end <= rows.length && end - start <= ROWS_MAX;
  };

  /** @param {Row} row */
  const stampOf = (row) => {
    let sum = row.items.length;
    for (const item of row.items) sum += item.version;
    return sum;
  };

  /** Updates the page to contain exactly the rows from `start` to `end`. */
  const renderRange = () => {
    const keep = new Set();
    for (let at = start; at < end; at += 1) keep.add(rows[at].id);
    for (const [id, { view }] of shown) {
      if (keep.has(id)) continue;
      if (view.element.contains(document.activeElement)) scroller.focus({ preventScroll: true });
      sizes.unobserve(view.element);
      view.element.remove();
      shown.delete(id);
    }
    let next = above.nextSibling;
    for (let at = start; at < end; at += 1) {
      const row = rows[at];
      let entry = shown.get(row.id);
      if (!entry) {
        entry = { view: make(row), stamp: -1 };
        entry.view.element.dataset.row = row.id;
        shown.set(row.id, entry);
        sizes.observe(entry.view.element);
      }
      const stamp = stampOf(row);
      if (entry.stamp !== stamp) {
        entry.stamp = stamp;
        entry.view.update(row);
      }
      if (entry.view.element === next) next = next.nextSibling;
      else place.insertBefore(entry.view.element, next);
    }
    aboveHeight = heightBetween(0, start);
    belowHeight = heightBetween(end, rows.length);
    above.style.height = `${aboveHeight}px`;
    below.style.height = `${belowHeight}px`;
    restoreScroll();
  };

  /** Measures the rows whose height was only estimated; returns whether there were any. */
  const measureRows = () => {
    const before = heights.size;
    for (const [id, { view }] of shown) {
      if (heights.has(id)) continue;
      const height = view.element.offsetHeight;
      if (height > 0) heights.set(id, height);
    }
    return heights.size > before;
  };

  /** Renders the rows in view and near it. Repeats if rows were smaller than estimated, which would leave a gap. */
  const sync = () => {
    const at = index();
    do {
      if (!covers(at)) [start, end] = around(at, ADDED_AHEAD);
      renderRange();
    } while (measureRows() && !covers(at));
    if (start === 0 && (following || scroller.scrollTop < viewHeight() * 2)) onNearTop();
  };

  const sizes = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const id = /** @type {HTMLElement} */ (target).dataset.row;
      const height = /** @type {HTMLElement} */ (target).offsetHeight;
      if (id && height > 0) heights.set(id, height);
    }
    restoreScroll();
    // The viewport is at the end after the change of size: follow the end again.
    const left = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    if (!following && left <= 1 && end === rows.length) following = true;
    onMoved();
  });
  sizes.observe(scroller);

  const stopFollowing = () => {
    if (!following) return;
    following = false;
    takeAnchor();
  };

  const scrolled = () => {
    const top = scroller.scrollTop;
    const left = scroller.scrollHeight - top - scroller.clientHeight;
    const up = top < lastTop - 1;
    lastTop = top;
    if (left <= AT_END && end === rows.length && !up) following = true;
    else if (up && left > AT_END) following = false;
    if (!following) {
      takeAnchor();
      const near = viewHeight() * KEPT_AHEAD;
      const low = top < aboveHeight + near && start > 0;
      const high = scroller.scrollHeight - belowHeight - top - viewHeight() < near && end < rows.length;
      if (low || high) sync();
      else if (start === 0 && top < viewHeight() * 2) onNearTop();
    }
    onMoved();
  };
  scroller.addEventListener('scroll', scrolled, { passive: true });
  // On the wheel event, before its scroll event; otherwise a chunk in between would scroll back to the end.
  scroller.addEventListener(
    'wheel',
    ({ deltaY }) => {
      if (deltaY < 0 && scroller.scrollTop > 0) {
        stopFollowing();
        onMoved();
      }
    },
    { passive: true },
  );

  /** @param {string} id @param {number} offset  from the top of the viewport */
  const toRow = (id, offset) => {
    if (!rows.some((row) => row.id === id)) return false;
    following = false;
    anchor = { id, offset };
    sync();
    takeAnchor();
    onMoved();
    return true;
  };
  const toEnd = () => {
    following = true;
    sync();
    onMoved();
  };
  // The browser's own handling scrolls smoothly, through rows that are not in the page.
  scroller.addEventListener('keydown', (event) => {
    if (event.target !== scroller || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === 'Home' && rows[0]) toRow(rows[0].id, 0);
    else if (event.key === 'End') toEnd();
    else return;
    event.preventDefault();
  });

  return {
    /** @param {Row[]} now */
    show: (now) => {
      rows = now;
      // Rows were removed or added in front, so the shown rows have new indexes.
      const firstShown = rows.findIndex((row) => shown.has(row.id));
      if (firstShown >= 0 && rows[start] && !shown.has(rows[start].id)) {
        end = firstShown + (end - start);
        start = firstShown;
      }
      end = Math.min(end, rows.length);
      start = Math.min(start, end);
      sync();
    },
    /**
     * Updates rows whose content has changed.
     * @param {(id: string) => Row | undefined} rowOf @param {Iterable<string>} ids
     */
    refresh: (rowOf, ids) => {
      for (const id of ids) {
        const [entry, row] = [shown.get(id), rowOf(id)];
        if (!entry || !row) continue;
        entry.stamp = stampOf(row);
        entry.view.update(row);
      }
      // The resize observer compensates changed heights before the next paint.
    },
    /** Makes a row the anchor, so that it stays in place when the user expands it. @param {string} id */
    hold: (id) => {
      const element = elementOf(id);
      if (!element) return;
      following = false;
      anchor = { id, offset: element.offsetTop - scroller.scrollTop };
    },
    following: () => following,
    toEnd,
    /** @param {string} id @param {number} [offset] */
    toRow: (id, offset = 24) => toRow(id, offset),
    place: () => (following || !anchor.id ? null : anchor),
  };
}

/** The text of a row that is shown in full; other rows are collapsed when long. @param {Row} row */
function textOf({ items: [{ entry }] }) {
  return entry.type === 'assistant' ? entry.content : '';
}
