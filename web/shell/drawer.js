/** On a narrow window the sidebar is a drawer over the main area. */

import { part } from '../shared/dom.js';

export function startDrawer() {
  const narrow = matchMedia('(max-width: 799px)');
  const sidebar = part('sidebar', HTMLElement);
  const main = part('main', HTMLElement);
  const menu = part('menu', HTMLButtonElement);

  /** @param {boolean} open */
  const set = (open) => {
    document.body.classList.toggle('drawer-open', open);
    menu.setAttribute('aria-expanded', String(open));
    sidebar.inert = narrow.matches && !open;
    main.inert = narrow.matches && open;
  };
  const close = () => {
    set(false);
    if (narrow.matches) menu.focus();
  };

  menu.addEventListener('click', () => {
    set(true);
    sidebar.querySelector('button')?.focus();
  });
  part('backdrop', HTMLElement).addEventListener('click', close);
  document.addEventListener('keydown', (event) => {
    const ours = document.body.classList.contains('drawer-open') && !document.querySelector('dialog[open]');
    if (event.key === 'Escape' && ours) close();
  });
  narrow.addEventListener('change', () => set(false));
  set(false);
}
