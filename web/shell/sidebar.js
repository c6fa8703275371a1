/**
 * Projects and their sessions in the sidebar. Only the rows in view are in the page, and the one that has the
 * focus; the whole list is one stop for the Tab key, and the arrow keys walk through it.
 */

import { h } from '../shared/dom.js';
import { recall, remember } from '../shared/storage.js';
import { markOf } from './attention.js';
import { projectRow } from './project-row.js';
import { sessionRow } from './session-row.js';
import { indexOf, rowAt, rowCount, sections } from './sidebar-rows.js';
import { ambiguousPlaces } from './workspace.js';

/**
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 * @typedef {import('./sidebar-rows.js').Row} Row
 * @typedef {import('./sidebar-rows.js').Section} Section
 * @typedef {import('./workspace.js').Workspace} Workspace
 *
 * @typedef {object} Actions
 * @property {() => void} add
 * @property {(project: Project) => void} remove
 * @property {(project: Project, anchor: HTMLElement) => void} newSession
 * @property {(project: Project, anchor: HTMLElement, at: { x: number, y: number } | undefined, fold: import('./menu.js').MenuItem) => void} projectMenu
 * @property {(session: SessionListItem) => void} open
 * @property {(session: SessionListItem, anchor: HTMLElement, at?: { x: number, y: number }) => void} menu
 * @property {(session: SessionListItem, title: string) => void} rename
 * @property {(session: SessionListItem) => void} archive
 * @property {(archived: boolean) => void} wantArchived  the other list is shown from now on
 *
 * @typedef {object} Shown
 * @property {Workspace} workspace
 * @property {ReadonlySet<string>} unseen
 * @property {string | null} current  the session in view
 *
 * @typedef {object} RowView
 * @property {HTMLElement} element
 * @property {HTMLElement | null} main  what the keyboard can be in
 * @property {(row: any) => void} show
 * @property {() => boolean} [reusable]  whether it may show another session from now on
 */

const KEY = 'liminal:collapsed';
/** Rows beyond the view's edges, so that a scroll shows no gap. */
const BEYOND = 8;
const AGES_EVERY_MS = 30_000;

/**
 * @param {HTMLElement} place
 * @param {{ filter: HTMLInputElement, archived: HTMLButtonElement, archivedHead: HTMLElement, count: HTMLElement, tools: HTMLElement }} controls
 * @param {Actions} actions
 */
