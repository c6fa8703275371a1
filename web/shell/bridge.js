/**
 * The shell's side of the connection to a session's page, and the only module of the shell that exchanges messages with
 * another window. It creates the sandboxed frame and sends it one end of a MessageChannel, once. Messages from other
 * windows are ignored.
 *
 * Messages from the frame are untrusted, because its page shows content from agents. Each is validated here and copied
 * field by field; anything outside the contract is dropped.
 *
 * @typedef {import('../types/bridge.js').ToPortlet} ToPortlet
 * @typedef {import('../types/bridge.js').FromPortlet} FromPortlet
 * @typedef {import('../types/bridge.js').PortletRequest} PortletRequest
 * @typedef {import('../types/bridge.js').ScrollPlace} ScrollPlace
 *
 * The ids a page belongs to; its requests may only refer to these.
 * @typedef {object} Ids
 * @property {string} sessionId
 * @property {string} projectId
 * @property {string} cliType
 *
 * @typedef {object} Listener
 * @property {() => void} onReady  called when the page receives messages
 * @property {(message: FromPortlet) => void} onSaid
 * @property {() => void} onLost  called when the frame has loaded another page, which gets no messages
 */

import { h } from '../shared/dom.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const TEXT_MAX = 1_000_000;
const LINK_MAX = 8192;

/**
 * Creates a frame that is not assigned to a session yet. Its messages are ignored until `claim` is called.
 *
 * Only while the server is connected: another program could answer otherwise. The address contains the server's boot
 * id, because that program could also have left a page in the browser's cache.
 * @param {HTMLElement} place
 * @param {string} bootId
 */
export function openBridge(place, bootId) {
  const src = `/portlet.html?boot=${encodeURIComponent(bootId)}`;
  const frame = h('iframe', { sandbox: 'allow-scripts', src });
  const { port1: ours, port2: theirs } = new MessageChannel();
  let portSent = false;
  let loads = 0;
  /** @type {{ ids: Ids, listener: Listener } | null} */
  let owner = null;

  /** @param {MessageEvent} event */
  const onWindowMessage = ({ source, data }) => {
    if (portSent || source !== frame.contentWindow || data?.type !== 'portlet:ready') return;
    portSent = true;
    // A sandboxed frame has an opaque origin, so the target must be `*`; the check of `source` identifies it.
    frame.contentWindow?.postMessage({ type: 'portlet:port' }, '*', [theirs]);
    owner?.listener.onReady();
  };
  ours.onmessage = ({ data }) => {
    const message = owner && checked(data, owner.ids);
    if (message) owner?.listener.onSaid(message);
  };
  addEventListener('message', onWindowMessage);
  frame.addEventListener('load', () => {
    loads += 1;
    if (loads > 1) owner?.listener.onLost();
  });
  place.append(frame);

  return {
    frame,
    /** Assigns the frame to a session. @param {Ids} ids @param {string} title @param {Listener} listener */
    claim: (ids, title, listener) => {
      owner = { ids, listener };
      frame.title = title;
      if (loads > 1) listener.onLost();
      else if (portSent) listener.onReady();
    },
    /** Whether the frame has loaded any page. */
    loaded: () => loads > 0,
    /** @param {ToPortlet} message */
    say: (message) => ours.postMessage(message),
    /** Closes the channel. */
    closeChannel: () => {
      removeEventListener('message', onWindowMessage);
      ours.close();
    },
  };
}

/**
 * The message reduced to the fields of the contract, or undefined if it is invalid.
 * @param {unknown} data
 * @param {Ids} ids
 * @returns {FromPortlet | undefined}
 */
