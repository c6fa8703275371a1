/**
 * The only WebSocket of this window. The server proves itself first, then this browser does (`shared/identity.js`), and
 * nothing else is sent or received before. It reconnects without limit, and every request is settled: with its response, with
 * the server's error, with `OFFLINE`, or with `LATE` after a deadline.
 *
 * The delay between attempts grows, which spares a server that runs and cannot accept the connection. After the
 * connection is lost, an HTTP probe also runs several times per second, so that a restarted server is noticed at once.
 *
 * @typedef {import('../types/wire.js').ClientMessage} ClientMessage
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 *
 * @typedef {{ state: 'up', bootId: string, pass: string } | { state: 'down', retryInMs: number, attempt: number, other: boolean }} Connection
 *   `other`: another program answers at the server's address
 *
 * @typedef {object} Listeners
 * @property {(message: ServerMessage) => void} onMessage
 * @property {(connection: Connection) => void} onConnection
 * @property {() => void} onSignedOut  called when this browser is not signed in, or the server has signed it out
 */

import { answerChallenge, loadIdentity, newNonce, whoAnswers } from '../shared/identity.js';

const FIRST_RETRIES_MS = [0, 500, 1000, 2000, 4000];
const LAST_RETRY_MS = 5000;
/** Interval of the HTTP probe while the window is visible, and the maximum number of probes. */
const PROBE_MS = 200;
const PROBES_MAX = 1500;
/** Deadline for the server's proof once it has accepted the connection. */
const PROOF_DEADLINE_MS = 5000;
/** Deadline for a response; a server that exceeds it is stuck. */
const ANSWER_DEADLINE_MS = 15_000;
/** Deadline for requests that wait for an agent, which may have to be downloaded first. */
const AGENT_DEADLINE_MS = 10 * 60_000;
/** @type {Set<ClientMessage['type']>} */
const WAITS_FOR_AGENT = new Set([
  'agent:authenticate',
  'session:create',
  'session:reconnect',
  'session:send',
  'session:set-mode',
  'session:set-option',
]);

/** @param {number} attempt  from 0 */
export function retryDelay(attempt) {
  return FIRST_RETRIES_MS[attempt] ?? LAST_RETRY_MS;
}

/** The challenge in the first frame of a connection, if that is one. @param {string} data */
export function challengeIn(data) {
  try {
    const { type, nonce, signature } = JSON.parse(data);
    return type === 'challenge' && typeof nonce === 'string' && typeof signature === 'string'
      ? { type, nonce, signature }
      : null;
  } catch {
    return null;
  }
}

export class RequestError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const offline = () => new RequestError('OFFLINE', 'The server is not reachable right now. Try again when it is back.');

