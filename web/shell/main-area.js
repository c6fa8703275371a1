/** The main area while no session is in view, and the notices the server sends at its start. */

import { h, part } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { isMissing, noteOf, offered } from './agent-choices.js';

/**
 * @typedef {import('./workspace.js').Workspace} Workspace
 * @typedef {import('./workspace.js').Agent} Agent
 */

/** @param {{ add: () => void, newSession: () => void, install: (cliType: string) => void }} actions */
export function startMainArea({ add, newSession, install }) {
  const place = part('empty-main', HTMLElement);
  const notices = part('notices', HTMLElement);
  /** @type {Set<string>} */
  const dismissed = new Set();
  let shown = '';
  let shownNotices = '';
  const warning = h('div', { class: 'notice', role: 'alert' });

  /** @param {Workspace} workspace */
  const render = (workspace) => {
    renderNotices(workspace);
    if (workspace.projects === null) return;
    const first = workspace.projects.length === 0;
    const { first: agents, more } = offered(workspace.agents);
    const state = JSON.stringify([first, agents.map((agent) => [agent.cliType, noteOf(agent)]), more.length]);
    if (state === shown) return;
    shown = state;
    place.replaceChildren(
      h('h2', {}, first ? 'Start with a project' : 'No session open'),
      h(
        'p',
        { class: 'hint' },
        first
          ? 'A project is a folder you work in. Its sessions with agents are listed below it.'
          : 'Open one in the sidebar, or start a new one.',
      ),
      first
        ? h('button', { class: 'button primary', type: 'button', onclick: add }, 'Add project')
        : h('button', { class: 'button primary', type: 'button', onclick: newSession }, 'New session'),
      agentList(agents, install),
      ...(more.length === 0
        ? []
        : [h('p', { class: 'agents-more' }, `${more.length} more can be installed under New session, More agents…`)]),
    );
  };

  /** @param {Workspace} workspace */
  const renderNotices = ({ notices: texts, bootId, stale }) => {
    const update = 'Liminal Builder was updated while this page was open.';
    const all = stale ? [...texts, update] : texts;
    const open = all.filter((text) => !dismissed.has(bootId + text));
    // Rendered only after a change, because rendering removes the focused button.
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
    /** Shows a warning above everything else, or removes it. @param {string | null} text */
    warn: (text) => {
      if (text === null) return warning.remove();
      if (warning.isConnected) return;
      warning.replaceChildren(h('p', {}, text));
      notices.before(warning);
    },
    /** Shows the main area if no session is in view, and hides it otherwise. @param {boolean} empty */
    show: (empty) => {
      place.hidden = !empty;
    },
  };
}

/** @param {Agent[]} agents @param {(cliType: string) => void} install */
function agentList(agents, install) {
  return h(
    'ul',
    { class: 'agents', 'aria-label': 'Agents on this machine' },
    ...agents.map((agent) =>
      h(
        'li',
        {},
        h('span', { class: 'badge', 'aria-hidden': 'true' }, agent.badge),
        h('span', {}, agent.name),
        isMissing(agent)
          ? h(
              'button',
              {
                class: 'link-button',
                type: 'button',
                'aria-label': `Install ${agent.name}`,
                onclick: () => install(agent.cliType),
              },
              'Install…',
            )
          : h('span', { class: 'agent-state' }, noteOf(agent)?.toLowerCase() ?? 'ready'),
      ),
    ),
  );
}
