/**
 * The connection from a session's page to the shell, over a MessagePort. The page has no other connection.
 *
 * The port is accepted only from the parent window and only from the page's own origin. Once it has arrived, all other
 * messages to the window are ignored.
 *
 * @typedef {import('../types/bridge.js').ToPortlet} ToPortlet
 * @typedef {import('../types/bridge.js').FromPortlet} FromPortlet
 * @typedef {import('../types/bridge.js').PortletRequest} PortletRequest
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 */

/** @template T @typedef {T extends unknown ? Omit<T, 'sessionId' | 'projectId' | 'cliType'> : never} WithoutIds */
/** A request without ids; the shell adds those of this page's session. @typedef {WithoutIds<PortletRequest>} Request */

/** An error response of the server or the shell; its message can be shown to the user. */
export class RequestError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** @param {(message: ToPortlet) => void} receive  receives every message that is not a response */
export function connectBridge(receive) {
  /** @type {MessagePort | null} */
  let port = null;
  let lastId = 0;
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: RequestError) => void }>} */
  const pendingRequests = new Map();

  /** @param {FromPortlet} message */
  const send = (message) => port?.postMessage(message);

  /** @param {ToPortlet} message */
  const onPortMessage = (message) => {
    if (message.type !== 'answer' && message.type !== 'uploaded') return receive(message);
    const pending = pendingRequests.get(message.id);
    pendingRequests.delete(message.id);
    if (!pending) return;
    if (message.type === 'uploaded') {
      if (message.imageId) pending.resolve(message.imageId);
      else pending.reject(new RequestError('UPLOAD', message.error ?? 'The picture could not be saved.'));
    } else if (message.message.type === 'error') {
      pending.reject(new RequestError(message.message.code, message.message.message));
    } else {
      pending.resolve(message.message);
    }
  };

  /** @param {MessageEvent} event */
  const acceptPort = (event) => {
    const ours = event.source === window.parent && event.origin === location.origin;
    if (port || !ours || event.data?.type !== 'portlet:port' || event.ports.length !== 1) return;
    removeEventListener('message', acceptPort);
    port = event.ports[0];
    port.onmessage = ({ data }) => onPortMessage(data);
  };
  addEventListener('message', acceptPort);
  if (window.parent !== window) window.parent.postMessage({ type: 'portlet:ready' }, location.origin);

  /** @param {(id: number) => FromPortlet} message @returns {Promise<any>} */
  const sendRequest = (message) =>
    new Promise((resolve, reject) => {
      lastId += 1;
      pendingRequests.set(lastId, { resolve, reject });
      send(message(lastId));
    });

  return {
    send,
    /** @param {Request} message @param {string} [requestId] @returns {Promise<ServerMessage>} */
    request: (message, requestId) => {
      const whole = /** @type {PortletRequest} */ (message);
      return sendRequest((id) => ({ type: 'request', id, message: whole, requestId }));
    },
    /** @param {Blob} file @returns {Promise<string>} the id of the picture */
    upload: (file) => sendRequest((id) => ({ type: 'upload', id, file })),
  };
}

/** @typedef {ReturnType<typeof connectBridge>} Bridge */
