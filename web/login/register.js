/**
 * Signs this browser in: registers its key, and learns the server's. The server proves that it knows the token, so that
 * the page never trusts the key of another program.
 */

import { ask, ECDSA, hasKeys, keepIdentity, newNonce, statement, toBytes, toText } from '../shared/identity.js';

const HMAC = { name: 'HMAC', hash: 'SHA-256' };
const OTHER =
  'Another program answers at this address: it does not know the token. Stop it, start Liminal Builder, and open the address that it prints.';

/**
 * Registers this browser with the token, which is not sent.
 * @param {string} token
 * @returns {Promise<string>} the error message, empty on success
 */
export async function signIn(token) {
  try {
    return hasKeys() ? await registerKey(token) : await keepSecret(token);
  } catch (error) {
    if (error instanceof DOMException && error.name !== 'TimeoutError') {
      return `This browser cannot keep a key: ${error.message} Allow this page to store data, then sign in again.`;
    }
    return 'The server is not reachable. Is it still running?';
  }
}

/** @param {string} token */
async function registerKey(token) {
  const host = location.host;
  const asked = await ask(`/identity?browser=new&nonce=${newNonce()}`);
  const nonce = asked.ok && (await asked.json().catch(() => ({}))).signInNonce;
  if (typeof nonce !== 'string') return OTHER;
  const { privateKey, publicKey } = await crypto.subtle.generateKey(ECDSA, false, ['sign', 'verify']);
  const ours = toText(await crypto.subtle.exportKey('raw', publicKey));
  const shared = await crypto.subtle.importKey('raw', statement(token), HMAC, false, ['sign', 'verify']);
  const proof = toText(
    await crypto.subtle.sign(HMAC, shared, statement('Liminal Builder sign-in 1', host, ours, nonce)),
  );
  const response = await post({ publicKey: ours, nonce, proof });
  if (!response.ok) return refusal(response);
  const answer = await response.json().catch(() => ({}));
  const { browser, serverKey } = answer;
  const signed = statement('Liminal Builder signed in 1', host, ours, nonce, browser, serverKey);
  const knowsToken = await crypto.subtle.verify(HMAC, shared, toBytes(String(answer.proof)), signed);
  if (!knowsToken) return OTHER;
  const theirs = await crypto.subtle.importKey('raw', toBytes(serverKey), ECDSA, false, ['verify']);
  await keepIdentity({ id: browser, privateKey, serverKey: theirs });
  return '';
}

/** @param {string} token */
async function keepSecret(token) {
  const response = await post({ token });
  if (!response.ok) return refusal(response);
  const { browser, secret } = await response.json();
  await keepIdentity({ id: browser, secret });
  return '';
}

/** @param {Response} response */
async function refusal(response) {
  if (response.status === 401) return 'That is not the token. `liminal token` prints it.';
  return (await response.text()).trim() || `The server answered ${response.status}.`;
}

/** @param {unknown} body */
function post(body) {
  return ask('/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}
