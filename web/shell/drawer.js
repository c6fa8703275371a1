/** The sidebar's visibility: a drawer over the main area in a narrow window, collapsible in a wide one. */

import { h, part } from '../shared/dom.js';
import { recall, remember } from '../shared/storage.js';
import { countsText, mostUrgent } from './attention.js';

const KEY = 'liminal:sidebar-hidden';

export function startDrawer() {
  const narrow = matchMedia('(max-width: 799px)');
  const sidebar = part('sidebar', HTMLElement);
  const main = part('main', HTMLElement);
  const menu = part('menu', HTMLButtonElement);
  const badge = h('span', { class: 'menu-badge', 'aria-hidden': 'true', hidden: true });
  menu.append(badge);
  let hidden = recall(KEY, (value) => (typeof value === 'boolean' ? value : undefined), false);

  /** @param {boolean} open */
  const set = (open) => {
    document.body.classList.toggle('drawer-open', open);
    document.body.classList.toggle('sidebar-away', hidden && !narrow.matches);
    menu.setAttribute('aria-expanded', String(open));
    sidebar.inert = narrow.matches ? !open : hidden;
    main.inert = narrow.matches && open;
  };
  const isOpen = () => document.body.classList.contains('drawer-open');
  const close = () => {
    set(false);
    if (narrow.matches) menu.focus();
  };
  /** @param {boolean} hide */
  const setHidden = (hide) => {
    hidden = hide;
    remember(KEY, hidden);
    set(false);
  };
  const open = () => {
    if (narrow.matches) set(true);
    else setHidden(false);
    sidebar.querySelector('button')?.focus();
  };

  menu.addEventListener('click', open);
  part('backdrop', HTMLElement).addEventListener('click', close);
  document.addEventListener('keydown', (event) => {
    const closesDrawer = isOpen() && !document.querySelector('dialog[open], .menu');
    if (event.key === 'Escape' && closesDrawer) close();
  });
  narrow.addEventListener('change', () => set(false));
  set(false);

  return {
    /** Shows the most urgent count on the menu button. @param {import('./attention.js').Counts} counts */
    showCounts: (counts) => {
      const { mark, number } = mostUrgent(counts);
      const summary = countsText(counts);
      badge.hidden = number === 0;
      badge.dataset.mark = mark;
      badge.textContent = number > 99 ? '99+' : String(number);
      menu.setAttribute('aria-label', summary ? `Open sidebar: ${summary}` : 'Open sidebar');
    },
    /** Closes the drawer after something was opened in the main area. */
    closeIfNarrow: () => narrow.matches && set(false),
    toggle: () => {
      if (narrow.matches ? !isOpen() : hidden) open();
      else if (narrow.matches) close();
      else {
        const hadFocus = sidebar.contains(document.activeElement);
        setHidden(true);
        if (hadFocus) menu.focus();
      }
    },
    /** Shows the sidebar, so that an element in it can receive the focus. */
    reveal: () => {
      if (narrow.matches) set(true);
      else if (hidden) setHidden(false);
    },
  };
}
