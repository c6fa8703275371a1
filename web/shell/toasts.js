/** Short messages that leave by themselves, with one action at most. Only the newest are shown. */

import { h, icon } from '../shared/dom.js';

const STAY_MS = 8000;
/** More would hide what they are about; older ones can still be undone with the key. */
const SHOWN_MAX = 3;

/** @param {HTMLElement} place */
export function startToasts(place) {
  /** What Ctrl+Z does: the action of the newest toast that undoes something. @type {(() => void)[]} */
  const actions = [];

  const fit = () => {
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
    const leave = () => {
      clearTimeout(timer);
      toast.remove();
      fit();
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
    fit();
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
