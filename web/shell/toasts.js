/** Short messages that leave by themselves, with one action at most. */

import { h, icon } from '../shared/dom.js';

const STAY_MS = 8000;

/** @param {HTMLElement} place */
export function startToasts(place) {
  /** What Ctrl+Z does: the action of the newest toast that undoes something. @type {(() => void)[]} */
  const actions = [];

  /**
   * @param {string} text
   * @param {{ label: string, run: () => void, undoes?: boolean }} [action]
   */
  const show = (text, action) => {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const leave = () => {
      clearTimeout(timer);
      toast.remove();
      if (actions.includes(act)) actions.splice(actions.indexOf(act), 1);
    };
    const act = () => {
      leave();
      action?.run();
    };
    const toast = h(
      'div',
      { class: 'toast' },
      h('p', {}, text),
      action && h('button', { class: 'link-button', type: 'button', onclick: act }, action.label),
      h('button', { class: 'icon-button', type: 'button', 'aria-label': 'Dismiss', onclick: leave }, icon('close')),
    );
    const stay = () => clearTimeout(timer);
    const count = () => {
      clearTimeout(timer);
      timer = setTimeout(leave, STAY_MS);
    };
    // Nothing may vanish under a pointer or from under the focus.
    toast.addEventListener('pointerenter', stay);
    toast.addEventListener('pointerleave', count);
    toast.addEventListener('focusin', stay);
    toast.addEventListener('focusout', count);
    place.append(toast);
    if (action?.undoes) actions.push(act);
    count();
  };

  addEventListener('keydown', (event) => {
    const undo = event.key === 'z' && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    const typing = event.target instanceof HTMLElement && event.target.matches('input, textarea, [contenteditable]');
    if (!undo || typing || actions.length === 0) return;
    event.preventDefault();
    actions.at(-1)?.();
  });
  return { show };
}

/** @typedef {ReturnType<typeof startToasts>} Toasts */
