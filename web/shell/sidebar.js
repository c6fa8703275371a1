/**
 * The list of projects and sessions in the sidebar. It is virtual: the page contains only the rows in view and the
 * focusable one. The whole list is one tab stop; the arrow keys move between rows.
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
 * @property {(archived: boolean) => void} wantArchived  called when the view changes to or from archived sessions
 *
 * @typedef {object} Shown
 * @property {Workspace} workspace
 * @property {ReadonlySet<string>} unseen
 * @property {string | null} current  id of the session in view
 *
 * @typedef {object} RowView
 * @property {HTMLElement} element
 * @property {HTMLElement | null} main  the focusable element
 * @property {(row: any) => void} show
 * @property {() => boolean} [reusable]  whether the row may be reused for another session
 */

const KEY = 'liminal:collapsed';
/** Extra rows above and below the viewport, so that scrolling shows no gap. */
const OVERSCAN = 8;
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
  /** Key of the row that is the list's tab stop. */
  let tabStop = '';
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

  /** Recomputes all rows after a change. */
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
    showCount();
    if (indexOf(shownSections, tabStop) < 0) tabStop = rowAt(shownSections, 0)?.key ?? '';
    // If the focused row was removed, the nearest row gets the focus.
    const lostFocus = was >= 0 && indexOf(shownSections, focusedKey() ?? '') < 0;
    if (lostFocus) tabStop = nearest(was)?.key ?? tabStop;
    draw();
    if (lostFocus) focusRow(tabStop);
  };

  const showCount = () => {
    const searching = filter.value.trim() !== '';
    const found = shownSections.reduce((sum, { sessions }) => sum + sessions.length, 0);
    const what = showsArchived ? 'archived session' : 'session';
    const countText = searching ? `${found} ${what}${found === 1 ? '' : 's'} found` : '';
    if (count.textContent !== countText) count.textContent = countText;
    nothing.hidden = shownSections.length > 0;
    nothing.textContent = searching ? 'No matching sessions.' : 'Nothing is archived.';
  };

  /** Updates the page to contain the rows in view and the tab stop. */
  const draw = () => {
    if (!shown || place.firstChild !== list) return;
    const top = place.scrollTop - list.offsetTop;
    const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
    const last = Math.ceil((top + place.clientHeight) / rowHeight) + OVERSCAN;
    /** @type {[number, Row][]} */
    const wanted = [];
    for (let index = first; index <= last; index += 1) {
      const row = rowAt(shownSections, index);
      if (row) wanted.push([index, row]);
    }
    const stopAt = indexOf(shownSections, tabStop);
    const stopRow = rowAt(shownSections, stopAt);
    if (stopRow && stopAt < first) wanted.unshift([stopAt, stopRow]);
    if (stopRow && stopAt > last) wanted.push([stopAt, stopRow]);

    /** @type {RowView[]} */
    const free = [];
    const keys = new Set(wanted.map(([, { key }]) => key));
    for (const [key, view] of views) {
      if (keys.has(key)) continue;
      views.delete(key);
      // Session rows that scrolled out are reused; creating new ones would make scrolling stutter.
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
      if (main) main.tabIndex = row.key === tabStop ? 0 : -1;
      // Keep the DOM order equal to the visual order. The focused row is not moved, because it would lose the focus.
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
      const fold = (/** @type {boolean} */ folded) => setCollapsed(project.id, folded);
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
    tabStop = `session ${id}`;
    scrollTo(tabStop);
    draw();
  };

  /** @param {string} projectId @param {boolean} fold */
  const setCollapsed = (projectId, fold) => {
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

  /** The nearest focusable row at or after this index, otherwise before it. @param {number} index */
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
    tabStop = key;
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
    if (key === undefined || key === tabStop || views.get(key)?.main === null) return;
    tabStop = key;
    draw();
  });
  place.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const key = focusedKey();
    const from = key === undefined ? -1 : indexOf(shownSections, key);
    if (from < 0 || !(event.target instanceof HTMLButtonElement)) return;
    const rows = rowCount(shownSections);
    const page = Math.max(1, Math.floor(place.clientHeight / rowHeight) - 1);
    const moves = {
      ArrowDown: [from + 1, 1],
      ArrowUp: [from - 1, -1],
      Home: [0, 1],
      End: [rows - 1, -1],
      PageDown: [Math.min(rows - 1, from + page), -1],
      PageUp: [Math.max(0, from - page), 1],
    };
    const move = moves[/** @type {keyof typeof moves} */ (event.key)];
    if (move) {
      event.preventDefault();
      const [start, step] = move;
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

  /** Clears the filter and leaves the archived view if they hide this row. @param {string} key */
  const unhide = (key) => {
    if (indexOf(shownSections, key) >= 0) return;
    filter.value = '';
    if (showsArchived) showArchived(false);
    else layOut();
  };

  // Another window collapsed or expanded a project.
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
    /** Expands a project. @param {string} projectId */
    reveal: (projectId) => {
      if (collapsed[projectId]) setCollapsed(projectId, false);
    },
    /** The project of the focused row. */
    focusedProject: () => {
      const key = focusedKey();
      const row = key === undefined ? undefined : rowAt(shownSections, indexOf(shownSections, key));
      return row?.project;
    },
    /** The anchor for a project's menu, if its row is in the page. @param {string} projectId */
    anchorOf: (projectId) => views.get(`project ${projectId}`)?.element.querySelector('.project-new') ?? null,
    showsArchived: () => showsArchived,
  };
}

/** Measures the height of a row at the current font size. @param {HTMLElement} list */
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
