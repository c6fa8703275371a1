/** One project in the sidebar: folded and unfolded, with a way to a new session and out of the list. */

import { h, icon } from '../shared/dom.js';

/**
 * @typedef {object} Does
 * @property {(anchor: HTMLElement) => void} newSession
 * @property {(collapsed: boolean, at?: { x: number, y: number }) => void} menu  everything one can do with it
 * @property {() => void} remove
 * @property {(collapsed: boolean) => void} fold
 */

/**
 * @param {import('../types/wire.js').Project} project
 * @param {Does} does
 */
export function projectRow(project, does) {
  const place = h('span', { class: 'project-place' });
  const main = h(
    'button',
    { class: 'row-main project-head', type: 'button', title: project.path },
    icon('chevron', 'chevron'),
    h('span', { class: 'project-name' }, project.name),
    place,
  );
  const add = h(
    'button',
    {
      class: 'icon-button row-action project-new',
      type: 'button',
      tabindex: '-1',
      title: 'New session',
      'aria-haspopup': 'menu',
      'aria-expanded': 'false',
      onclick: () => does.newSession(add),
    },
    icon('plus'),
  );
  const remove = h(
    'button',
    {
      class: 'icon-button row-action project-remove',
      type: 'button',
      tabindex: '-1',
      title: 'Remove from the sidebar (its files stay)',
      onclick: does.remove,
    },
    icon('close'),
  );
  const isCollapsed = () => main.getAttribute('aria-expanded') === 'false';
  main.addEventListener('click', () => does.fold(!isCollapsed()));
  main.addEventListener('keydown', ({ key, repeat }) => {
    if (key === 'ArrowLeft') does.fold(true);
    else if (key === 'ArrowRight') does.fold(false);
    else if (key === 'Delete' && !repeat) does.remove();
  });
  const element = h('li', { class: 'row project', 'data-project-id': project.id }, main, remove, add);
  element.addEventListener('contextmenu', (event) => {
    event.preventDefault();
    // From the keyboard it comes with no place of its own.
    const pointed = event.clientX > 0 || event.clientY > 0;
    does.menu(isCollapsed(), pointed ? { x: event.clientX, y: event.clientY } : undefined);
  });

  return {
    element,
    main,
    add,
    /** @param {boolean} collapsed @param {string | undefined} where  for a name that another project has too */
    show: (collapsed, where) => {
      main.setAttribute('aria-expanded', String(!collapsed));
      if (place.textContent !== (where ?? '')) place.textContent = where ?? '';
      const name = where ? `${project.name} in ${where}` : project.name;
      add.setAttribute('aria-label', `New session in ${name}`);
      remove.setAttribute('aria-label', `Remove ${name}`);
    },
  };
}
