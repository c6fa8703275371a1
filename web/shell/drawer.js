/** On a narrow window the sidebar is a drawer over the main area; on a wide one it can be put away. */

import { h, part } from '../shared/dom.js';
import { recall, remember } from '../shared/storage.js';
import { inWords, mostUrgent } from './attention.js';

const KEY = 'liminal:sidebar-hidden';

export function startDrawer() {
  const narrow = matchMedia('(max-width: 799px)');
  const sidebar = part('sidebar', HTMLElement);
  const main = part('main', HTMLElement);
  const menu = part('menu', HTMLButtonElement);
  const badge = h('span', { class: 'menu-badge', 'aria-hidden': 'true', hidden: true });
  menu.append(badge);
  let away = recall(KEY, (value) => (typeof value === 'boolean' ? value : undefined), false);

  /** @param {boolean} open */
  const set = (open) => {
    document.body.classList.toggle('drawer-open', open);
    document.body.classList.toggle('sidebar-away', away && !narrow.matches);
    menu.setAttribute('aria-expanded', String(open));
    sidebar.inert = narrow.matches ? !open : away;
    main.inert = narrow.matches && open;
  };
  const isOpen = () => document.body.classList.contains('drawer-open');
  const close = () => {
    set(false);
    if (narrow.matches) menu.focus();
  };
  /** @param {boolean} hide */
  const putAway = (hide) => {
    away = hide;
    remember(KEY, away);
    set(false);
  };
  const open = () => {
    if (narrow.matches) set(true);
    else putAway(false);
    sidebar.querySelector('button')?.focus();
  };

  menu.addEventListener('click', open);
  part('backdrop', HTMLElement).addEventListener('click', close);
  document.addEventListener('keydown', (event) => {
    const ours = isOpen() && !document.querySelector('dialog[open], .menu');
    if (event.key === 'Escape' && ours) close();
  });
  narrow.addEventListener('change', () => set(false));
  set(false);

  return {
    /** What needs somebody, on the way to where it is listed. @param {import('./attention.js').Counts} counts */
    tell: (counts) => {
      const { mark, number } = mostUrgent(counts);
      const said = inWords(counts);
      badge.hidden = number === 0;
      badge.dataset.mark = mark;
      badge.textContent = number > 99 ? '99+' : String(number);
      menu.setAttribute('aria-label', said ? `Open sidebar: ${said}` : 'Open sidebar');
    },
    /** Out of the way of what was just opened in the main area. */
    giveWay: () => narrow.matches && set(false),
    toggle: () => {
      if (narrow.matches ? !isOpen() : away) open();
      else if (narrow.matches) close();
      else {
        const lost = sidebar.contains(document.activeElement);
        putAway(true);
        if (lost) menu.focus();
      }
    },
    /** So that something in it can take the focus. */
    reveal: () => {
      if (narrow.matches) set(true);
      else if (away) putAway(false);
    },
  };
}
