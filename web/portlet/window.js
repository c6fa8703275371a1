/**
 * The part of a long conversation that is in the page. Rows near the view are elements; the others are
 * two spacers of the height they have, or had, or probably will have.
 *
 * Invariant: what somebody reads does not move. The row at the top of the view is the anchor, and
 * whatever changes above it is made up for before it is painted. At the end of the conversation the
 * end is the anchor instead.
 *
 * @typedef {import('./rows.js').Row} Row
 * @typedef {import('./entry-views.js').RowView} RowView
 *
 * @typedef {object} Options
 * @property {(row: Row) => RowView} make
 * @property {() => void} onNearTop  older rows are wanted
 * @property {() => void} onMoved  `following` or the place may have changed
 */

import { h } from '../shared/dom.js';

/** A guess for rows that were never shown: a short one, and what a character of a long text takes. */
const ROW_HEIGHT = 90;
const CHARACTER_HEIGHT = 0.4;
const ROWS_MAX = 100;
/** In heights of the view: what is kept ready, and what is put in when that has been used up. */
const READY = 0.75;
const AHEAD = 1.75;
/** How near to the end counts as at it. */
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

  /** Puts the view back to where the person is. */
  const settle = () => {
    if (following) return scrollTo(scroller.scrollHeight);
    const element = elementOf(anchor.id);
    if (!element) return;
    const moved = element.offsetTop - scroller.scrollTop - anchor.offset;
    if (Math.abs(moved) >= 1) scrollTo(scroller.scrollTop + moved);
  };

  /** The row at the top of the view. */
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

  /** @param {number} index @param {number} ahead  in heights of the view @returns {[number, number]} */
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

  /** Where the person is among the rows. */
  const index = () => {
    const at = following ? rows.length : rows.findIndex((row) => row.id === anchor.id);
    return at < 0 ? Math.max(0, rows.length - 1) : at;
  };
  /** Whether what is shown is enough. @param {number} at */
  const covers = (at) => {
    const [from, to] = around(at, READY);
    return start <= from && end >= to && end <= rows.length && end - start <= ROWS_MAX;
  };

  /** @param {Row} row */
  const stampOf = (row) => {
    let sum = row.items.length;
    for (const item of row.items) sum += item.version;
    return sum;
  };

  /** Makes the page show the rows from `start` to `end`. */
  const put = () => {
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
    settle();
  };

  /** Takes the heights of rows that were guessed until they were shown; whether there were any. */
  const learn = () => {
    const before = heights.size;
    for (const [id, { view }] of shown) {
      if (heights.has(id)) continue;
      const height = view.element.offsetHeight;
      if (height > 0) heights.set(id, height);
    }
    return heights.size > before;
  };

  /** Makes the page show the rows it should. What was guessed too high would leave a hole: then once more. */
  const sync = () => {
    const at = index();
    do {
      if (!covers(at)) [start, end] = around(at, AHEAD);
      put();
    } while (learn() && !covers(at));
    if (start === 0 && (following || scroller.scrollTop < viewHeight() * 2)) onNearTop();
  };

  const sizes = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const id = /** @type {HTMLElement} */ (target).dataset.row;
      const height = /** @type {HTMLElement} */ (target).offsetHeight;
      if (id && height > 0) heights.set(id, height);
    }
    settle();
    // Opened and closed again, or all of it in view: nothing keeps us from the end.
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
      const near = viewHeight() * READY;
      const low = top < aboveHeight + near && start > 0;
      const high = scroller.scrollHeight - belowHeight - top - viewHeight() < near && end < rows.length;
      if (low || high) sync();
      else if (start === 0 && top < viewHeight() * 2) onNearTop();
    }
    onMoved();
  };
  scroller.addEventListener('scroll', scrolled, { passive: true });
  // Before the scroll it brings, or a chunk in between would pull the view down again.
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

  /** @param {string} id @param {number} offset  from the top of the view */
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
  // The browser would glide there, past rows that are not in the page yet.
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
      // Rows went, or came in front: the numbers of what is shown are others now.
      const firstShown = rows.findIndex((row) => shown.has(row.id));
      if (firstShown >= 0 && rows[start] && !shown.has(rows[start].id)) {
        end = firstShown + (end - start);
        start = firstShown;
      }
      end = Math.min(end, rows.length);
      start = Math.min(start, end);
      sync();
    },
    /** Some of the rows shown have changed inside. @param {(id: string) => Row | undefined} rowOf @param {Iterable<string>} ids */
    refresh: (rowOf, ids) => {
      for (const id of ids) {
        const [entry, row] = [shown.get(id), rowOf(id)];
        if (!entry || !row) continue;
        entry.stamp = stampOf(row);
        entry.view.update(row);
      }
      // Whatever grew by that is noticed, and made up for, before it is painted.
    },
    /** The person opens something: it stays where it is, even at the end. @param {string} id */
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

/** What stands there in full, however long. @param {Row} row */
function textOf({ items: [{ entry }] }) {
  return entry.type === 'assistant' ? entry.content : '';
}