export function startSidebar(place, { filter, archived, archivedHead, count, tools }, actions) {
  const list = h('ul', { class: 'rows' });
  const nothing = h('p', { class: 'rows-empty hint' });
  const empty = emptyState(actions.add);
  /** Rows in the page, by key. @type {Map<string, RowView>} */
  const views = new Map();
  /** @type {Section[]} */
  let shownSections = [];
  /** @type {Shown | null} */
  let shown = null;
  /** @type {Map<string, string>} */
  let places = new Map();
  let collapsed = recallCollapsed();
  let rowHeight = 30;
  let showsArchived = false;
  /** The row that the Tab key reaches. */
  let stop = '';
  /** @type {string | null} */
  let renaming = null;
  let now = Date.now();

  /** @param {Shown} next */
  const render = (next) => {
    shown = next;
    const { projects } = next.workspace;
    tools.hidden = !projects?.length;
    if (projects === null) {
      if (!place.querySelector('.skeleton')) {
        place.replaceChildren(...[1, 2, 3].map(() => h('div', { class: 'skeleton' })));
      }
      return;
    }
    if (projects.length === 0) {
      views.clear();
      list.replaceChildren();
      if (place.firstChild !== empty) {
        const hadFocus = place.contains(document.activeElement);
        place.replaceChildren(empty);
        if (hadFocus) document.getElementById('add-project')?.focus();
      }
      return;
    }
    places = ambiguousPlaces(projects);
    if (place.firstChild !== list) {
      place.replaceChildren(list, nothing);
      rowHeight = measure(list);
    }
    layOut();
  };

  /** What changed may have moved every row. */
  const layOut = () => {
    if (!shown?.workspace.projects) return;
    const focused = views.get(focusedKey() ?? '');
    const was = focused ? indexOf(shownSections, focusedKey() ?? '') : -1;
    const { workspace } = shown;
    shownSections = sections({
      projects: workspace.projects ?? [],
      lists: showsArchived ? workspace.archived : workspace.sessions,
      isCollapsed: (id) => collapsed[id] === true,
      filter: filter.value,
      archived: showsArchived,
    });
    const rows = rowCount(shownSections);
    list.style.height = `${rows * rowHeight}px`;
    sayHowMany();
    if (indexOf(shownSections, stop) < 0) stop = rowAt(shownSections, 0)?.key ?? '';
    // The keyboard stays where it was in the list when the row under it goes.
    const lostFocus = was >= 0 && indexOf(shownSections, focusedKey() ?? '') < 0;
    if (lostFocus) stop = nearest(was)?.key ?? stop;
    draw();
    if (lostFocus) focusRow(stop);
  };

  const sayHowMany = () => {
    const searching = filter.value.trim() !== '';
    const found = shownSections.reduce((sum, { sessions }) => sum + sessions.length, 0);
    const what = showsArchived ? 'archived session' : 'session';
    const said = searching ? `${found} ${what}${found === 1 ? '' : 's'} found` : '';
    if (count.textContent !== said) count.textContent = said;
    nothing.hidden = shownSections.length > 0;
    nothing.textContent = searching ? 'No title contains that.' : 'Nothing is archived.';
  };

  /** Brings the rows in view into the page, and the others out of it. */
  const draw = () => {
    if (!shown || place.firstChild !== list) return;
    const top = place.scrollTop - list.offsetTop;
    const first = Math.max(0, Math.floor(top / rowHeight) - BEYOND);
    const last = Math.ceil((top + place.clientHeight) / rowHeight) + BEYOND;
    /** @type {[number, Row][]} */
    const wanted = [];
    for (let index = first; index <= last; index += 1) {
      const row = rowAt(shownSections, index);
      if (row) wanted.push([index, row]);
    }
    const stopAt = indexOf(shownSections, stop);
    const stopRow = rowAt(shownSections, stopAt);
    if (stopRow && stopAt < first) wanted.unshift([stopAt, stopRow]);
    if (stopRow && stopAt > last) wanted.push([stopAt, stopRow]);

    /** @type {RowView[]} */
    const free = [];
    const keys = new Set(wanted.map(([, { key }]) => key));
    for (const [key, view] of views) {
      if (keys.has(key)) continue;
      views.delete(key);
      // A session's row that scrolled out shows one that scrolled in: making new ones would cost frames.
      if (view.reusable?.()) free.push(view);
      view.element.remove();
    }
    /** @type {Element | null} */
    let before = null;
    for (const [index, row] of wanted) {
      let view = views.get(row.key);
      if (!view) {
        view = (row.kind === 'session' && free.pop()) || makeRow(row);
        views.set(row.key, view);
      }
      const { element, main } = view;
      view.show(row);
      const offset = `${index * rowHeight}px`;
      if (element.style.top !== offset) element.style.top = offset;
      if (main) main.tabIndex = row.key === stop ? 0 : -1;
      // Read in the order in which they are seen. Moving the focused one would lose the focus.
      /** @type {Element | null} */
      const next = before ? before.nextElementSibling : list.firstElementChild;
      if (next !== element && !(element.isConnected && element.contains(document.activeElement))) {
        list.insertBefore(element, next);
      }
      before = element;
    }
  };

  /** @param {Row} row @returns {RowView} */
  const makeRow = (row) => {
    if (row.kind === 'project') {
      const { project } = row;
      const fold = (/** @type {boolean} */ folded) => setFolded(project.id, folded);
      const view = projectRow(project, {
        newSession: (anchor) => actions.newSession(project, anchor),
        remove: () => actions.remove(project),
        fold,
        menu: (collapsed, at) =>
          actions.projectMenu(project, view.add, at, {
            label: collapsed ? 'Unfold' : 'Fold',
            run: () => fold(!collapsed),
          }),
      });
      return { ...view, show: (/** @type {any} */ next) => view.show(next.collapsed, places.get(project.id)) };
    }
    if (row.kind === 'empty') {
      const { project } = row;
      const button = h(
        'button',
        { class: 'link-button', type: 'button', tabindex: '-1', 'aria-haspopup': 'menu' },
        'New session',
      );
      button.addEventListener('click', () => actions.newSession(project, button));
      const element = h('li', { class: 'row row-empty' }, h('span', {}, 'No sessions yet'), button);
      return { element, main: null, show: () => {} };
    }
    let { session } = row;
    const view = sessionRow({
      open: () => actions.open(session),
      menu: (anchor, at) => actions.menu(session, anchor, at),
      rename: () => rename(session.id),
      renamed: (title) => {
        renaming = null;
        if (title !== null) actions.rename(session, title);
      },
      archive: () => actions.archive(session),
    });
    return {
      ...view,
      reusable: () => renaming !== session.id && !view.element.contains(document.activeElement),
      show: (/** @type {any} */ next) => {
        session = next.session;
        if (!shown) return;
        const { unseen, current, workspace } = shown;
        const agent = workspace.agents.find(({ cliType }) => cliType === session.cliType);
        view.show({
          session,
          mark: markOf(session, unseen),
          agent: agent ?? { name: session.cliType, badge: '' },
          current: session.id === current,
          renaming: renaming === session.id,
          now,
        });
      },
    };
  };

  /** @param {string} id */
  const rename = (id) => {
    unhide(`session ${id}`);
    renaming = id;
    stop = `session ${id}`;
    scrollTo(stop);
    draw();
  };

  /** @param {string} projectId @param {boolean} fold */
  const setFolded = (projectId, fold) => {
    collapsed = recallCollapsed();
    if (fold) collapsed[projectId] = true;
    else delete collapsed[projectId];
    remember(KEY, collapsed);
    layOut();
  };

  const focusedKey = () => {
    for (const [key, { element }] of views) if (element.contains(document.activeElement)) return key;
    return undefined;
  };

  /** The row at this place, or the next one the keyboard can be in, if need be above. @param {number} index */
  const nearest = (index) => {
    const rows = rowCount(shownSections);
    for (let at = index; at < rows; at += 1)
      if (rowAt(shownSections, at)?.kind !== 'empty') return rowAt(shownSections, at);
    for (let at = Math.min(index, rows) - 1; at >= 0; at -= 1) {
      if (rowAt(shownSections, at)?.kind !== 'empty') return rowAt(shownSections, at);
    }
    return undefined;
  };

  /** @param {string} key */
  const scrollTo = (key) => {
    const index = indexOf(shownSections, key);
    if (index < 0) return;
    const top = index * rowHeight + list.offsetTop;
    if (top < place.scrollTop) place.scrollTop = top;
    else if (top + rowHeight > place.scrollTop + place.clientHeight)
      place.scrollTop = top + rowHeight - place.clientHeight;
  };

  /** @param {string} key @returns {boolean} whether it could take the focus */
  const focusRow = (key) => {
    if (indexOf(shownSections, key) < 0) {
      document.getElementById('add-project')?.focus();
      return false;
    }
    stop = key;
    scrollTo(key);
    draw();
    const main = views.get(key)?.main;
    main?.focus({ preventScroll: true });
    return main !== undefined && main === document.activeElement;
  };

  place.addEventListener('scroll', draw, { passive: true });
  new ResizeObserver(() => {
    if (list.isConnected) rowHeight = measure(list);
    list.style.height = `${rowCount(shownSections) * rowHeight}px`;
    draw();
  }).observe(place);

  place.addEventListener('focusin', () => {
    const key = focusedKey();
    if (key === undefined || key === stop || views.get(key)?.main === null) return;
    stop = key;
    draw();
  });
  place.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const key = focusedKey();
    const from = key === undefined ? -1 : indexOf(shownSections, key);
    if (from < 0 || !(event.target instanceof HTMLButtonElement)) return;
    const rows = rowCount(shownSections);
    const page = Math.max(1, Math.floor(place.clientHeight / rowHeight) - 1);
    const ways = {
      ArrowDown: [from + 1, 1],
      ArrowUp: [from - 1, -1],
      Home: [0, 1],
      End: [rows - 1, -1],
      PageDown: [Math.min(rows - 1, from + page), -1],
      PageUp: [Math.max(0, from - page), 1],
    };
    const way = ways[/** @type {keyof typeof ways} */ (event.key)];
    if (way) {
      event.preventDefault();
      const [start, step] = way;
      for (let at = start; at >= 0 && at < rows; at += step) {
        const row = rowAt(shownSections, at);
        if (row && row.kind !== 'empty') return focusRow(row.key);
      }
    } else if (event.key === 'ArrowLeft' && key?.startsWith('session ')) {
      const row = rowAt(shownSections, from);
      if (row) focusRow(`project ${row.project.id}`);
    }
    return undefined;
  });

  filter.addEventListener('input', () => {
    place.scrollTop = 0;
    layOut();
  });
  filter.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && filter.value !== '') {
      event.preventDefault();
      event.stopPropagation();
      filter.value = '';
      layOut();
    } else if (event.key === 'ArrowDown') {
      event.preventDefault();
      const row = rowAt(shownSections, filter.value.trim() === '' ? 0 : 1) ?? rowAt(shownSections, 0);
      if (row) focusRow(row.key);
    } else if (event.key === 'Enter') {
      const row = rowAt(shownSections, 1);
      if (row?.kind === 'session') actions.open(row.session);
    }
  });
  /** @param {boolean} shows */
  const showArchived = (shows) => {
    showsArchived = shows;
    archived.setAttribute('aria-pressed', String(shows));
    archivedHead.hidden = !shows;
    filter.placeholder = shows ? 'Filter archived sessions' : 'Filter sessions';
    place.scrollTop = 0;
    actions.wantArchived(shows);
    layOut();
  };
  archived.addEventListener('click', () => showArchived(!showsArchived));
  archivedHead.querySelector('button')?.addEventListener('click', () => {
    showArchived(false);
    archived.focus();
  });

  /** What was asked for by name is shown, whatever the list is narrowed to. @param {string} key */
  const unhide = (key) => {
    if (indexOf(shownSections, key) >= 0) return;
    filter.value = '';
    if (showsArchived) showArchived(false);
    else layOut();
  };

  // Another window folded or unfolded something.
  addEventListener('storage', (event) => {
    if (event.key !== KEY) return;
    collapsed = recallCollapsed();
    layOut();
  });
  const tick = () => {
    now = Date.now();
    draw();
  };
  setInterval(() => document.visibilityState === 'visible' && tick(), AGES_EVERY_MS);
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && tick());

  return {
    /** @param {Shown} next */
    render: (next) => {
      now = Date.now();
      render(next);
    },
    rename,
    focusProject: (/** @type {string} */ id) => {
      unhide(`project ${id}`);
      return focusRow(`project ${id}`);
    },
    focusSession: (/** @type {string} */ id) => focusRow(`session ${id}`),
    /** Unfolds the project, so that what happens in it is seen. @param {string} projectId */
    reveal: (projectId) => {
      if (collapsed[projectId]) setFolded(projectId, false);
    },
    /** The project that the keyboard is in, and what a menu about it would drop from. */
    focusedProject: () => {
      const key = focusedKey();
      const row = key === undefined ? undefined : rowAt(shownSections, indexOf(shownSections, key));
      return row?.project;
    },
    /** What a menu about this project drops from, if it is in view. @param {string} projectId */
    anchorOf: (projectId) => views.get(`project ${projectId}`)?.element.querySelector('.project-new') ?? null,
    showsArchived: () => showsArchived,
  };
}

/** How high a row is, in a window with this font size. @param {HTMLElement} list */
function measure(list) {
  const probe = h('li', { class: 'row' });
  list.append(probe);
  const { height } = probe.getBoundingClientRect();
  probe.remove();
  return height || 30;
}

/** @param {() => void} add */
function emptyState(add) {
  return h(
    'div',
    { class: 'projects-empty' },
    h('p', { class: 'hint' }, 'No projects yet. Add a folder you work in to begin.'),
    h('button', { class: 'button', type: 'button', onclick: add }, 'Add project'),
  );
}

function recallCollapsed() {
  return recall(KEY, asCollapsed, /** @type {Record<string, boolean>} */ ({}));
}

/** @param {unknown} value */
function asCollapsed(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.fromEntries(Object.entries(value).filter(([, collapsed]) => collapsed === true));
}
