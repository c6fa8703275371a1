/**
 * Who this browser is and who the server is. At sign-in the browser creates a key that no script can read, registers
 * its public half and keeps the server's public key (IndexedDB). From then on both prove themselves with signatures
 * over fresh nonces, so the page sends no secret to the program that answers, and recognises one that is not the server.
 *
 * The statements are those of `crates/liminal/src/browser_keys/statements.rs`.
 *
 * At an address without cryptography (not on this machine and not encrypted) the browser keeps a secret of the server's
 * current start instead, and cannot recognise the server.
 *
 * @typedef {import('../types/wire.js').ProofFrame} ProofFrame
 * @typedef {Extract<ProofFrame, { type: 'challenge' }>} Challenge
 * @typedef {Extract<ProofFrame, { type: 'proof' }>} Proof
 *
 * @typedef {{ id: string, privateKey: CryptoKey, serverKey: CryptoKey }} KeyIdentity
 * @typedef {{ id: string, secret: string }} SecretIdentity
 * @typedef {KeyIdentity | SecretIdentity} Identity
 *
 * @typedef {'server' | 'signed-out' | 'other' | 'none'} Answerer
 *   the server we signed in to; the same, but it does not know this browser; another program; no program
 */

/** Name in localStorage of this browser's id, which `boot.js` needs before the first paint. */
const HINT = 'liminal:browser';
const DATABASE = 'liminal';
const STORE = 'identity';
const RECORD = 'browser';
export const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
/** Deadline for an answer over HTTP; another program may accept the connection and stay silent. */
const DEADLINE_MS = 5000;

/** Whether this page can use keys. */
export const hasKeys = () => globalThis.crypto?.subtle !== undefined;

/** @param {...string} fields */
export const statement = (...fields) => new TextEncoder().encode(fields.join('\n'));

/** @param {ArrayBuffer | Uint8Array<ArrayBuffer>} bytes */
export function toText(bytes) {
  const letters = String.fromCharCode(...new Uint8Array(bytes));
  return btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** The bytes of a text; none if it is not base64url. @param {string} text */
export function toBytes(text) {
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

export function newNonce() {
  return toText(crypto.getRandomValues(new Uint8Array(32)));
}

/**
 * The proof with which this browser answers the server's challenge, or null if the server has not proven itself.
 * @param {Identity} identity @param {string} host @param {string} pageNonce @param {Challenge} challenge
 * @returns {Promise<Proof | null>}
 */
export async function answerChallenge(identity, host, pageNonce, challenge) {
  if ('secret' in identity) return { type: 'proof', secret: identity.secret };
  const fields = [host, identity.id, pageNonce, challenge.nonce];
  const ofServer = statement('Liminal Builder server 1', ...fields);
  if (!(await isSigned(identity.serverKey, challenge.signature, ofServer))) return null;
  const ofBrowser = statement('Liminal Builder browser 1', ...fields);
  return { type: 'proof', signature: toText(await crypto.subtle.sign(ECDSA, identity.privateKey, ofBrowser)) };
}

/**
 * What an answer to `GET /identity` says about the program that sent it.
 * @param {Identity} identity @param {string} host @param {string} pageNonce @param {unknown} answer
 * @returns {Promise<Answerer>}
 */
export async function judge(identity, host, pageNonce, answer) {
  const { known, signature } = /** @type {{ known?: unknown, signature?: unknown }} */ (Object(answer));
  if (typeof known !== 'boolean' || typeof signature !== 'string') return 'other';
  if ('serverKey' in identity) {
    const said = known ? 'known' : 'unknown';
    const signed = statement('Liminal Builder identity 1', host, identity.id, pageNonce, said);
    if (!(await isSigned(identity.serverKey, signature, signed))) return 'other';
  }
  return known ? 'server' : 'signed-out';
}

/** Asks the program at this page's address who it is. @param {Identity} identity @returns {Promise<Answerer>} */
export async function whoAnswers(identity) {
  const nonce = newNonce();
  const response = await ask(`/identity?browser=${identity.id}&nonce=${nonce}`).catch(() => undefined);
  if (!response) return 'none';
  const answer = response.ok ? await response.json().catch(() => undefined) : undefined;
  return judge(identity, location.host, nonce, answer);
}

/** The identity of this browser, or null if it has not signed in. @returns {Promise<Identity | null>} */
export async function loadIdentity() {
  const hint = recallHint();
  if (hint && 'secret' in hint) return hint;
  if (!hint || !hasKeys()) return null;
  const found = await read().catch(() => undefined);
  return found?.id === hint.id ? found : null;
}

/** @returns {SecretIdentity | { id: string } | null} */
function recallHint() {
  try {
    const hint = JSON.parse(localStorage.getItem(HINT) ?? 'null');
    return typeof hint?.id === 'string' ? hint : null;
  } catch {
    return null;
  }
}

/**
 * Sends a request without anything the browser stores, and takes nothing from the answer but its body: another program
 * may answer.
 * @param {string} path @param {RequestInit} [init]
 */
export function ask(path, init) {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  return fetch(path, { cache: 'no-store', credentials: 'omit', redirect: 'error', signal, ...init });
}

/** @param {CryptoKey} key @param {string} signature @param {Uint8Array<ArrayBuffer>} signed */
function isSigned(key, signature, signed) {
  return crypto.subtle.verify(ECDSA, key, toBytes(signature), signed);
}

/** @returns {Promise<IDBDatabase>} */
function open() {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  return result(opening);
}

/** @returns {Promise<KeyIdentity | undefined>} */
async function read() {
  const database = await open();
  const found = await result(database.transaction(STORE).objectStore(STORE).get(RECORD));
  database.close();
  return found;
}

/** Keeps the identity of a browser that has signed in. @param {Identity} identity */
export async function keepIdentity(identity) {
  if ('privateKey' in identity) {
    const database = await open();
    const writing = database.transaction(STORE, 'readwrite');
    writing.objectStore(STORE).put(identity, RECORD);
    await new Promise((resolve, reject) => {
      writing.oncomplete = resolve;
      writing.onabort = () => reject(writing.error);
    });
    database.close();
  }
  const { id } = identity;
  localStorage.setItem(HINT, JSON.stringify('secret' in identity ? { id, secret: identity.secret } : { id }));
}

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