export function checked(data, ids) {
  if (!isObject(data)) return undefined;
  const { id, text } = data;
  switch (data.type) {
    case 'request': {
      const message = checkedRequest(data.message, ids);
      if (!message || !isId(id)) return undefined;
      if (data.requestId === undefined) return { type: 'request', id, message };
      const { requestId } = data;
      return typeof requestId === 'string' && UUID.test(requestId)
        ? { type: 'request', id, message, requestId }
        : undefined;
    }
    case 'reconnect':
      return { type: 'reconnect' };
    case 'draft':
    case 'copy':
      return isText(text) ? { type: data.type, text } : undefined;
    case 'place': {
      const place = checkedPlace(data.place);
      return place === undefined ? undefined : { type: 'place', place };
    }
    case 'open-link': {
      const href = checkedLink(data.href);
      return href === undefined ? undefined : { type: 'open-link', href };
    }
    case 'upload':
      return isId(id) && data.file instanceof Blob ? { type: 'upload', id, file: data.file } : undefined;
    case 'key': {
      const { key, code, ctrl, meta, alt, shift } = data;
      if (typeof key !== 'string' || typeof code !== 'string') return undefined;
      return {
        type: 'key',
        key,
        code,
        ctrl: ctrl === true,
        meta: meta === true,
        alt: alt === true,
        shift: shift === true,
      };
    }
    default:
      return undefined;
  }
}

/** The fields each request may have besides its id; the server validates their values. */
/** @type {Record<PortletRequest['type'], string[]>} */
const REQUESTS = {
  'agent:authenticate': ['methodId'],
  'agent:sign-in-type': ['text'],
  'agent:sign-in-answer': ['action'],
  'agent:sign-in-stop': [],
  'project:files': ['query', 'limit'],
  'session:page': ['before', 'limit'],
  'session:send': ['content', 'images'],
  'session:cancel': [],
  'session:attach': [],
  'session:queue-edit': ['queueId', 'content'],
  'session:queue-remove': ['queueId'],
  'session:queue-resume': [],
  'session:permit': ['permissionId', 'optionId'],
  'session:answer': ['questionId', 'action', 'content'],
  'session:policy': ['policy'],
  'session:set-mode': ['modeId'],
  'session:set-option': ['optionId', 'value'],
};

/** The id each request refers to, if it is not the session's. */
/** @type {Partial<Record<PortletRequest['type'], keyof Ids>>} */
const TARGET_ID = {
  'agent:authenticate': 'cliType',
  'agent:sign-in-type': 'cliType',
  'agent:sign-in-answer': 'cliType',
  'agent:sign-in-stop': 'cliType',
  'project:files': 'projectId',
};

/**
 * @param {unknown} message
 * @param {Ids} ids
 * @returns {PortletRequest | undefined}
 */
function checkedRequest(message, ids) {
  if (!isObject(message) || typeof message.type !== 'string' || !Object.hasOwn(REQUESTS, message.type))
    return undefined;
  // A page may omit its own ids and must not name others.
  const namesOtherId = Object.entries(ids).some(([name, id]) => message[name] !== undefined && message[name] !== id);
  if (namesOtherId) return undefined;
  const type = /** @type {PortletRequest['type']} */ (message.type);
  const fields = REQUESTS[type].filter((name) => message[name] !== undefined).map((name) => [name, message[name]]);
  const target = TARGET_ID[type] ?? 'sessionId';
  return /** @type {PortletRequest} */ ({ type, [target]: ids[target], ...Object.fromEntries(fields) });
}

/** @param {unknown} href */
function checkedLink(href) {
  if (typeof href !== 'string' || href.length > LINK_MAX || !URL.canParse(href)) return undefined;
  const url = new URL(href);
  return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : undefined;
}

/** @param {unknown} place @returns {ScrollPlace | null | undefined} */
function checkedPlace(place) {
  if (place === null) return null;
  if (!isObject(place)) return undefined;
  const { entryId, offset } = place;
  return typeof entryId === 'string' && typeof offset === 'number' && Number.isFinite(offset)
    ? { entryId, offset }
    : undefined;
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isObject(value) {
  return typeof value === 'object' && value !== null;
}

/** @param {unknown} value @returns {value is string} */
function isText(value) {
  return typeof value === 'string' && value.length <= TEXT_MAX;
}

/** @param {unknown} value @returns {value is number} */
function isId(value) {
  return Number.isSafeInteger(value);
}
