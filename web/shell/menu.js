/**
 * A menu that drops from a button: chosen with the mouse or the arrow keys, left with Escape or a press outside.
 *
 * @typedef {object} MenuItem
 * @property {string} label
 * @property {string} [note]  small, below or beside the label
 * @property {string} [badge]
 * @property {boolean} [disabled]  shown, and reachable, but does nothing
 * @property {boolean} [checked]  makes it a switch
 * @property {boolean} [current]
 * @property {() => void} [run]
 */

import { h } from '../shared/dom.js';

/** @type {(() => void) | null} */
let closeOpen = null;

/**
 * @param {HTMLElement} anchor
 * @param {string} label
 * @param {MenuItem[]} items
 * @param {{ x: number, y: number }} [at]  where the pointer was, for a context menu
 */
export function openMenu(anchor, label, items, at) {
  closeOpen?.();
  const returnTo = document.activeElement instanceof HTMLElement ? document.activeElement : anchor;
  const buttons = items.map((item) => menuItem(item, () => choose(item)));
  const menu = h('div', { class: 'menu', role: 'menu', 'aria-label': label, popover: 'manual' }, ...buttons);

  /** @param {boolean} giveBack  the focus */
  const close = (giveBack) => {
    if (closeOpen !== leave) return;
    closeOpen = null;
    removeEventListener('pointerdown', outside, true);
    removeEventListener('blur', left);
    anchor.setAttribute('aria-expanded', 'false');
    menu.remove();
    if (giveBack) (returnTo.isConnected ? returnTo : anchor).focus();
  };
  const leave = () => close(false);
  /** @param {MenuItem} item */
  const choose = (item) => {
    if (item.disabled) return;
    close(true);
    item.run?.();
  };
  /** @param {Event} event */
  const outside = (event) => {
    if (event.target instanceof Node && menu.contains(event.target)) return;
    // A press on the button that opened it would only open it again; the right button presses nothing.
    const presses = event instanceof PointerEvent && event.button === 0;
    if (presses && event.target instanceof Node && anchor.contains(event.target)) {
      event.preventDefault();
      anchor.addEventListener('click', (click) => click.stopImmediatePropagation(), { once: true, capture: true });
    }
    close(anchor.contains(/** @type {Node} */ (event.target)));
  };
  // The focus went into a session's page.
  const left = () => leave();

  menu.addEventListener('keydown', (event) => {
    const from = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const to = { ArrowDown: from + 1, ArrowUp: from - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) buttons.at(to % buttons.length)?.focus();
    else if (event.key === 'Escape' || event.key === 'Tab') close(true);
    else if (/^[a-z0-9]$/i.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const fits = buttons.filter(({ textContent }) => textContent?.toLowerCase().startsWith(event.key.toLowerCase()));
      (fits.find((button) => buttons.indexOf(button) > from) ?? fits[0])?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  closeOpen = leave;
  anchor.setAttribute('aria-expanded', 'true');
  // On top of everything wherever it stands; in a landmark it is found.
  (anchor.closest('aside, main') ?? document.body).append(menu);
  menu.showPopover();
  put(menu, anchor, at);
  buttons.find((button) => button.getAttribute('aria-disabled') !== 'true')?.focus();
  addEventListener('pointerdown', outside, true);
  addEventListener('blur', left);
}

/** @param {MenuItem} item @param {() => void} choose */
function menuItem({ label, note, badge, disabled, checked, current }, choose) {
  return h(
    'button',
    {
      class: 'menu-item',
      type: 'button',
      role: checked === undefined ? 'menuitem' : 'menuitemcheckbox',
      tabindex: '-1',
      'aria-disabled': disabled && 'true',
      'aria-checked': checked === undefined ? undefined : String(checked),
      'aria-current': current && 'true',
      onclick: choose,
    },
    checked !== undefined && h('span', { class: 'menu-check', 'aria-hidden': 'true' }, checked ? '✓' : ''),
    h('span', { class: 'menu-label' }, label),
    badge && h('span', { class: 'badge', 'aria-hidden': 'true' }, badge),
    note && h('span', { class: 'menu-note', title: note }, note),
  );
}

/** @param {HTMLElement} menu @param {HTMLElement} anchor @param {{ x: number, y: number }} [at] */
function put(menu, anchor, at) {
  const box = anchor.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const left = Math.min(at?.x ?? box.left, innerWidth - width - 8);
  const below = at?.y ?? box.bottom + 4;
  const above = (at?.y ?? box.top - 4) - height;
  const top = below + height <= innerHeight - 8 || above < 8 ? Math.min(below, innerHeight - height - 8) : above;
  menu.style.left = `${Math.max(8, left)}px`;
  menu.style.top = `${Math.max(8, top)}px`;
}
