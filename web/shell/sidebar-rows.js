/**
 * The sidebar as numbered rows of one height: projects, and under each its sessions. Pure, and never laid out
 * in full: with 100 projects of 500 sessions, only the few rows in view are looked up.
 *
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 *
 * @typedef {{ kind: 'project', key: string, project: Project, collapsed: boolean }} ProjectRow
 * @typedef {{ kind: 'session', key: string, project: Project, session: SessionListItem }} SessionRow
 * @typedef {{ kind: 'empty', key: string, project: Project }} EmptyRow
 * @typedef {ProjectRow | SessionRow | EmptyRow} Row
 *
 * @typedef {object} Section
 * @property {Project} project
 * @property {boolean} collapsed
 * @property {SessionListItem[]} sessions  those that have a row
 * @property {boolean} empty  whether a row says that there are none
 * @property {number} first  the number of its first row
 * @property {number} rows
 *
 * @typedef {object} View
 * @property {Project[]} projects
 * @property {Map<string, SessionListItem[]>} lists
 * @property {(projectId: string) => boolean} isCollapsed
 * @property {string} filter  words that a title must contain
 * @property {boolean} archived  then projects without any are left out
 */

/** @param {View} view @returns {Section[]} */
export function sections({ projects, lists, isCollapsed, filter, archived }) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const searching = words.length > 0;
  /** @type {Section[]} */
  const found = [];
  let first = 0;
  for (const project of projects) {
    const list = lists.get(project.id);
    const fitting = list && searching ? matching(list, words) : list;
    if ((searching || archived) && !fitting?.length) continue;
    const collapsed = !searching && isCollapsed(project.id);
    const sessions = collapsed || !fitting ? [] : fitting;
    const empty = !collapsed && fitting?.length === 0;
    const rows = 1 + sessions.length + (empty ? 1 : 0);
    found.push({ project, collapsed, sessions, empty, first, rows });
    first += rows;
  }
  return found;
}

/** How many rows there are. @param {Section[]} sections */
export function rowCount(sections) {
  const last = sections.at(-1);
  return last ? last.first + last.rows : 0;
}

/** @param {Section[]} sections @param {number} index @returns {Row | undefined} */
export function rowAt(sections, index) {
  let low = 0;
  let high = sections.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (sections[middle].first <= index) low = middle;
    else high = middle - 1;
  }
  const section = sections[low];
  const at = section ? index - section.first : -1;
  if (at < 0 || at >= section.rows) return undefined;
  const { project, collapsed, sessions } = section;
  if (at === 0) return { kind: 'project', key: `project ${project.id}`, project, collapsed };
  const session = sessions[at - 1];
  if (session) return { kind: 'session', key: `session ${session.id}`, project, session };
  return { kind: 'empty', key: `empty ${project.id}`, project };
}

/** @param {Section[]} sections @param {string} key @returns {number}  -1 if it has no row */
export function indexOf(sections, key) {
  for (const { project, sessions, first } of sections) {
    if (key === `project ${project.id}`) return first;
    const at = key.startsWith('session ') ? placesIn(sessions).get(key.slice('session '.length)) : undefined;
    if (at !== undefined) return first + 1 + at;
  }
  return -1;
}

/** @type {WeakMap<SessionListItem[], Map<string, number>>} */
const placed = new WeakMap();

/** @param {SessionListItem[]} list */
function placesIn(list) {
  let places = placed.get(list);
  if (!places) {
    places = new Map(list.map(({ id }, index) => [id, index]));
    placed.set(list, places);
  }
  return places;
}

/** @type {WeakMap<SessionListItem[], { query: string, found: SessionListItem[] }>} */
const searched = new WeakMap();

/** @param {SessionListItem[]} list @param {string[]} words  lower case */
export function matching(list, words) {
  const query = words.join(' ');
  const known = searched.get(list);
  if (known?.query === query) return known.found;
  const found = list.filter(({ title }) => {
    const text = title.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  searched.set(list, { query, found });
  return found;
}
