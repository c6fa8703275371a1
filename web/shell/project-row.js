/** The sidebar row of a project, with buttons to collapse it, start a session in it and remove it. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';

/**
 * @typedef {object} Actions
 * @property {(anchor: HTMLElement) => void} newSession
 * @property {(collapsed: boolean, at?: { x: number, y: number }) => void} menu  opens the menu with all actions
 * @property {() => void} remove
 * @property {(collapsed: boolean) => void} fold
 */

/**
 * @param {import('../types/wire.js').Project} project
 * @param {Actions} actions
 */
export function projectRow(project, actions) {
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
      onclick: () => actions.newSession(add),
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
      onclick: actions.remove,
    },
    icon('close'),
  );
  const isCollapsed = () => main.getAttribute('aria-expanded') === 'false';
  main.addEventListener('click', () => actions.fold(!isCollapsed()));
  main.addEventListener('keydown', ({ key, repeat }) => {
    if (key === 'ArrowLeft') actions.fold(true);
    else if (key === 'ArrowRight') actions.fold(false);
    else if (key === 'Delete' && !repeat) actions.remove();
  });
  const element = h('li', { class: 'row project', 'data-project-id': project.id }, main, remove, add);
  element.addEventListener('contextmenu', (event) => {
    event.preventDefault();
    // A context menu opened from the keyboard has no pointer position.
    const pointed = event.clientX > 0 || event.clientY > 0;
    actions.menu(isCollapsed(), pointed ? { x: event.clientX, y: event.clientY } : undefined);
  });

  return {
    element,
    main,
    add,
    /** @param {boolean} collapsed @param {string | undefined} where  parent folder, if another project has the same name */
    show: (collapsed, where) => {
      main.setAttribute('aria-expanded', String(!collapsed));
      if (place.textContent !== (where ?? '')) place.textContent = where ?? '';
      const name = where ? `${project.name} in ${where}` : project.name;
      add.setAttribute('aria-label', `New session in ${name}`);
      remove.setAttribute('aria-label', `Remove ${name}`);
    },
  };
}
