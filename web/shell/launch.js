/**
 * Starting a session: the choice of an agent, then the progress in the main area. Several sessions can start at once.
 * The main area shows the newest start; the failure of another one is shown as a toast.
 *
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('./workspace.js').Agent} Agent
 *
 * @typedef {object} Dependencies
 * @property {import('./socket.js').Socket} socket
 * @property {import('./toasts.js').Toasts} toasts
 * @property {import('./palette.js').Palette} palette
 * @property {() => Agent[]} agents
 * @property {() => Promise<unknown>} askAgents  requests the current list of agents
 * @property {(text: string) => void} copy
 * @property {(sessionId: string, inView: boolean) => void} onCreated
 * @property {() => void} onShown  called when the main area shows a start
 * @property {() => void} onHidden
 */

import { h } from '../shared/dom.js';
import { signInView } from '../shared/sign-in.js';
import { isMissing, noteOf, offered } from './agent-choices.js';
import { startInstall } from './install.js';
import { openMenu } from './menu.js';
import { RequestError } from './socket.js';

/** A failure message with more lines than this contains output of the agent, which is shown separately. */
const REASON_LINES = 2;

/** @param {HTMLElement} place @param {Dependencies} needs */
export function startLaunch(place, { socket, toasts, palette, agents, askAgents, copy, onCreated, onShown, onHidden }) {
  /** The start shown in the main area. @type {symbol | null} */
  let inView = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let clock;

  const agentOf = (/** @type {string} */ cliType) => agents().find((agent) => agent.cliType === cliType);
  const install = startInstall({ socket, toasts, copy, agentOf });

  /** @param {Project} project @param {HTMLElement} anchor */
  const choose = (project, anchor) => {
    // Refreshes the agents for the next menu; an open menu does not change.
    askAgents();
    openMenu(anchor, `New session in ${project.name}`, choices(project));
  };

  /**
   * Menu items, one for each agent outside "More agents…".
   * @param {Project} project
   * @param {string} [prefix]  prefix of the labels, for a menu with other items
   * @returns {import('./menu.js').MenuItem[]}
   */
  const choices = (project, prefix = '') => {
    const { first, more } = offered(agents());
    const items = first.map((agent) => ({
      label: prefix + agent.name,
      badge: agent.badge,
      disabled: !agent.found && !isMissing(agent),
      note: noteOf(agent),
      run: () => begin(project, agent.cliType),
    }));
    const label = prefix ? `${prefix}another agent…` : 'More agents…';
    return more.length === 0 ? items : [...items, { label, run: () => chooseMore(project) }];
  };

  /** Shows all agents in the palette. @param {Project} project */
  const chooseAny = (project) => {
    askAgents();
    const { first, more } = offered(agents());
    palette.open(`New session in ${project.name}: with which agent?`, [
      ...first.map((agent) => choice(project, agent)),
      ...more.map((agent) => choice(project, agent)),
      refresh(project),
    ]);
  };

  /** @param {Project} project */
  const chooseMore = (project) => {
    const { more } = offered(agents());
    palette.open(`More agents for ${project.name}`, [...more.map((agent) => choice(project, agent)), refresh(project)]);
  };

  /** @param {Project} project @param {Agent} agent @returns {import('./palette.js').Choice} */
  const choice = (project, agent) => ({
    label: agent.name,
    badge: agent.badge,
    note: agent.more ? agent.about : noteOf(agent),
    run: () => {
      if (agent.found || isMissing(agent)) begin(project, agent.cliType);
      else toasts.show(`${agent.name} cannot be started: ${noteOf(agent)}.`);
    },
  });

  /** @param {Project} project @returns {import('./palette.js').Choice} */
  const refresh = (project) => ({
    label: 'Refresh this list',
    note: 'from the public ACP registry',
    run: async () => {
      toasts.show('Fetching the list of agents…');
      try {
        const answer = await socket.request({ type: 'agent:refresh' });
        if (answer.type !== 'agent:refreshed') return;
        toasts.show(`The list has ${answer.agents} agents now.`);
        // The broadcast of the new list may arrive after the response.
        await askAgents();
        chooseMore(project);
      } catch (error) {
        toasts.show(error instanceof Error ? error.message : String(error));
      }
    },
  });

  /** Starts a session, after offering to install a missing agent. @param {Project} project @param {string} cliType */
  const begin = (project, cliType) => {
    const agent = agentOf(cliType);
    if (agent && isMissing(agent)) offerInstall(agent, project);
    else start(project, cliType);
  };

  /** @param {Agent} agent @param {Project | null} project  project of the session to start after the installation */
  const offerInstall = (agent, project) => {
    const launch = Symbol(agent.cliType);
    const view = {
      show: (/** @type {HTMLElement[]} */ ...content) => show(launch, ...content),
      isShown: () => inView === launch,
      hide: () => hide(),
    };
    const then = project
      ? {
          start: () => start(project, agent.cliType),
          place: `The session in ${project.name} starts after the installation.`,
        }
      : { place: 'After the installation it can be chosen for a new session.' };
    install.offer(agent, view, then);
  };

  /** @param {Project} project @param {string} cliType */
  const start = async (project, cliType) => {
    const launch = Symbol(cliType);
    const name = agentOf(cliType)?.name ?? cliType;
    let cancelled = false;
    showStarting(launch, name, project, () => {
      cancelled = true;
      hide();
    });
    try {
      const answer = await socket.request({ type: 'session:create', projectId: project.id, cliType });
      if (answer.type !== 'session:created') return;
      if (cancelled) {
        // The user has cancelled the start, so the empty session is deleted.
        await socket.request({ type: 'session:delete', sessionId: answer.sessionId });
        return;
      }
      const seen = inView === launch;
      if (seen) hide();
      onCreated(answer.sessionId, seen);
    } catch (error) {
      if (cancelled) return;
      const message = error instanceof Error ? error.message : String(error);
      const again = () => start(project, cliType);
      const needsSignIn = error instanceof RequestError && error.code === 'SIGN_IN_NEEDED';
      if (needsSignIn) await askAgents();
      if (cancelled) return;
      if (inView === launch && needsSignIn) showSignIn(launch, cliType, project, again);
      else if (inView === launch) showFailed(launch, message, project, cliType, again);
      else toasts.show(message, { label: 'Retry', run: () => start(project, cliType) });
    }
  };

  /** @param {symbol} launch @param {string} name @param {Project} project @param {() => void} cancel */
  const showStarting = (launch, name, project, cancel) => {
    const since = Date.now();
    const elapsed = h('span', { class: 'launch-time' });
    show(
      launch,
      h(
        'div',
        { class: 'launch-line', role: 'status' },
        h('span', { class: 'working' }),
        h('h2', {}, `Starting ${name}…`),
      ),
      h('p', { class: 'hint' }, `A new session in ${project.name}. `, elapsed),
      h('button', { class: 'button', type: 'button', onclick: cancel }, 'Cancel'),
    );
    clock = setInterval(() => {
      const seconds = Math.round((Date.now() - since) / 1000);
      if (seconds >= 3) elapsed.textContent = `${seconds} s`;
    }, 1000);
  };

  /** @param {symbol} launch @param {string} message @param {Project} project @param {string} cliType @param {() => void} retry */
  const showFailed = (launch, message, project, cliType, retry) => {
    const again = h('button', { class: 'button primary', type: 'button', onclick: retry }, 'Retry');
    const agent = agentOf(cliType);
    const lines = message.split('\n');
    const output = lines.length > REASON_LINES ? lines.slice(1).join('\n') : '';
    const reinstall = () => agent && offerInstall({ ...agent, found: false }, project);
    show(
      launch,
      h('h2', {}, 'Could not start the session'),
      ...(agent?.node ? [h('p', { class: 'install-warning' }, agent.node)] : []),
      h('p', { class: 'field-error', role: 'alert' }, output ? lines[0] : message),
      ...(output
        ? [h('pre', { class: 'install-output', tabindex: '0', 'aria-label': 'Output of the agent' }, output)]
        : []),
      h('p', { class: 'hint' }, `In ${project.name}, ${project.path}`),
      h(
        'div',
        { class: 'launch-actions' },
        again,
        agent?.install !== undefined &&
          h('button', { class: 'button', type: 'button', onclick: reinstall }, 'Reinstall…'),
        h('button', { class: 'button', type: 'button', onclick: hide }, 'Close'),
      ),
    );
    again.focus();
  };

  /** @param {symbol} launch @param {string} cliType @param {Project} project @param {() => void} retry */
  const showSignIn = (launch, cliType, project, retry) => {
    const agent = agentOf(cliType);
    const name = agent?.name ?? cliType;
    const signInForm = signInView({ cliType, name }, agent?.signIn ?? [], {
      request: (message) => socket.request({ ...message, cliType }),
      copy,
      onSignedIn: () => inView === launch && retry(),
    });
    show(
      launch,
      h('h2', {}, `${name} wants you to sign in first`),
      h('p', { class: 'hint', role: 'alert' }, `The session in ${project.name} starts after the sign-in.`),
      signInForm,
      h(
        'div',
        { class: 'launch-actions' },
        h('button', { class: 'button', type: 'button', onclick: retry }, 'Retry'),
        h('button', { class: 'button', type: 'button', onclick: hide }, 'Close'),
      ),
    );
    place.querySelector('button')?.focus();
  };

  /** @param {symbol} launch @param {...(HTMLElement)} content */
  const show = (launch, ...content) => {
    clearInterval(clock);
    inView = launch;
    place.replaceChildren(...content);
    place.hidden = false;
    onShown();
  };

  const leave = () => {
    clearInterval(clock);
    inView = null;
    place.hidden = true;
    place.replaceChildren();
  };

  const hide = () => {
    leave();
    onHidden();
  };

  return {
    choose,
    choices,
    chooseAny,
    start,
    leave,
    isShown: () => inView !== null,
    /** Installs an agent without starting a session. @param {string} cliType */
    install: (cliType) => {
      const agent = agentOf(cliType);
      if (agent) offerInstall(agent, null);
    },
    receive: install.receive,
  };
}
