/** The panel above the input if the agent could not open the session: the error, sign-in methods and a retry button. */

import { h } from '../shared/dom.js';
import { signInView } from '../shared/sign-in.js';

/**
 * @typedef {import('../types/wire.js').AttachProblem} AttachProblem
 *
 * @typedef {object} Actions
 * @property {() => Promise<unknown>} attach  asks the agent to open the session again
 * @property {import('./view-context.js').ViewContext} context
 */

/** @param {HTMLElement} place @param {Actions} actions */
export function startClosed(place, { attach, context }) {
  const message = h('p', { class: 'closed-said', role: 'alert' });
  const signInPlace = h('div', {});
  const retry = h('button', { class: 'button', type: 'button' }, 'Try again');
  const hint = h(
    'p',
    { class: 'hint' },
    'The transcript stays readable. Sending a message also tries to open the session.',
  );
  const panel = h(
    'section',
    { class: 'closed', 'aria-label': 'The session is not open' },
    message,
    signInPlace,
    hint,
    retry,
  );
  panel.hidden = true;
  place.prepend(panel);
  let shown = '';

  const open = async () => {
    retry.disabled = true;
    try {
      await attach();
    } catch (error) {
      message.textContent = error instanceof Error ? error.message : String(error);
    }
    retry.disabled = false;
  };
  retry.addEventListener('click', open);

  return {
    /** @param {AttachProblem | undefined} problem */
    show: (problem) => {
      const needsSignIn = problem?.code === 'SIGN_IN_NEEDED';
      const methods = needsSignIn ? context.signIn() : [];
      // An unchanged problem is not rendered again, so that a sign-in in progress is kept.
      const state = problem ? JSON.stringify([problem, methods]) : '';
      if (state === shown) return;
      shown = state;
      panel.hidden = !problem;
      // The error lists the sign-in methods in parentheses; they are shown below as buttons.
      message.textContent =
        (methods.length > 0 ? problem?.message.replace(/ \([^()]*\)$/, '') : problem?.message) ?? '';
      const agent = { cliType: context.cliType(), name: context.agentName() };
      const { signInRequest: request, copy } = context;
      signInPlace.replaceChildren(needsSignIn ? signInView(agent, methods, { request, copy, onSignedIn: open }) : '');
    },
  };
}
