/** The agents that run, or should: one quiet line each at the foot of the sidebar. */

import { h } from '../shared/dom.js';

/** @typedef {import('./workspace.js').Agent} Agent */

const WORDS = {
  idle: '',
  starting: 'starting…',
  connected: 'connected',
  reconnecting: 'reconnecting…',
  disconnected: 'disconnected',
};

/** @param {HTMLElement} place @param {(cliType: string) => void} reconnect */
export function startAgentLines(place, reconnect) {
  let shown = '';

  /** @param {Agent[]} agents @param {boolean} known  whether the server is there to tell how they are */
  const render = (agents, known) => {
    const used = known ? agents.filter(({ status }) => status !== 'idle') : [];
    const state = JSON.stringify(used.map(({ cliType, name, status, reason }) => [cliType, name, status, reason]));
    // Built again only when they change, or a button would vanish from under the focus.
    if (state === shown) return;
    shown = state;
    const hadFocus = place.contains(document.activeElement);
    place.replaceChildren(...used.map((agent) => line(agent, reconnect)));
    if (hadFocus) place.querySelector('button')?.focus();
    place.hidden = used.length === 0;
  };
  return { render };
}

/** @param {Agent} agent @param {(cliType: string) => void} reconnect */
function line({ cliType, name, status, reason }, reconnect) {
  return h(
    'li',
    { class: 'agent-line', 'data-agent': cliType, 'data-status': status, title: reason },
    h('span', { class: 'agent-dot', 'aria-hidden': 'true' }),
    h('span', { class: 'agent-line-name' }, name),
    h('span', { class: 'agent-line-state' }, WORDS[status]),
    status === 'disconnected' &&
      h(
        'button',
        { class: 'link-button', type: 'button', 'aria-label': `Reconnect ${name}`, onclick: () => reconnect(cliType) },
        'Reconnect',
      ),
  );
}
