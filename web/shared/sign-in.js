/**
 * Signing in with an agent by its own methods: a button for each, or the command to run where the way leads through
 * a terminal. How it goes is said in place.
 *
 * @typedef {import('../types/wire.js').SignInMethod} SignInMethod
 *
 * @typedef {object} Actions
 * @property {(methodId: string) => Promise<unknown>} authenticate
 * @property {(text: string) => void} copy
 * @property {() => void} onSignedIn
 */

import { h } from './dom.js';

/** @param {string} agentName @param {SignInMethod[]} methods @param {Actions} actions */
export function signInView(agentName, methods, { authenticate, copy, onSignedIn }) {
  const progress = h('p', { class: 'hint', role: 'status' });
  const problem = h('p', { class: 'field-error', role: 'alert' });
  /** @type {HTMLButtonElement[]} */
  const buttons = [];

  /** @param {SignInMethod} method */
  const attempt = async ({ id, name }) => {
    for (const button of buttons) button.disabled = true;
    problem.textContent = '';
    progress.textContent = `${agentName}: ${name}… It may have opened a page in your browser; finish there.`;
    try {
      await authenticate(id);
      progress.textContent = 'Signed in.';
      onSignedIn();
    } catch (error) {
      progress.textContent = '';
      problem.textContent = `Not signed in: ${error instanceof Error ? error.message : String(error)}`;
    }
    for (const button of buttons) button.disabled = false;
  };

  const inPlace = methods.filter(({ command }) => command === undefined);
  for (const [at, method] of inPlace.entries()) {
    const look = at === 0 ? 'button primary' : 'button';
    const run = () => attempt(method);
    buttons.push(h('button', { class: look, type: 'button', onclick: run }, method.name || method.id));
  }
  const elsewhere = methods.flatMap(({ name, command }) =>
    command === undefined
      ? []
      : [
          h(
            'p',
            { class: 'sign-in-command' },
            `${name}: run `,
            h('code', {}, command),
            ' in a terminal, then try again. ',
            h('button', { class: 'link-button', type: 'button', onclick: () => copy(command) }, 'Copy the command'),
          ),
        ],
  );
  const none = h(
    'p',
    { class: 'hint' },
    `It names no way to do so here. Sign in with its own program, then try again.`,
  );
  return h(
    'section',
    { class: 'sign-in', 'aria-label': `Sign in to ${agentName}` },
    buttons.length > 0 && h('div', { class: 'sign-in-methods' }, ...buttons),
    ...(methods.length > 0 ? elsewhere : [none]),
    progress,
    problem,
  );
}
