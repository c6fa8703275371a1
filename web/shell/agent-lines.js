/**
 * The agents that run, or should: one quiet line each at the foot of the sidebar. A press on one tells more of it: its
 * version, and what it and everything it started take. That is asked for only while it is open.
 */

import { h } from '../shared/dom.js';

/**
 * @typedef {import('./workspace.js').Agent} Agent
 * @typedef {import('../types/wire.js').AgentMemory} AgentMemory
 *
 * @typedef {object} Needs
 * @property {(cliType: string) => void} reconnect
 * @property {() => Promise<AgentMemory[]>} askMemory  of the agents that run
 */

const WORDS = {
  idle: '',
  starting: 'starting…',
  connected: 'connected',
  reconnecting: 'reconnecting…',
  disconnected: 'disconnected',
};
const ASK_AGAIN_MS = 2000;

/** @param {HTMLElement} place @param {Needs} needs */
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
      leave();
      reconnect(cliType);
    };
    const panel = h(
      'section',
      { class: 'menu agent-details', 'aria-label': `About ${name}`, popover: 'manual' },
      h(
        'dl',
        {},
        h('dt', {}, 'State'),
        h('dd', {}, WORDS[status]),
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
      memory.textContent = own ? inWords(own) : 'it does not run';
    };
    /** @param {Event} event */
    const outside = (event) => {
      const inside = event.target instanceof Node && (panel.contains(event.target) || anchor.contains(event.target));
      if (!inside) leave();
    };
    /** @param {KeyboardEvent} event */
    const onKey = (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      leave();
      anchor.focus();
    };
    const leave = () => {
      clearInterval(clock);
      removeEventListener('pointerdown', outside, true);
      removeEventListener('blur', leave);
      anchor.setAttribute('aria-expanded', 'false');
      panel.remove();
      close = null;
    };
    const clock = setInterval(ask, ASK_AGAIN_MS);
    addEventListener('pointerdown', outside, true);
    addEventListener('blur', leave);
    panel.addEventListener('keydown', onKey);
    anchor.setAttribute('aria-expanded', 'true');
    place.after(panel);
    panel.showPopover();
    const box = anchor.getBoundingClientRect();
    panel.style.left = `${Math.max(8, Math.min(box.left, innerWidth - panel.offsetWidth - 8))}px`;
    panel.style.top = `${Math.max(8, box.top - panel.offsetHeight - 4)}px`;
    panel.querySelector('button')?.focus();
    ask();
    return leave;
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
      h('span', { class: 'agent-line-state' }, WORDS[status]),
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

  /** @param {Agent[]} agents @param {boolean} known  whether the server is there to tell how they are */
  const render = (agents, known) => {
    const used = known ? agents.filter(({ status }) => status !== 'idle') : [];
    const state = JSON.stringify(
      used.map(({ cliType, name, status, reason, version }) => [cliType, name, status, reason, version]),
    );
    // Built again only when they change, or a button would vanish from under the focus.
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
export function inWords({ bytes, processes }) {
  const size = bytes === undefined ? 'not known' : `${Math.round(bytes / 1024 / 1024).toLocaleString('en')} MiB`;
  return `${size} in ${processes} ${processes === 1 ? 'process' : 'processes'}`;
}
