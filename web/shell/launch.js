/**
 * Starting a session: which agent, then how it goes, in the main area. Several may start at once; the newest is
 * in view, and one that ends out of view says so in a toast.
 *
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('./workspace.js').Agent} Agent
 *
 * @typedef {object} Needs
 * @property {import('./socket.js').Socket} socket
 * @property {import('./toasts.js').Toasts} toasts
 * @property {() => Agent[]} agents
 * @property {() => Promise<unknown>} askAgents  what they have said about themselves by now
 * @property {(text: string) => void} copy
 * @property {(sessionId: string, inView: boolean) => void} onCreated
 * @property {() => void} onShown  the main area is needed
 * @property {() => void} onHidden
 */

import { h } from '../shared/dom.js';
import { signInView } from '../shared/sign-in.js';
import { openMenu } from './menu.js';
import { RequestError } from './socket.js';

/** @param {HTMLElement} place @param {Needs} needs */
export function startLaunch(place, { socket, toasts, agents, askAgents, copy, onCreated, onShown, onHidden }) {
  /** What the main area shows, if it shows a start. @type {symbol | null} */
  let inView = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let clock;

  /** @param {Project} project @param {HTMLElement} anchor */
  const choose = (project, anchor) => {
    openMenu(anchor, `New session in ${project.name}`, choices(project));
  };

  /** An item of a menu for each agent. @param {Project} project */
  const choices = (project) =>
    agents().map((agent) => ({
      label: agent.name,
      badge: agent.badge,
      disabled: !agent.found,
      note: agent.found ? undefined : agent.install ? `Not installed. ${agent.install}` : 'Not installed.',
      run: () => start(project, agent.cliType),
    }));

  /** @param {Project} project @param {string} cliType */
  const start = async (project, cliType) => {
    const launch = Symbol(cliType);
    const name = agents().find((agent) => agent.cliType === cliType)?.name ?? cliType;
    let cancelled = false;
    showStarting(launch, name, project, () => {
      cancelled = true;
      hide();
    });
    try {
      const answer = await socket.request({ type: 'session:create', projectId: project.id, cliType });
      if (answer.type !== 'session:created') return;
      if (cancelled) {
        // It was not wanted any more, and nothing has been said in it.
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
      const locked = error instanceof RequestError && error.code === 'SIGN_IN_NEEDED';
      if (locked) await askAgents();
      if (cancelled) return;
      if (inView === launch && locked) showLocked(launch, cliType, project, again);
      else if (inView === launch) showFailed(launch, message, project, again);
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

  /** @param {symbol} launch @param {string} message @param {Project} project @param {() => void} retry */
  const showFailed = (launch, message, project, retry) => {
    const again = h('button', { class: 'button primary', type: 'button', onclick: retry }, 'Retry');
    show(
      launch,
      h('h2', {}, 'No session was started'),
      h('p', { class: 'field-error', role: 'alert' }, message),
      h('p', { class: 'hint' }, `In ${project.name}, ${project.path}`),
      h(
        'div',
        { class: 'launch-actions' },
        again,
        h('button', { class: 'button', type: 'button', onclick: hide }, 'Close'),
      ),
    );
    again.focus();
  };

  /** @param {symbol} launch @param {string} cliType @param {Project} project @param {() => void} retry */
  const showLocked = (launch, cliType, project, retry) => {
    const agent = agents().find((one) => one.cliType === cliType);
    const name = agent?.name ?? cliType;
    const ways = signInView({ cliType, name }, agent?.signIn ?? [], {
      request: (message) => socket.request({ ...message, cliType }),
      copy,
      onSignedIn: () => inView === launch && retry(),
    });
    show(
      launch,
      h('h2', {}, `${name} wants you to sign in first`),
      h('p', { class: 'hint', role: 'alert' }, `Then the session in ${project.name} starts.`),
      ways,
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

  return { choose, choices, start, leave, isShown: () => inView !== null };
}
