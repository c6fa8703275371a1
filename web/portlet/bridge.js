/**
 * The only way out of this page: a port to the shell.
 *
 * The shell is whoever holds our frame, and it has our own address; nobody else is listened to, and
 * after the port has come nothing that arrives at the window is.
 *
 * @typedef {import('../types/bridge.js').ToPortlet} ToPortlet
 * @typedef {import('../types/bridge.js').FromPortlet} FromPortlet
 * @typedef {import('../types/bridge.js').PortletRequest} PortletRequest
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 */

/** @template T @typedef {T extends unknown ? Omit<T, 'sessionId' | 'projectId' | 'cliType'> : never} WithoutIds */
/** What to ask; the session is always our own, and the shell knows which. @typedef {WithoutIds<PortletRequest>} Request */

/** An error of the server or of the shell, in words for a person. */
export class Refusal extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** @param {(message: ToPortlet) => void} receive  everything but answers */
export function connectBridge(receive) {
  /** @type {MessagePort | null} */
  let port = null;
  let lastId = 0;
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Refusal) => void }>} */
  const waiting = new Map();

  /** @param {FromPortlet} message */
  const send = (message) => port?.postMessage(message);

  /** @param {ToPortlet} message */
  const take = (message) => {
    if (message.type !== 'answer' && message.type !== 'uploaded') return receive(message);
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (!asked) return;
    if (message.type === 'uploaded') {
      if (message.imageId) asked.resolve(message.imageId);
      else asked.reject(new Refusal('UPLOAD', message.error ?? 'The picture could not be kept.'));
    } else if (message.message.type === 'error') {
      asked.reject(new Refusal(message.message.code, message.message.message));
    } else {
      asked.resolve(message.message);
    }
  };

  /** @param {MessageEvent} event */
  const meet = (event) => {
    const ours = event.source === window.parent && event.origin === location.origin;
    if (port || !ours || event.data?.type !== 'portlet:port' || event.ports.length !== 1) return;
    removeEventListener('message', meet);
    port = event.ports[0];
    port.onmessage = ({ data }) => take(data);
  };
  addEventListener('message', meet);
  if (window.parent !== window) window.parent.postMessage({ type: 'portlet:ready' }, location.origin);

  /** @param {(id: number) => FromPortlet} message @returns {Promise<any>} */
  const ask = (message) =>
    new Promise((resolve, reject) => {
      lastId += 1;
      waiting.set(lastId, { resolve, reject });
      send(message(lastId));
    });

  return {
    send,
    /** @param {Request} message @param {string} [requestId] @returns {Promise<ServerMessage>} */
    request: (message, requestId) => {
      const whole = /** @type {PortletRequest} */ (message);
      return ask((id) => ({ type: 'request', id, message: whole, requestId }));
    },
    /** @param {Blob} file @returns {Promise<string>} the id of the picture */
    upload: (file) => ask((id) => ({ type: 'upload', id, file })),
  };
}

/** @typedef {ReturnType<typeof connectBridge>} Bridge */
