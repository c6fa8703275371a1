/**
 * The one WebSocket of this window. It reconnects for ever and never gives up a request silently:
 * each `request` ends in its answer, the server's error, or `OFFLINE`. The pauses between attempts grow, for a server
 * that is there and cannot have us; one that was gone is back as soon as its port answers a knock.
 *
 * @typedef {import('../types/wire.js').ClientMessage} ClientMessage
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 *
 * @typedef {{ state: 'up' } | { state: 'down', retryInMs: number, attempt: number }} Connection
 *
 * @typedef {object} Listeners
 * @property {(message: ServerMessage) => void} onMessage
 * @property {(connection: Connection) => void} onConnection
 * @property {() => void} onSignedOut  the server is there, but no longer knows this browser
 */

const FIRST_RETRIES_MS = [0, 500, 1000, 2000, 4000];
const LAST_RETRY_MS = 5000;
/** How often to knock at the port of a server that is gone, while somebody looks, and how long. */
const KNOCK_MS = 200;
const KNOCKS_MAX = 1500;
/** Far longer than any answer takes; a server that is this late is stuck. */
const ANSWER_DEADLINE_MS = 15_000;
/** What has to wait for an agent, which may first have to be downloaded. */
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
   * }} Waiting
   * @type {Map<string, Waiting>}
   */
  const pending = new Map();
  /** @type {WebSocket | null} */
  let socket = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let attempt = 0;
  let lastId = 0;
  let knocks = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let knocking;

  const open = () => {
    clearTimeout(timer);
    use(new WebSocket(`ws://${location.host}/ws?batch=1&html=1&lists=1`));
  };

  /** @param {WebSocket} opening */
  const use = (opening) => {
    socket = opening;
    opening.onmessage = ({ data }) => take(data);
    opening.onclose = () => {
      if (socket === opening) lost();
    };
  };

  /** @param {string} data */
  const take = (data) => {
    const frame = JSON.parse(data);
    for (const message of Array.isArray(frame) ? frame : [frame]) receive(message);
  };

  // The page has connected before it could do anything with it. The listeners may not be there before we return.
  const takeOver = (/** @type {NonNullable<Window['early']>} */ early) => {
    window.early = undefined;
    use(early.socket);
    queueMicrotask(() => {
      for (const frame of early.frames) take(frame);
      if (socket?.readyState === WebSocket.CLOSED) lost();
    });
  };

  /** @param {ServerMessage} message */
  const receive = (message) => {
    // Only now: a server that lets us in and hangs up at once is not there yet.
    if (message.type === 'hello') {
      attempt = 0;
      clearTimeout(knocking);
      onConnection({ state: 'up' });
    }
    onMessage(message);
    const id = 'requestId' in message ? message.requestId : undefined;
    const waiting = id === undefined ? undefined : pending.get(id);
    if (!waiting || id === undefined) return;
    pending.delete(id);
    clearTimeout(waiting.timer);
    if (message.type === 'error') waiting.reject(new RequestError(message.code, message.message));
    else waiting.resolve(message);
  };

  const lost = () => {
    socket = null;
    for (const { reject, timer: late } of pending.values()) {
      clearTimeout(late);
      reject(offline());
    }
    pending.clear();
    const retryInMs = retryDelay(attempt);
    attempt += 1;
    onConnection({ state: 'down', retryInMs, attempt });
    timer = setTimeout(open, retryInMs);
    if (attempt === 1) {
      knocks = 0;
      knockLater();
    } else checkSignedOut();
  };

  // A refused upgrade looks to a page like a dead server, so ask over plain HTTP which it was.
  const checkSignedOut = async () => {
    const response = await fetch('/auth').catch(() => undefined);
    if (response?.status === 401) onSignedOut();
    return response !== undefined;
  };

  const knockLater = () => {
    clearTimeout(knocking);
    knocking = setTimeout(knock, KNOCK_MS);
  };
  const knock = async () => {
    knocks += 1;
    const waits = socket !== null || document.visibilityState !== 'visible';
    // It answers: once more at once, and if it cannot have us yet, at the usual pace.
    if (!waits && (await checkSignedOut())) return retryNow();
    if (attempt > 0 && knocks < KNOCKS_MAX) knockLater();
  };

  const retryNow = () => {
    if (!socket) open();
  };

  /**
   * @param {ClientMessage} message
   * @param {string} [ownId]  to be sent again with, after `OFFLINE`: the server carries it out once
   * @returns {Promise<ServerMessage>}
   */
  const request = (message, ownId) => {
    if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(offline());
    lastId += 1;
    const requestId = ownId ?? `r${lastId}`;
    if (pending.has(requestId)) return Promise.reject(new RequestError('BUSY', 'That is being sent already.'));
    const deadline = WAITS_FOR_AGENT.has(message.type) ? AGENT_DEADLINE_MS : ANSWER_DEADLINE_MS;
    const answer = new Promise((resolve, reject) => {
      const late = () => {
        pending.delete(requestId);
        reject(new RequestError('LATE', 'The server does not answer. Reload the page, or look at its log.'));
      };
      pending.set(requestId, { resolve, reject, timer: setTimeout(late, deadline) });
    });
    socket.send(JSON.stringify({ ...message, requestId }));
    return /** @type {Promise<ServerMessage>} */ (answer);
  };

  // Somebody is looking again, or the network came back: no reason to sit out the pause.
  addEventListener('online', retryNow);
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') retryNow();
  });
  if (window.early) takeOver(window.early);
  else open();
  return { request, retryNow };
}

/** @typedef {ReturnType<typeof connect>} Socket */
