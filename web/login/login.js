/** The login page: exchanges the token for a cookie, automatically if the address contains it, otherwise on submit. */

import { part } from '../shared/dom.js';

const form = part('login', HTMLFormElement);
const field = part('token', HTMLInputElement);
const submit = part('submit', HTMLButtonElement);
const problem = part('login-error', HTMLElement);

/**
 * @param {string} token
 * @returns {Promise<string>} the error message, empty on success
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

/** @returns {boolean} whether the address contained a token */
function enterFromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return false;
  // Remove the token from the address bar and the history first.
  history.replaceState(null, '', '/');
  enter(token);
  return true;
}

// Pasting the printed address while this page is open changes only the fragment and does not reload the page.
addEventListener('hashchange', enterFromAddress);
if (!enterFromAddress()) {
  // After a link from another site the browser omits its SameSite cookie, but sends it with this request.
  const known = await fetch('/auth').then(
    ({ status }) => status === 204,
    () => false,
  );
  if (known) location.replace('/');
  else show('');
}
