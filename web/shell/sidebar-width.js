/** The divider between sidebar and main area, moved with the pointer or the arrow keys. Its position is stored. */

import { recall, remember } from '../shared/storage.js';

const KEY = 'liminal:sidebar-width';
const MIN = 200;
const MAX = 480;
const DEFAULT = 280;
const STEP = 16;

/** @param {HTMLElement} divider */
export function startSidebarWidth(divider) {
  let width = recall(KEY, (value) => (typeof value === 'number' ? value : undefined), DEFAULT);

  /** @param {number} wanted */
  const show = (wanted) => {
    width = Math.round(Math.min(MAX, Math.max(MIN, wanted)));
    document.documentElement.style.setProperty('--sidebar-width', `${width}px`);
    divider.setAttribute('aria-valuenow', String(width));
  };
  /** @param {number} wanted */
  const choose = (wanted) => {
    show(wanted);
    remember(KEY, width);
  };

  divider.addEventListener('pointerdown', (event) => {
    event.preventDefault();
    divider.setPointerCapture(event.pointerId);
    divider.classList.add('dragging');
    const grip = event.clientX - width;
    /** @param {PointerEvent} moved */
    const drag = (moved) => show(moved.clientX - grip);
    divider.addEventListener('pointermove', drag);
    divider.addEventListener(
      'lostpointercapture',
      () => {
        divider.removeEventListener('pointermove', drag);
        divider.classList.remove('dragging');
        choose(width);
      },
      { once: true },
    );
  });
  divider.addEventListener('dblclick', () => choose(DEFAULT));
  divider.addEventListener('keydown', (event) => {
    const to = { ArrowLeft: width - STEP, ArrowRight: width + STEP, Home: MIN, End: MAX }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  });
  show(width);
}
