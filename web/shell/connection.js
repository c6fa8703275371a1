/** The quiet line at the foot of the sidebar that says whether the server is there. */

import { h } from '../shared/dom.js';

/** A restart takes less than this, and is not worth a word. */
const QUIET_MS = 400;

/**
 * @param {HTMLElement} place
 * @param {() => void} retryNow
 */
export function startConnection(place, retryNow) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  let shown = '';

  /** @param {boolean} up @param {string} text @param {boolean} [offerRetry] */
  const write = (up, text, offerRetry = false) => {
    // Said once, and the button not replaced under the focus.
    const state = JSON.stringify([up, text, offerRetry]);
    if (state === shown) return;
    shown = state;
    place.replaceChildren(
      h('span', { class: up ? 'connection-dot up' : 'connection-dot' }),
      h('span', {}, text),
      offerRetry
        ? h('button', { class: 'link-button', type: 'button', 'aria-label': 'Retry now', onclick: retryNow }, 'Retry')
        : '',
    );
  };

  /** @param {import('./socket.js').Connection} connection */
  const show = (connection) => {
    if (connection.state === 'up') {
      clearTimeout(timer);
      timer = undefined;
      write(true, 'Server connected');
      return;
    }
    const long = connection.retryInMs >= 2000;
    const down = () => write(false, 'Reconnecting…', long);
    if (long) down();
    else timer ??= setTimeout(down, QUIET_MS);
  };

  write(true, 'Connecting…');
  return { show };
}
