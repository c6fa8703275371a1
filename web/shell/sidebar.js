/** The projects in the sidebar: shown in order, opened and closed, removed. */

import { h, icon } from '../shared/dom.js';
import { recall, remember } from '../shared/storage.js';
import { ambiguousPlaces } from './workspace.js';

/**
 * @typedef {import('../types/wire.js').Project} Project
 *
 * @typedef {object} Actions
 * @property {() => void} add
 * @property {(project: Project) => void} remove
 */

const KEY = 'liminal:collapsed';

/**
 * @param {HTMLElement} place
 * @param {Actions} actions
 */
export function startSidebar(place, actions) {
  /** @type {Map<string, ReturnType<typeof projectGroup>>} */
  const groups = new Map();
  const list = h('ul');
  const empty = emptyState(actions.add);

  /** @param {Project[] | null} projects */
  const render = (projects) => {
    if (projects === null) {
      place.replaceChildren(...[1, 2, 3].map(() => h('div', { class: 'skeleton' })));
      return;
    }
    for (const [id, group] of groups) {
      if (projects.some((project) => project.id === id)) continue;
      moveFocusAway(group.element);
      group.element.remove();
      groups.delete(id);
    }
    const places = ambiguousPlaces(projects);
    for (const [index, project] of projects.entries()) {
      let group = groups.get(project.id);
      if (!group) {
        group = projectGroup(project, actions);
        groups.set(project.id, group);
      }
      group.showPlace(places.get(project.id));
      if (list.children[index] !== group.element) list.insertBefore(group.element, list.children[index] ?? null);
    }
    const content = projects.length > 0 ? list : empty;
    if (place.firstChild !== content) place.replaceChildren(content);
  };

  /** Where the keyboard goes when the thing under it is removed: to the next one, as in any list. */
  /** @param {HTMLElement} element */
  const moveFocusAway = (element) => {
    if (!element.contains(document.activeElement)) return;
    const next = element.nextElementSibling ?? element.previousElementSibling;
    const target = next?.querySelector('button') ?? document.getElementById('add-project');
    target?.focus();
  };

  place.addEventListener('keydown', (event) => {
    const heads = [...list.querySelectorAll('.project-head')];
    const at = heads.indexOf(/** @type {Element} */ (event.target));
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: heads.length - 1 }[event.key];
    const head = to === undefined ? undefined : heads[to];
    if (head instanceof HTMLElement) {
      event.preventDefault();
      head.focus();
    }
  });

  // Another window folded or unfolded something.
  addEventListener('storage', (event) => {
    if (event.key !== KEY) return;
    const collapsed = recallCollapsed();
    for (const [id, group] of groups) group.setCollapsed(collapsed[id] === true);
  });

  render(null);
  return {
    render,
    /** @param {string} id @returns {boolean} whether it could take the focus */
    focus: (id) => {
      const head = groups.get(id)?.element.querySelector('button');
      head?.focus();
      return head !== undefined && head === document.activeElement;
    },
  };
}

/**
 * @param {Project} project
 * @param {Actions} actions
 */
function projectGroup(project, actions) {
  const sessionsId = `sessions-${project.id}`;
  const place = h('span', { class: 'project-place' });
  const head = h(
    'button',
    { class: 'project-head', type: 'button', title: project.path, 'aria-controls': sessionsId },
    icon('chevron', 'chevron'),
    h('span', { class: 'project-name' }, project.name),
    place,
  );
  const sessions = h('div', { class: 'project-sessions', id: sessionsId }, h('p', {}, 'No sessions yet'));
  const remove = h(
    'button',
    {
      class: 'icon-button project-remove',
      type: 'button',
      title: 'Remove from the sidebar (its files stay)',
      onclick: () => actions.remove(project),
    },
    icon('close'),
  );

  /** @param {boolean} collapsed */
  const setCollapsed = (collapsed) => {
    head.setAttribute('aria-expanded', String(!collapsed));
    sessions.hidden = collapsed;
  };
  /** @param {boolean} collapsed */
  const choose = (collapsed) => {
    setCollapsed(collapsed);
    const all = recallCollapsed();
    if (collapsed) all[project.id] = true;
    else delete all[project.id];
    remember(KEY, all);
  };
  head.addEventListener('click', () => choose(!sessions.hidden));
  head.addEventListener('keydown', ({ key, repeat }) => {
    if (key === 'ArrowLeft') choose(true);
    else if (key === 'ArrowRight') choose(false);
    else if (key === 'Delete' && !repeat) actions.remove(project);
  });
  setCollapsed(recallCollapsed()[project.id] === true);

  return {
    element: h('li', { class: 'project' }, head, remove, sessions),
    setCollapsed,
    /** @param {string | undefined} text */
    showPlace: (text) => {
      place.textContent = text ?? '';
      remove.setAttribute('aria-label', text ? `Remove ${project.name} in ${text}` : `Remove ${project.name}`);
    },
  };
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
