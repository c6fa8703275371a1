/** Toasts: short messages that disappear after a few seconds, with at most one action. Only the newest are shown. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';

const STAY_MS = 8000;
/** Maximum toasts shown. The actions of hidden ones are still available with Ctrl+Z. */
const SHOWN_MAX = 3;

/** @param {HTMLElement} place */
export function startToasts(place) {
  /** Undo actions of the current toasts, oldest first; Ctrl+Z runs the last one. @type {(() => void)[]} */
  const actions = [];

  const hideOldToasts = () => {
    const all = [...place.children];
    for (const [at, toast] of all.entries()) {
      const old = at < all.length - SHOWN_MAX;
      /** @type {HTMLElement} */ (toast).hidden = old && !toast.contains(document.activeElement);
    }
  };

  /**
   * @param {string} text
   * @param {{ label: string, run: () => void, undoes?: boolean }} [action]
   */
  const show = (text, action) => {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const dismiss = () => {
      clearTimeout(timer);
      toast.remove();
      hideOldToasts();
      if (actions.includes(act)) actions.splice(actions.indexOf(act), 1);
    };
    const act = () => {
      dismiss();
      action?.run();
    };
    const toast = h(
      'div',
      { class: 'toast' },
      h('p', {}, text),
      action && h('button', { class: 'link-button', type: 'button', onclick: act }, action.label),
      h('button', { class: 'icon-button', type: 'button', 'aria-label': 'Dismiss', onclick: dismiss }, icon('close')),
    );
    const stopTimer = () => clearTimeout(timer);
    const startTimer = () => {
      clearTimeout(timer);
      timer = setTimeout(dismiss, STAY_MS);
    };
    // A toast stays while the pointer is over it or the focus is in it.
    toast.addEventListener('pointerenter', stopTimer);
    toast.addEventListener('pointerleave', startTimer);
    toast.addEventListener('focusin', stopTimer);
    toast.addEventListener('focusout', startTimer);
    place.append(toast);
    hideOldToasts();
    if (action?.undoes) actions.push(act);
    startTimer();
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