/** @param {Listeners} listeners */
export function connect({ onMessage, onConnection, onSignedOut }) {
  /**
   * @typedef {{
   *   resolve: (message: ServerMessage) => void,
   *   reject: (error: Error) => void,
   *   timer: ReturnType<typeof setTimeout>,
   * }} PendingRequest
   * @type {Map<string, PendingRequest>}
   */
  const pending = new Map();
  /** @type {WebSocket | null} */
  let socket = null;
  /** Whether both sides have proven themselves and the server has sent its greeting. */
  let up = false;
  /** Whether another program was the last to answer. */
  let other = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let attempt = 0;
  let lastId = 0;
  let probes = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let probeTimer;
  const identity = loadIdentity();

  const open = async () => {
    clearTimeout(timer);
    const browser = await identity;
    if (!browser) return onSignedOut();
    if (socket) return;
    const nonce = newNonce();
    const path = `/ws?batch=1&html=1&lists=1&browser=${browser.id}&nonce=${nonce}`;
    attach(new WebSocket(`ws://${location.host}${path}`), nonce, []);
  };

  /** @param {WebSocket} opening @param {string} nonce @param {string[]} frames  those received so far */
  const attach = (opening, nonce, frames) => {
    socket = opening;
    let proven = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let deadline;
    // Without waiting for the closing handshake, which another program may never answer.
    const giveUp = () => {
      if (socket !== opening) return;
      clearTimeout(deadline);
      opening.onclose = null;
      opening.close();
      lost();
    };
    const expect = () => {
      deadline = setTimeout(giveUp, PROOF_DEADLINE_MS);
    };
    const prove = async (/** @type {string} */ data) => {
      const challenge = challengeIn(data);
      const browser = await identity;
      if (!browser) return onSignedOut();
      const proof = challenge && (await answerChallenge(browser, location.host, nonce, challenge));
      clearTimeout(deadline);
      if (socket !== opening) return;
      if (!proof) {
        other = true;
        return giveUp();
      }
      proven = true;
      if (opening.readyState === WebSocket.OPEN) opening.send(JSON.stringify(proof));
    };
    let first = true;
    const onData = (/** @type {string} */ data) => {
      if (socket !== opening) return;
      if (first) {
        first = false;
        prove(data);
      } else if (proven) onFrame(data);
      else {
        other = true;
        giveUp();
      }
    };
    opening.onopen = expect;
    if (opening.readyState === WebSocket.OPEN) expect();
    opening.onmessage = ({ data }) => onData(data);
    opening.onclose = () => {
      clearTimeout(deadline);
      if (socket === opening) lost();
    };
    // In a microtask, because the caller's listeners may not be ready before `connect` returns.
    queueMicrotask(() => {
      for (const frame of frames) onData(frame);
      if (socket === opening && opening.readyState === WebSocket.CLOSED) lost();
    });
  };

  /** @param {string} data */
  const onFrame = (data) => {
    const frame = JSON.parse(data);
    for (const message of Array.isArray(frame) ? frame : [frame]) receive(message);
  };

  /** @param {ServerMessage} message */
  const receive = (message) => {
    // Only `hello` counts as connected: a server may accept the connection and close it at once.
    if (message.type === 'hello') {
      up = true;
      other = false;
      attempt = 0;
      clearTimeout(probeTimer);
      onConnection({ state: 'up', bootId: message.bootId, pass: message.pass ?? '' });
    }
    onMessage(message);
    const id = 'requestId' in message ? message.requestId : undefined;
    const awaited = id === undefined ? undefined : pending.get(id);
    if (!awaited || id === undefined) return;
    pending.delete(id);
    clearTimeout(awaited.timer);
    if (message.type === 'error') awaited.reject(new RequestError(message.code, message.message));
    else awaited.resolve(message);
  };

  const lost = () => {
    socket = null;
    up = false;
    for (const { reject, timer: timeout } of pending.values()) {
      clearTimeout(timeout);
      reject(offline());
    }
    pending.clear();
    attempt += 1;
    tellDown();
    timer = setTimeout(open, retryDelay(attempt - 1));
    if (attempt === 1) {
      probes = 0;
      scheduleProbe();
    } else checkServer();
  };

  const tellDown = () => onConnection({ state: 'down', retryInMs: retryDelay(attempt - 1), attempt, other });

  // A page cannot tell a refused WebSocket upgrade from an unreachable server, so this asks over HTTP.
  const checkServer = async () => {
    const browser = await identity;
    if (!browser) return false;
    const answerer = await whoAnswers(browser);
    if (answerer === 'signed-out') onSignedOut();
    if (other !== (answerer === 'other') && attempt > 0) {
      other = answerer === 'other';
      tellDown();
    }
    return answerer === 'server';
  };

  const scheduleProbe = () => {
    clearTimeout(probeTimer);
    probeTimer = setTimeout(probe, PROBE_MS);
  };
  const probe = async () => {
    probes += 1;
    const waits = socket !== null || document.visibilityState !== 'visible';
    // The server answers: reconnect now. If that fails, the regular retry delay applies.
    if (!waits && (await checkServer())) return retryNow();
    if (attempt > 0 && probes < PROBES_MAX) scheduleProbe();
  };

  const retryNow = () => {
    if (!socket) open();
  };

  /**
   * @param {ClientMessage} message
   * @param {string} [ownId]  id for a request that may be repeated after `OFFLINE`; the server executes it once
   * @returns {Promise<ServerMessage>}
   */
  const request = (message, ownId) => {
    if (!socket || !up || socket.readyState !== WebSocket.OPEN) return Promise.reject(offline());
    lastId += 1;
    const requestId = ownId ?? `r${lastId}`;
    if (pending.has(requestId)) return Promise.reject(new RequestError('BUSY', 'That is being sent already.'));
    const deadline = WAITS_FOR_AGENT.has(message.type) ? AGENT_DEADLINE_MS : ANSWER_DEADLINE_MS;
    const answer = new Promise((resolve, reject) => {
      const timeout = () => {
        pending.delete(requestId);
        reject(new RequestError('LATE', 'The server does not answer. Reload the page, or look at its log.'));
      };
      pending.set(requestId, { resolve, reject, timer: setTimeout(timeout, deadline) });
    });
    socket.send(JSON.stringify({ ...message, requestId }));
    return /** @type {Promise<ServerMessage>} */ (answer);
  };

  // Skip the retry delay when the window becomes visible or the network is back.
  addEventListener('online', retryNow);
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') retryNow();
  });
  const { early } = window;
  window.early = undefined;
  if (early) attach(early.socket, early.nonce, early.frames);
  else open();
  return { request, retryNow };
}

/** @typedef {ReturnType<typeof connect>} Socket */
