/** The header of a session: its title, its agent and the state of that agent. */

import { h } from '../shared/dom.js';

/**
 * @typedef {import('../types/wire.js').AgentState} AgentState
 *
 * @typedef {object} Shown
 * @property {string} title
 * @property {string} agentName
 * @property {string} projectName
 * @property {AgentState} status
 * @property {string} [reason]
 * @property {boolean} online
 */

/** @type {Record<AgentState, string>} */
const STATE_LABELS = {
  idle: 'asleep',
  starting: 'starting',
  connected: 'connected',
  reconnecting: 'reconnecting',
  disconnected: 'disconnected',
};

/** @param {HTMLElement} place @param {() => void} reconnect */
export function startHead(place, reconnect) {
  const title = h('h1', { class: 'session-title' });
  const agent = h('span', { class: 'session-agent' });
  const dot = h('span', { class: 'dot', 'aria-hidden': 'true' });
  const word = h('span', { class: 'status-word' });
  const status = h('span', { class: 'agent-status', role: 'status' }, dot, word);
  const button = h('button', { class: 'button small', type: 'button', onclick: reconnect }, 'Reconnect');
  const reason = h('p', { class: 'agent-reason' });
  place.append(h('div', { class: 'head-line' }, title, agent, status, button), reason);

  return {
    /** @param {Shown} shown */
    show: ({ title: text, agentName, projectName, status: state, reason: why, online }) => {
      title.textContent = text;
      title.title = text;
      agent.textContent = `${agentName} · ${projectName}`;
      const label = online ? STATE_LABELS[state] : 'server unreachable';
      if (word.textContent !== label) word.textContent = label;
      status.dataset.status = online ? state : 'offline';
      const lost = online && state === 'disconnected';
      button.hidden = !lost;
      reason.hidden = !lost || !why;
      reason.textContent = why ?? '';
    },
  };
}
