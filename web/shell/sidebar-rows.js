/**
 * The sidebar as numbered rows of equal height: each project, followed by its sessions. Pure. The full list of rows is
 * never built; rows are looked up by number, so that 100 projects of 500 sessions cost only the rows in view.
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
 * @property {SessionListItem[]} sessions  the sessions that have a row
 * @property {boolean} empty  whether it has a row that says there are no sessions
 * @property {number} first  number of its first row
 * @property {number} rows  number of rows
 *
 * @typedef {object} View
 * @property {Project[]} projects
 * @property {Map<string, SessionListItem[]>} lists
 * @property {(projectId: string) => boolean} isCollapsed
 * @property {string} filter  words that a session title must contain
 * @property {boolean} archived  whether archived sessions are shown; projects without any are then omitted
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
    const visible = list && searching ? matching(list, words) : list;
    if ((searching || archived) && !visible?.length) continue;
    const collapsed = !searching && isCollapsed(project.id);
    const sessions = collapsed || !visible ? [] : visible;
    const empty = !collapsed && visible?.length === 0;
    const rows = 1 + sessions.length + (empty ? 1 : 0);
    found.push({ project, collapsed, sessions, empty, first, rows });
    first += rows;
  }
  return found;
}

/** Total number of rows. @param {Section[]} sections */
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

/** @param {Section[]} sections @param {string} key @returns {number}  number of the row, or -1 */
export function indexOf(sections, key) {
  for (const { project, sessions, first } of sections) {
    if (key === `project ${project.id}`) return first;
    const at = key.startsWith('session ') ? indexesOf(sessions).get(key.slice('session '.length)) : undefined;
    if (at !== undefined) return first + 1 + at;
  }
  return -1;
}

/** @type {WeakMap<SessionListItem[], Map<string, number>>} */
const indexCache = new WeakMap();

/** @param {SessionListItem[]} list */
function indexesOf(list) {
  let places = indexCache.get(list);
  if (!places) {
    places = new Map(list.map(({ id }, index) => [id, index]));
    indexCache.set(list, places);
  }
  return places;
}

/** @type {WeakMap<SessionListItem[], { query: string, found: SessionListItem[] }>} */
const searchCache = new WeakMap();

/** Sessions whose title contains every word. @param {SessionListItem[]} list @param {string[]} words  in lower case */
export function matching(list, words) {
  const query = words.join(' ');
  const cached = searchCache.get(list);
  if (cached?.query === query) return cached.found;
  const found = list.filter(({ title }) => {
    const text = title.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  searchCache.set(list, { query, found });
  return found;
}
