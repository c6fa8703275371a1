/** The login page: signs this browser in, with the token of the address or with one that the user pastes. */

import { part } from '../shared/dom.js';
import { loadIdentity, whoAnswers } from '../shared/identity.js';
import { signIn } from './register.js';

const form = part('login', HTMLFormElement);
const field = part('token', HTMLInputElement);
const submit = part('submit', HTMLButtonElement);
const problem = part('login-error', HTMLElement);

/** @param {string} message */
function show(message) {
  form.hidden = false;
  problem.textContent = message;
  field.setAttribute('aria-invalid', String(message !== ''));
  field.focus();
}

/** @param {string} token */
async function enter(token) {
  submit.disabled = true;
  const message = await signIn(token);
  submit.disabled = false;
  if (message) show(message);
  else location.replace('/');
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const token = field.value.trim();
  if (token) enter(token);
  else show('Paste the token first.');
});

async function begin() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  // Remove the token from the address bar and the history first.
  history.replaceState(null, '', '/');
  const identity = await loadIdentity();
  if (identity && (await whoAnswers(identity)) === 'server') location.replace('/');
  else if (token) enter(token);
  else show('');
}

// Pasting the printed address while this page is open changes only the fragment and does not reload the page.
addEventListener('hashchange', begin);
begin();
