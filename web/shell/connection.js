/** The connection status at the bottom of the sidebar. */

import { h } from '../shared/dom.js';

/** Delay before a lost connection is shown; a restart of the server takes less time. */
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
  const render = (up, text, offerRetry = false) => {
    // Rendered only after a change, so that screen readers announce it once and the button keeps the focus.
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
      render(true, 'Server connected');
      return;
    }
    const slow = connection.retryInMs >= 2000;
    const text = connection.other ? 'Another program answers' : 'Reconnecting…';
    const down = () => render(false, text, slow);
    if (slow || connection.other) down();
    else timer ??= setTimeout(down, QUIET_MS);
  };

  render(true, 'Connecting…');
  return { show };
}
