/**
 * The only WebSocket of this window. It reconnects without limit, and every request is settled: with its response, with
 * the server's error, with `OFFLINE`, or with `LATE` after a deadline.
 *
 * The delay between attempts grows, which spares a server that runs and cannot accept the connection. After the
 * connection is lost, an HTTP probe also runs several times per second, so that a restarted server is noticed at once.
 *
 * @typedef {import('../types/wire.js').ClientMessage} ClientMessage
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 *
 * @typedef {{ state: 'up' } | { state: 'down', retryInMs: number, attempt: number }} Connection
 *
 * @typedef {object} Listeners
 * @property {(message: ServerMessage) => void} onMessage
 * @property {(connection: Connection) => void} onConnection
 * @property {() => void} onSignedOut  called when the server no longer accepts this browser's cookie
 */

const FIRST_RETRIES_MS = [0, 500, 1000, 2000, 4000];
const LAST_RETRY_MS = 5000;
/** Interval of the HTTP probe while the window is visible, and the maximum number of probes. */
const PROBE_MS = 200;
const PROBES_MAX = 1500;
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
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let attempt = 0;
  let lastId = 0;
  let probes = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let probeTimer;

  const open = () => {
    clearTimeout(timer);
    attach(new WebSocket(`ws://${location.host}/ws?batch=1&html=1&lists=1`));
  };

  /** @param {WebSocket} opening */
  const attach = (opening) => {
    socket = opening;
    opening.onmessage = ({ data }) => onFrame(data);
    opening.onclose = () => {
      if (socket === opening) lost();
    };
  };

  /** @param {string} data */
  const onFrame = (data) => {
    const frame = JSON.parse(data);
    for (const message of Array.isArray(frame) ? frame : [frame]) receive(message);
  };

  // Uses the connection that `shared/boot.js` has opened. Its frames are handled in a microtask, because the caller's
  // listeners may not be ready before `connect` returns.
  const attachEarly = (/** @type {NonNullable<Window['early']>} */ early) => {
    window.early = undefined;
    attach(early.socket);
    queueMicrotask(() => {
      for (const frame of early.frames) onFrame(frame);
      if (socket?.readyState === WebSocket.CLOSED) lost();
    });
  };

  /** @param {ServerMessage} message */
  const receive = (message) => {
    // Only `hello` counts as connected: a server may accept the connection and close it at once.
    if (message.type === 'hello') {
      attempt = 0;
      clearTimeout(probeTimer);
      onConnection({ state: 'up' });
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
    for (const { reject, timer: timeout } of pending.values()) {
      clearTimeout(timeout);
      reject(offline());
    }
    pending.clear();
    const retryInMs = retryDelay(attempt);
    attempt += 1;
    onConnection({ state: 'down', retryInMs, attempt });
    timer = setTimeout(open, retryInMs);
    if (attempt === 1) {
      probes = 0;
      scheduleProbe();
    } else checkSignedOut();
  };

  // A page cannot tell a refused WebSocket upgrade from an unreachable server, so this asks over HTTP.
  const checkSignedOut = async () => {
    const response = await fetch('/auth').catch(() => undefined);
    if (response?.status === 401) onSignedOut();
    return response !== undefined;
  };

  const scheduleProbe = () => {
    clearTimeout(probeTimer);
    probeTimer = setTimeout(probe, PROBE_MS);
  };
  const probe = async () => {
    probes += 1;
    const waits = socket !== null || document.visibilityState !== 'visible';
    // The server answers: reconnect now. If that fails, the regular retry delay applies.
    if (!waits && (await checkSignedOut())) return retryNow();
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
    if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(offline());
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
  if (window.early) attachEarly(window.early);
  else open();
  return { request, retryNow };
}

/** @typedef {ReturnType<typeof connect>} Socket */
