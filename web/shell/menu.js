/**
 * A drop-down or context menu, operated with the mouse or the arrow keys and closed with Escape or a click outside.
 *
 * @typedef {object} MenuItem
 * @property {string} label
 * @property {string} [note]  secondary text beside the label
 * @property {string} [badge]
 * @property {boolean} [disabled]  focusable, but does nothing
 * @property {boolean} [checked]  makes the item a checkbox
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
 * @param {{ x: number, y: number }} [at]  pointer position, for a context menu
 */
export function openMenu(anchor, label, items, at) {
  closeOpen?.();
  const returnTo = document.activeElement instanceof HTMLElement ? document.activeElement : anchor;
  const buttons = items.map((item) => menuItem(item, () => choose(item)));
  const menu = h('div', { class: 'menu', role: 'menu', 'aria-label': label, popover: 'manual' }, ...buttons);

  /** @param {boolean} restoreFocus  whether to restore the focus */
  const close = (restoreFocus) => {
    if (closeOpen !== dismiss) return;
    closeOpen = null;
    removeEventListener('pointerdown', onOutsideEvent, true);
    removeEventListener('blur', onWindowBlur);
    anchor.setAttribute('aria-expanded', 'false');
    menu.remove();
    if (restoreFocus) (returnTo.isConnected ? returnTo : anchor).focus();
  };
  const dismiss = () => close(false);
  /** @param {MenuItem} item */
  const choose = (item) => {
    if (item.disabled) return;
    close(true);
    item.run?.();
  };
  /** @param {Event} event */
  const onOutsideEvent = (event) => {
    if (event.target instanceof Node && menu.contains(event.target)) return;
    // A click on the anchor would open the menu again, so it is suppressed; a right click is no click.
    const presses = event instanceof PointerEvent && event.button === 0;
    if (presses && event.target instanceof Node && anchor.contains(event.target)) {
      event.preventDefault();
      anchor.addEventListener('click', (click) => click.stopImmediatePropagation(), { once: true, capture: true });
    }
    close(anchor.contains(/** @type {Node} */ (event.target)));
  };
  // The window loses focus when it moves into the frame of a session.
  const onWindowBlur = () => dismiss();

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

  closeOpen = dismiss;
  anchor.setAttribute('aria-expanded', 'true');
  // A popover is in the top layer wherever it is attached; inside a landmark, screen readers find it.
  (anchor.closest('aside, main') ?? document.body).append(menu);
  menu.showPopover();
  positionMenu(menu, anchor, at);
  buttons.find((button) => button.getAttribute('aria-disabled') !== 'true')?.focus();
  addEventListener('pointerdown', onOutsideEvent, true);
  addEventListener('blur', onWindowBlur);
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
function positionMenu(menu, anchor, at) {
  const box = anchor.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const left = Math.min(at?.x ?? box.left, innerWidth - width - 8);
  const below = at?.y ?? box.bottom + 4;
  const above = (at?.y ?? box.top - 4) - height;
  const top = below + height <= innerHeight - 8 || above < 8 ? Math.min(below, innerHeight - height - 8) : above;
  menu.style.left = `${Math.max(8, left)}px`;
  menu.style.top = `${Math.max(8, top)}px`;
}
