/**
 * The sign-in form of an agent: one button per method the agent offers, and the progress of the attempt. A method that
 * runs a command shows its terminal here.
 *
 * @typedef {import('../types/wire.js').SignInMethod} SignInMethod
 * @typedef {import('../types/wire.js').SignInShown} SignInShown
 * @typedef {import('../types/wire.js').QuestionAction} QuestionAction
 *
 * A request to the server, without the agent's id; `Actions.request` adds it.
 * @typedef {{ type: 'agent:authenticate', methodId: string }
 *   | { type: 'agent:sign-in-type', text: string }
 *   | { type: 'agent:sign-in-answer', action: QuestionAction }
 *   | { type: 'agent:sign-in-stop' }} Request
 *
 * @typedef {object} Actions
 * @property {(message: Request) => Promise<unknown>} request
 * @property {(text: string) => void} copy
 * @property {() => void} onSignedIn
 */

import { h } from './dom.js';
import { addressView, loginTerminal } from './login-terminal.js';

/** Listeners for sign-in progress, by agent id. @type {Map<string, (shown: SignInShown) => void>} */
const progressListeners = new Map();

/** Passes a progress message to the running sign-in. @param {{ cliType: string, shown: SignInShown }} message */
export function showSignInProgress({ cliType, shown }) {
  progressListeners.get(cliType)?.(shown);
}

/** @param {{ cliType: string, name: string }} agent @param {SignInMethod[]} methods @param {Actions} actions */
export function signInView({ cliType, name: agentName }, methods, { request, copy, onSignedIn }) {
  const progress = h('p', { class: 'hint', role: 'status' });
  const problem = h('p', { class: 'field-error', role: 'alert' });
  const details = h('div', { class: 'sign-in-seen' });
  /** @type {HTMLButtonElement[]} */
  const buttons = [];
  const requestOrShowError = /** @param {Request} message */ (message) => {
    request(message).catch((error) => {
      problem.textContent = error instanceof Error ? error.message : String(error);
    });
  };

  /** @param {SignInMethod} method */
  const attempt = async ({ id, name, kind }) => {
    for (const button of buttons) button.disabled = true;
    problem.textContent = '';
    const inTerminal = kind === 'terminal';
    const stop = () => requestOrShowError({ type: 'agent:sign-in-stop' });
    const terminal = inTerminal
      ? loginTerminal(name, { type: (text) => requestOrShowError({ type: 'agent:sign-in-type', text }), stop, copy })
      : null;
    progress.textContent = inTerminal
      ? `${agentName}: ${name}…`
      : `${agentName}: ${name}… It may have opened a page in your browser; finish there.`;
    details.replaceChildren(terminal?.element ?? '');
    terminal?.focus();
    progressListeners.set(cliType, (shown) => {
      if (shown.type === 'output') return terminal?.write(shown.text);
      progress.textContent = `${agentName}: ${name}…`;
      return details.replaceChildren(shown.type === 'link' ? linkView(shown) : '');
    });
    try {
      await request({ type: 'agent:authenticate', methodId: id });
      progress.textContent = 'Signed in.';
      details.replaceChildren();
      onSignedIn();
    } catch (error) {
      progress.textContent = '';
      problem.textContent = `Not signed in: ${error instanceof Error ? error.message : String(error)}`;
      // The request timed out, so a later answer would be ignored: stop the sign-in on the server.
      if (error instanceof Error && 'code' in error && error.code === 'LATE') stop();
    }
    progressListeners.delete(cliType);
    terminal?.end();
    for (const button of buttons) button.disabled = false;
    if (!document.activeElement || document.activeElement === document.body) buttons[0]?.focus();
  };

  /** A page the agent asks the user to open. @param {{ message: string, url: string }} link */
  const linkView = ({ message, url }) => {
    const answer = /** @param {QuestionAction} action */ (action) => () => {
      requestOrShowError({ type: 'agent:sign-in-answer', action });
      options.remove();
    };
    const options = h(
      'div',
      { class: 'sign-in-methods' },
      h('button', { class: 'button primary', type: 'button', onclick: answer('accept') }, 'Accept'),
      h('button', { class: 'button', type: 'button', onclick: answer('decline') }, 'Decline'),
    );
    return h(
      'div',
      { class: 'sign-in-link', role: 'group', 'aria-label': message },
      h('p', {}, message),
      h('p', {}, ...addressView(url, copy)),
      options,
    );
  };

  /** @param {SignInMethod} method @param {number} at */
  const methodView = (method, at) => {
    const { name, id, kind, description, command, variables = [] } = method;
    const hint = description && description !== name ? h('span', { class: 'hint' }, description) : '';
    if (kind === 'env-var') {
      const named = variables.flatMap((variable, index) => [index ? ', ' : '', h('code', {}, variable)]);
      const instruction = h(
        'span',
        {},
        h('strong', {}, name),
        ': set ',
        ...named,
        ' in the environment and restart Liminal Builder.',
      );
      return h('li', {}, instruction, hint);
    }
    const look = at === 0 ? 'button primary' : 'button';
    const button = h('button', { class: look, type: 'button', onclick: () => attempt(method) }, name || id);
    buttons.push(button);
    const runs =
      kind === 'terminal'
        ? h(
            'span',
            { class: 'hint' },
            'Opens a terminal below',
            command ? ': ' : '.',
            command ? h('code', {}, command) : '',
          )
        : '';
    return h('li', {}, button, hint, runs);
  };

  const none = h(
    'p',
    { class: 'hint' },
    `This agent offers no sign-in method. Sign in with its own program, then try again.`,
  );
  return h(
    'section',
    { class: 'sign-in', 'aria-label': `Sign in to ${agentName}` },
    methods.length > 0 ? h('ul', { class: 'sign-in-ways' }, ...methods.map(methodView)) : none,
    progress,
    details,
    problem,
  );
}
