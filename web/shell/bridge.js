/**
 * The only module of the shell that talks to another window: it makes the sandboxed frame of one session and
 * gives it, once, one end of a channel. Whatever else sends messages to this window is not heard.
 *
 * What comes through the channel was written by a page that shows what agents say, so it is taken apart here
 * and only what the contract names goes on.
 *
 * @typedef {import('../types/bridge.js').ToPortlet} ToPortlet
 * @typedef {import('../types/bridge.js').FromPortlet} FromPortlet
 * @typedef {import('../types/bridge.js').PortletRequest} PortletRequest
 * @typedef {import('../types/bridge.js').ScrollPlace} ScrollPlace
 *
 * What a page is about, and may ask about.
 * @typedef {object} Ids
 * @property {string} sessionId
 * @property {string} projectId
 * @property {string} cliType
 *
 * @typedef {object} Listener
 * @property {() => void} onReady  the page is there and reads what is sent
 * @property {(message: FromPortlet) => void} onSaid
 * @property {() => void} onLost  the page was replaced by another one, which gets nothing
 */

import { h } from '../shared/dom.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const TEXT_MAX = 1_000_000;
const LINK_MAX = 8192;

/**
 * A page that belongs to nobody yet: it loads, and nothing it says is heard before it is claimed.
 * @param {HTMLElement} place
 */
export function openBridge(place) {
  const frame = h('iframe', { sandbox: 'allow-scripts', src: '/portlet.html' });
  const { port1: ours, port2: theirs } = new MessageChannel();
  let given = false;
  let loads = 0;
  /** @type {{ ids: Ids, listener: Listener } | null} */
  let owner = null;

  /** @param {MessageEvent} event */
  const hear = ({ source, data }) => {
    if (given || source !== frame.contentWindow || data?.type !== 'portlet:ready') return;
    given = true;
    // Its origin is opaque, so no other target than `*` can name it; `source` is what names it.
    frame.contentWindow?.postMessage({ type: 'portlet:port' }, '*', [theirs]);
    owner?.listener.onReady();
  };
  ours.onmessage = ({ data }) => {
    const message = owner && checked(data, owner.ids);
    if (message) owner?.listener.onSaid(message);
  };
  addEventListener('message', hear);
  frame.addEventListener('load', () => {
    loads += 1;
    if (loads > 1) owner?.listener.onLost();
  });
  place.append(frame);

  return {
    frame,
    /** From now on it is this session's. @param {Ids} ids @param {string} title @param {Listener} listener */
    claim: (ids, title, listener) => {
      owner = { ids, listener };
      frame.title = title;
      if (loads > 1) listener.onLost();
      else if (given) listener.onReady();
    },
    /** Whether some page is there, ours or another. */
    loaded: () => loads > 0,
    /** @param {ToPortlet} message */
    say: (message) => ours.postMessage(message),
    /** Nothing goes through any more. */
    hush: () => {
      removeEventListener('message', hear);
      ours.close();
    },
  };
}

/**
 * A message of the contract with nothing more in it than the contract says, or nothing.
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

/** The fields each request may have beside what it is about; the server checks what stands in them. */
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

/** What a request is about, if not the session. */
/** @type {Partial<Record<PortletRequest['type'], keyof Ids>>} */
const ABOUT = {
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
  // A page may leave its own ids out; another one's it may not name.
  const others = Object.entries(ids).some(([name, id]) => message[name] !== undefined && message[name] !== id);
  if (others) return undefined;
  const type = /** @type {PortletRequest['type']} */ (message.type);
  const fields = REQUESTS[type].filter((name) => message[name] !== undefined).map((name) => [name, message[name]]);
  const about = ABOUT[type] ?? 'sessionId';
  return /** @type {PortletRequest} */ ({ type, [about]: ids[about], ...Object.fromEntries(fields) });
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
