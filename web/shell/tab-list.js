/**
 * Which sessions have a tab, in which order, and which one is in view. Pure: every change is a new list.
 *
 * Kept in localStorage as `{ openTabs, activeTab, tabOrder }`, which is what the product promised its users;
 * both lists hold the same ids.
 *
 * @typedef {object} TabList
 * @property {string[]} order  session ids, from left to right
 * @property {string | null} active  null while no tab is in view
 */

export const KEY = 'liminal:tabs';
/** More than anybody opens; a file that says more is damaged. */
const TABS_MAX = 500;

/** @type {TabList} */
export const NO_TABS = { order: [], active: null };

/** @param {TabList} tabs @param {string} id @returns {TabList} */
export function open(tabs, id) {
  return { order: tabs.order.includes(id) ? tabs.order : [...tabs.order, id], active: id };
}

/** Adds one without bringing it into view. @param {TabList} tabs @param {string} id @returns {TabList} */
export function add(tabs, id) {
  return tabs.order.includes(id) ? tabs : { ...tabs, order: [...tabs.order, id] };
}

/** Nothing in view, every tab still there. @param {TabList} tabs @returns {TabList} */
export function showNone(tabs) {
  return { ...tabs, active: null };
}

/** The tab in view gives way to the next one, or to the one before if it was the last. */
/** @param {TabList} tabs @param {string} id @returns {TabList} */
export function close(tabs, id) {
  const at = tabs.order.indexOf(id);
  if (at < 0) return tabs;
  const order = tabs.order.filter((other) => other !== id);
  const active = tabs.active === id ? (order[at] ?? order[at - 1] ?? null) : tabs.active;
  return { order, active };
}

/** Moves a tab to a place, counted without it. @param {TabList} tabs @param {string} id @param {number} to @returns {TabList} */
export function move(tabs, id, to) {
  if (!tabs.order.includes(id)) return tabs;
  const others = tabs.order.filter((other) => other !== id);
  const at = Math.max(0, Math.min(others.length, to));
  return { ...tabs, order: others.toSpliced(at, 0, id) };
}

/** The tab so many places further, around the ends. @param {TabList} tabs @param {number} step @returns {TabList} */
export function step({ order, active }, step) {
  if (order.length === 0) return NO_TABS;
  const from = active === null ? (step > 0 ? -1 : 0) : order.indexOf(active);
  return { order, active: order[(from + step + order.length) % order.length] };
}

/** Only the tabs for which `stays` holds. @param {TabList} tabs @param {(id: string) => boolean} stays @returns {TabList} */
export function keep(tabs, stays) {
  const gone = tabs.order.filter((id) => !stays(id));
  return gone.reduce(close, tabs);
}

/**
 * Some that were closed, where they were before; the one that was in view among them is so again.
 * @param {TabList} tabs
 * @param {TabList} before
 * @param {string[]} closed
 * @returns {TabList}
 */
export function bringBack(tabs, before, closed) {
  const back = before.order.filter((id) => closed.includes(id) || tabs.order.includes(id));
  const since = tabs.order.filter((id) => !back.includes(id));
  const active = back.find((id) => id === before.active && closed.includes(id)) ?? tabs.active;
  return { order: [...back, ...since], active };
}

/** @param {TabList} tabs */
export function toStored({ order, active }) {
  return { openTabs: order, activeTab: active, tabOrder: order };
}

/**
 * What was stored, as far as it makes sense.
 * @param {unknown} value
 * @returns {TabList | undefined}
 */
export function fromStored(value) {
  if (typeof value !== 'object' || value === null) return undefined;
  const { openTabs, activeTab, tabOrder } = /** @type {Record<string, unknown>} */ (value);
  const open = ids(openTabs);
  const inOrder = ids(tabOrder).filter((id) => open.includes(id));
  const order = [...new Set([...inOrder, ...open])].slice(0, TABS_MAX);
  const active = order.find((id) => id === activeTab) ?? null;
  return { order, active };
}

/** @param {unknown} value @returns {string[]} */
function ids(value) {
  return Array.isArray(value) ? value.filter((id) => typeof id === 'string' && id !== '') : [];
}
