/** Why the agent would not open the session, above the input: what it said, its ways to sign in, another try. */

import { h } from '../shared/dom.js';
import { signInView } from '../shared/sign-in.js';

/**
 * @typedef {import('../types/wire.js').AttachProblem} AttachProblem
 *
 * @typedef {object} Actions
 * @property {() => Promise<unknown>} attach  has the agent open it once more
 * @property {import('./stage.js').Stage} stage
 */

/** @param {HTMLElement} place @param {Actions} actions */
export function startClosed(place, { attach, stage }) {
  const said = h('p', { class: 'closed-said', role: 'alert' });
  const ways = h('div', {});
  const again = h('button', { class: 'button', type: 'button' }, 'Try again');
  const hint = h('p', { class: 'hint' }, 'What was said before stays readable. A message you send is tried, too.');
  const panel = h('section', { class: 'closed', 'aria-label': 'The session is not open' }, said, ways, hint, again);
  panel.hidden = true;
  place.prepend(panel);
  let shown = '';

  const open = async () => {
    again.disabled = true;
    try {
      await attach();
    } catch (error) {
      said.textContent = error instanceof Error ? error.message : String(error);
    }
    again.disabled = false;
  };
  again.addEventListener('click', open);

  return {
    /** @param {AttachProblem | undefined} problem */
    show: (problem) => {
      const locked = problem?.code === 'SIGN_IN_NEEDED';
      const methods = locked ? stage.signIn() : [];
      // What is under way inside, such as a sign-in, stays as it is.
      const state = problem ? JSON.stringify([problem, methods]) : '';
      if (state === shown) return;
      shown = state;
      panel.hidden = !problem;
      // The ways in parentheses stand below, as buttons.
      said.textContent = (methods.length > 0 ? problem?.message.replace(/ \([^()]*\)$/, '') : problem?.message) ?? '';
      const agent = { cliType: stage.cliType(), name: stage.agentName() };
      const { signInRequest: request, copy } = stage;
      ways.replaceChildren(locked ? signInView(agent, methods, { request, copy, onSignedIn: open }) : '');
    },
  };
}
