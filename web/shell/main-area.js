/** What the main area shows while no session is open, and what the server has to say about its start. */

import { h, icon, part } from '../shared/dom.js';

/**
 * @typedef {import('./workspace.js').Workspace} Workspace
 * @typedef {import('../types/wire.js').AgentSummary} AgentSummary
 */

/** @param {{ add: () => void, newSession: () => void }} actions */
export function startMainArea({ add, newSession }) {
  const place = part('empty-main', HTMLElement);
  const notices = part('notices', HTMLElement);
  /** @type {Set<string>} */
  const dismissed = new Set();
  let shown = '';
  let shownNotices = '';

  /** @param {Workspace} workspace */
  const render = (workspace) => {
    renderNotices(workspace);
    if (workspace.projects === null) return;
    const first = workspace.projects.length === 0;
    const state = JSON.stringify([first, workspace.agents.map(({ name, found, install }) => [name, found, install])]);
    if (state === shown) return;
    shown = state;
    place.replaceChildren(
      h('h2', {}, first ? 'Start with a project' : 'No session open'),
      h(
        'p',
        { class: 'hint' },
        first
          ? 'A project is a folder you work in. The conversations you have there with your agents are kept under it.'
          : 'Open one in the sidebar, or start a new one.',
      ),
      first
        ? h('button', { class: 'button primary', type: 'button', onclick: add }, 'Add project')
        : h('button', { class: 'button primary', type: 'button', onclick: newSession }, 'New session'),
      agentList(workspace.agents),
    );
  };

  /** @param {Workspace} workspace */
  const renderNotices = ({ notices: texts, bootId, stale }) => {
    const update = 'Liminal Builder was updated while this page was open.';
    const all = stale ? [...texts, update] : texts;
    const open = all.filter((text) => !dismissed.has(bootId + text));
    // Built again only when they change, or a button would vanish from under the focus.
    const state = JSON.stringify([bootId, open]);
    if (state === shownNotices) return;
    shownNotices = state;
    notices.replaceChildren(
      ...open.map((text) => {
        const dismiss = () => {
          dismissed.add(bootId + text);
          notice.remove();
        };
        const notice = h(
          'div',
          { class: 'notice' },
          h('p', {}, h('span', { class: 'notice-word' }, 'Note: '), text),
          text === update &&
            h('button', { class: 'button', type: 'button', onclick: () => location.reload() }, 'Reload'),
          h(
            'button',
            { class: 'icon-button', type: 'button', 'aria-label': 'Dismiss', onclick: dismiss },
            icon('close'),
          ),
        );
        return notice;
      }),
    );
  };

  return {
    render,
    /** Whether no session is in view. @param {boolean} empty */
    show: (empty) => {
      place.hidden = !empty;
    },
  };
}

/** @param {AgentSummary[]} agents */
function agentList(agents) {
  return h(
    'ul',
    { class: 'agents', 'aria-label': 'Agents on this machine' },
    ...agents.map(({ badge, name, found, install }) =>
      h(
        'li',
        {},
        h('span', { class: 'badge', 'aria-hidden': 'true' }, badge),
        h('span', {}, name),
        h('span', { class: 'agent-state' }, found ? 'found' : 'not installed'),
        install && h('div', { class: 'agent-install' }, h('code', {}, install), copyButton(install)),
      ),
    ),
  );
}

/** @param {string} text */
function copyButton(text) {
  const copy = async () => {
    const copied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    button.title = copied ? 'Copied' : 'Copying is not allowed here';
    button.setAttribute('aria-label', button.title);
  };
  const label = 'Copy the command';
  const button = h(
    'button',
    { class: 'icon-button', type: 'button', 'aria-label': label, title: label, onclick: copy },
    icon('copy'),
  );
  return button;
}
