/**
 * The open tabs: their sessions, their order, and the active one. Pure: every change returns a new list.
 *
 * Stored in `localStorage` as `{ openTabs, activeTab, tabOrder }`, which the product specification fixes; both lists
 * contain the same ids.
 *
 * @typedef {object} TabList
 * @property {string[]} order  session ids, from left to right
 * @property {string | null} active  id of the tab in view, or null
 */

export const KEY = 'liminal:tabs';
/** Maximum tabs restored from storage; a longer list is damaged. */
const TABS_MAX = 500;

/** @type {TabList} */
export const NO_TABS = { order: [], active: null };

/** @param {TabList} tabs @param {string} id @returns {TabList} */
export function open(tabs, id) {
  return { order: tabs.order.includes(id) ? tabs.order : [...tabs.order, id], active: id };
}

/** Adds a tab without activating it. @param {TabList} tabs @param {string} id @returns {TabList} */
export function add(tabs, id) {
  return tabs.order.includes(id) ? tabs : { ...tabs, order: [...tabs.order, id] };
}

/** Deactivates the active tab and keeps all tabs. @param {TabList} tabs @returns {TabList} */
export function showNone(tabs) {
  return { ...tabs, active: null };
}

/** Closes a tab. If it was active, the next tab becomes active, or the previous one if it was the last. */
/** @param {TabList} tabs @param {string} id @returns {TabList} */
export function close(tabs, id) {
  const at = tabs.order.indexOf(id);
  if (at < 0) return tabs;
  const order = tabs.order.filter((other) => other !== id);
  const active = tabs.active === id ? (order[at] ?? order[at - 1] ?? null) : tabs.active;
  return { order, active };
}

/**
 * Moves a tab to a position among the other tabs.
 * @param {TabList} tabs @param {string} id @param {number} to @returns {TabList}
 */
export function move(tabs, id, to) {
  if (!tabs.order.includes(id)) return tabs;
  const others = tabs.order.filter((other) => other !== id);
  const at = Math.max(0, Math.min(others.length, to));
  return { ...tabs, order: others.toSpliced(at, 0, id) };
}

/**
 * Activates the tab `step` positions further, wrapping around.
 * @param {TabList} tabs @param {number} step @returns {TabList}
 */
export function step({ order, active }, step) {
  if (order.length === 0) return NO_TABS;
  const from = active === null ? (step > 0 ? -1 : 0) : order.indexOf(active);
  return { order, active: order[(from + step + order.length) % order.length] };
}

/** Closes the tabs for which `stays` is false. @param {TabList} tabs @param {(id: string) => boolean} stays @returns {TabList} */
export function keep(tabs, stays) {
  const gone = tabs.order.filter((id) => !stays(id));
  return gone.reduce(close, tabs);
}

/**
 * Reopens closed tabs at their previous positions. If the previously active tab is among them, it becomes active again.
 * @param {TabList} tabs
 * @param {TabList} before
 * @param {string[]} closed
 * @returns {TabList}
 */
export function reopen(tabs, before, closed) {
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
 * The valid part of a stored tab list.
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
