/** Exchanges the token for a cookie: at once when the address carries it, else when it is typed. */

import { part } from '../shared/dom.js';

const form = part('login', HTMLFormElement);
const field = part('token', HTMLInputElement);
const submit = part('submit', HTMLButtonElement);
const problem = part('login-error', HTMLElement);

/**
 * @param {string} token
 * @returns {Promise<string>} what went wrong, or nothing
 */
async function login(token) {
  try {
    const response = await fetch('/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    });
    if (response.ok) return '';
    if (response.status === 401) return 'That is not the token. `liminal token` prints it.';
    return (await response.text()).trim() || `The server answered ${response.status}.`;
  } catch {
    return 'The server is not reachable. Is it still running?';
  }
}

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
  const message = await login(token);
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

/** @returns {boolean} whether the address carried a token */
function enterFromAddress() {
  const carried = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!carried) return false;
  // Out of the address bar and the history before anything else.
  history.replaceState(null, '', '/');
  enter(carried);
  return true;
}

// Pasting the printed address over this page changes only its fragment, and loads nothing.
addEventListener('hashchange', enterFromAddress);
if (!enterFromAddress()) {
  // A link on another site brings a known browser here without its cookie; on our own it has it.
  const known = await fetch('/auth').then(
    ({ status }) => status === 204,
    () => false,
  );
  if (known) location.replace('/');
  else show('');
}
