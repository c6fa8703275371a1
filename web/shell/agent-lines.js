/**
 * The agents in use, one line each at the bottom of the sidebar. A click opens details: the version, and the memory use
 * of the agent with all its child processes. Memory use is requested only while the details are open.
 */

import { h } from '../shared/dom.js';

/**
 * @typedef {import('./workspace.js').Agent} Agent
 * @typedef {import('../types/wire.js').AgentMemory} AgentMemory
 *
 * @typedef {object} Dependencies
 * @property {(cliType: string) => void} reconnect
 * @property {() => Promise<AgentMemory[]>} askMemory  requests the memory use of the running agents
 */

const STATE_LABELS = {
  idle: '',
  starting: 'starting…',
  connected: 'connected',
  reconnecting: 'reconnecting…',
  disconnected: 'disconnected',
};
const ASK_AGAIN_MS = 2000;

/** @param {HTMLElement} place @param {Dependencies} needs */
export function startAgentLines(place, { reconnect, askMemory }) {
  let shown = '';
  /** @type {(() => void) | null} */
  let close = null;

  /** @param {Agent} agent @param {HTMLElement} button */
  const toggle = (agent, button) => {
    const wasOpen = button.getAttribute('aria-expanded') === 'true';
    close?.();
    if (!wasOpen) close = openDetails(agent, button);
  };

  /** @param {Agent} agent @param {HTMLElement} anchor @returns {() => void} */
  const openDetails = ({ cliType, name, version, status, reason }, anchor) => {
    const memory = h('dd', {}, '…');
    const restart = () => {
      dismiss();
      reconnect(cliType);
    };
    const panel = h(
      'section',
      { class: 'menu agent-details', 'aria-label': `About ${name}`, popover: 'manual' },
      h(
        'dl',
        {},
        h('dt', {}, 'State'),
        h('dd', {}, STATE_LABELS[status]),
        version && h('dt', {}, 'Version'),
        version && h('dd', {}, version),
        h('dt', {}, 'Memory'),
        memory,
      ),
      reason && h('p', { class: 'agent-details-reason' }, reason),
      h(
        'button',
        { class: 'button', type: 'button', onclick: restart },
        status === 'connected' ? 'Restart' : 'Reconnect',
      ),
    );

    const ask = async () => {
      const all = await askMemory().catch(() => []);
      const own = all.find((one) => one.cliType === cliType);
      memory.textContent = own ? memoryText(own) : 'Not running';
    };
    /** @param {Event} event */
    const outside = (event) => {
      const inside = event.target instanceof Node && (panel.contains(event.target) || anchor.contains(event.target));
      if (!inside) dismiss();
    };
    /** @param {KeyboardEvent} event */
    const onKey = (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      dismiss();
      anchor.focus();
    };
    const dismiss = () => {
      clearInterval(clock);
      removeEventListener('pointerdown', outside, true);
      removeEventListener('blur', dismiss);
      anchor.setAttribute('aria-expanded', 'false');
      panel.remove();
      close = null;
    };
    const clock = setInterval(ask, ASK_AGAIN_MS);
    addEventListener('pointerdown', outside, true);
    addEventListener('blur', dismiss);
    panel.addEventListener('keydown', onKey);
    anchor.setAttribute('aria-expanded', 'true');
    place.after(panel);
    panel.showPopover();
    const box = anchor.getBoundingClientRect();
    panel.style.left = `${Math.max(8, Math.min(box.left, innerWidth - panel.offsetWidth - 8))}px`;
    panel.style.top = `${Math.max(8, box.top - panel.offsetHeight - 4)}px`;
    panel.querySelector('button')?.focus();
    ask();
    return dismiss;
  };

  /** @param {Agent} agent */
  const line = (agent) => {
    const { cliType, name, status, reason } = agent;
    const details = h(
      'button',
      { class: 'agent-line-name', type: 'button', 'aria-expanded': 'false', title: 'Version and memory' },
      name,
    );
    details.addEventListener('click', () => toggle(agent, details));
    return h(
      'li',
      { class: 'agent-line', 'data-agent': cliType, 'data-status': status, title: reason },
      h('span', { class: 'agent-dot', 'aria-hidden': 'true' }),
      details,
      h('span', { class: 'agent-line-state' }, STATE_LABELS[status]),
      status === 'disconnected' &&
        h(
          'button',
          {
            class: 'link-button',
            type: 'button',
            'aria-label': `Reconnect ${name}`,
            onclick: () => reconnect(cliType),
          },
          'Reconnect',
        ),
    );
  };

  /** @param {Agent[]} agents @param {boolean} known  whether the connection is up, so that the states are current */
  const render = (agents, known) => {
    const used = known ? agents.filter(({ status }) => status !== 'idle') : [];
    const state = JSON.stringify(
      used.map(({ cliType, name, status, reason, version }) => [cliType, name, status, reason, version]),
    );
    // Rendered only after a change, because rendering removes the focused button.
    if (state === shown) return;
    shown = state;
    close?.();
    const hadFocus = place.contains(document.activeElement);
    place.replaceChildren(...used.map(line));
    if (hadFocus) place.querySelector('button')?.focus();
    place.hidden = used.length === 0;
  };
  return { render };
}

/** @param {AgentMemory} memory */
export function memoryText({ bytes, processes }) {
  const size = bytes === undefined ? 'not known' : `${Math.round(bytes / 1024 / 1024).toLocaleString('en')} MiB`;
  return `${size} in ${processes} ${processes === 1 ? 'process' : 'processes'}`;
}
