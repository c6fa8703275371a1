/**
 * The client's copy of the conversation: the server's messages folded in order. Free of side effects, except that the
 * transcript is changed in place, because a chunk must cost the same in a long session as in a short one.
 *
 * Invariants: `items` are ordered by number without gaps, each `seq` is applied once, and a message sent by this client
 * is either in `sent` or in `items`, never in both.
 *
 * @typedef {import('../types/wire.js').ChatEntry} ChatEntry
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').SessionInfo} SessionInfo
 * @typedef {import('../types/wire.js').Rendered} Rendered
 * @typedef {import('../types/wire.js').RenderedPart} RenderedPart
 *
 * @typedef {Extract<ServerMessage, { type: `session:${'update' | 'chunk' | 'complete' | 'cancelled'}` }>} EntryEvent
 *
 * @typedef {object} Markup
 * @property {RenderedPart[]} finished  parts that do not change any more
 * @property {RenderedPart[]} tail  parts that the next chunk replaces
 *
 * @typedef {object} Item
 * @property {string} id  stable from the optimistic entry to the confirmed one
 * @property {number} number  position in the whole conversation, from 0; -1 until the server confirms the entry
 * @property {ChatEntry} entry
 * @property {Markup | null} markup
 * @property {import('../types/wire.js').ColouredDiff[]} diffs  highlighted diffs of a tool call, in order
 * @property {number} version  increases with each change
 * @property {number} generation  increases when the content is replaced instead of extended
 * @property {Map<string, number>} output  characters added since the last generation, by terminal id
 * @property {number | null} began  when this client saw the entry begin; null for an entry from a history
 * @property {number | null} ended
 * @property {'sending' | 'refused' | null} sending
 * @property {string} problem  why the message could not be sent
 *
 * @typedef {object} Transcript
 * @property {Item[]} items
 * @property {Map<string, Item>} byId
 * @property {number} first  number of the first loaded item
 * @property {number} seq  number of the last applied event
 * @property {boolean} known  whether a history has been received
 * @property {SessionInfo | null} info
 * @property {Item[]} sent  messages sent by this client and not yet confirmed, oldest first
 * @property {EntryEvent[] | null} early  events for unloaded entries, kept while a page of older entries is requested
 *
 * What the views must update: everything, the items from a number on, or single items.
 * @typedef {object} Change
 * @property {boolean} all
 * @property {number} from  Infinity for none
 * @property {Item[]} items
 */

export const TERMINAL_OUTPUT_MAX = 1024 * 1024;
/** Characters over the maximum before output is trimmed. Trimming copies the whole text, so it must be rare. */
const TERMINAL_OUTPUT_SLACK = 64 * 1024;

/** @returns {Transcript} */
export function emptyTranscript() {
  return { items: [], byId: new Map(), first: 0, seq: 0, known: false, info: null, sent: [], early: null };
}

/** Shared by all items, so that an item of a new history never has the version of the item it replaces. */
let stamps = 0;
const next = () => {
  stamps += 1;
  return stamps;
};

/** @type {Change} */
const NOTHING = { all: false, from: Infinity, items: [] };
/** @type {Change} */
const EVERYTHING = { all: true, from: 0, items: [] };

/**
 * @param {Transcript} transcript
 * @param {ServerMessage} message
 * @param {number} now  monotonic time in milliseconds
 * @returns {Change}
 */
export function apply(transcript, message, now) {
  switch (message.type) {
    case 'session:history':
      return history(transcript, message);
    case 'session:page':
      return older(transcript, message, now);
    case 'session:resumed':
    case 'session:info':
      return applyInfo(transcript, message.info, now);
    case 'session:update':
    case 'session:chunk':
    case 'session:complete':
    case 'session:cancelled':
      // An event replayed after a reconnect is applied only once.
      if (message.seq <= transcript.seq) return NOTHING;
      transcript.seq = message.seq;
      return applyEvent(transcript, message, now);
    default:
      return NOTHING;
  }
}

/** @param {Transcript} transcript @param {EntryEvent} message @param {number} now @returns {Change} */
function applyEvent(transcript, message, now) {
  if (message.type === 'session:update' && message.begins) return begin(transcript, message, now);
  const item = transcript.byId.get(message.type === 'session:update' ? message.entry.entryId : message.entryId);
  if (!item) {
    // The entry is older than the loaded ones; its page will contain it.
    transcript.early?.push(message);
    return NOTHING;
  }
  if (message.type === 'session:update') return update(item, message, now);
  if (message.type === 'session:chunk') return chunk(item, message);
  return finish(item, message, now);
}

/** Sets whether a page of older entries is requested. @param {Transcript} transcript @param {boolean} waits */
export function setPageRequested(transcript, waits) {
  transcript.early = waits ? [] : null;
}

/**
 * Adds a message of this client before the server has confirmed it.
 * @param {Transcript} transcript
 * @param {string} requestId
 * @param {string} content
 * @param {string[]} images
 * @param {string} timestamp
 * @returns {Item}
 */
export function optimistic(transcript, requestId, content, images, timestamp) {
  /** @type {ChatEntry} */
  const entry = { type: 'user', entryId: '', content, timestamp, requestId, ...(images.length > 0 && { images }) };
  const item = newItem(requestId, -1, entry, undefined);
  item.sending = 'sending';
  transcript.sent.push(item);
  return item;
}

/** Removes an unconfirmed message. @param {Transcript} transcript @param {string} requestId @returns {Item | undefined} */
export function removeSent(transcript, requestId) {
  const at = transcript.sent.findIndex((item) => item.id === requestId);
  return at < 0 ? undefined : transcript.sent.splice(at, 1)[0];
}

/** Whether the item may still receive text. @param {Transcript} transcript @param {Item} item */
export function mayGrow(transcript, item) {
  return Boolean(transcript.info?.turn) && transcript.items.at(-1) === item;
}

/** @param {Transcript} transcript @param {Extract<ServerMessage, { type: 'session:history' }>} message */
function history(transcript, message) {
  // Older items that adjoin this history are kept, because the user may have scrolled up to them. A tool call that was
  // last seen running may have ended since, so it and everything before it is dropped.
  const meeting = message.entries.length > 0 ? transcript.byId.get(message.entries[0].entryId) : undefined;
  const before = meeting?.number === message.first ? transcript.items.slice(0, message.first - transcript.first) : [];
  const kept = before.slice(before.findLastIndex(({ entry }) => 'status' in entry && entry.status === 'running') + 1);
  transcript.items = kept;
  transcript.byId = new Map(kept.map((item) => [item.entry.entryId, item]));
  transcript.first = message.first - kept.length;
  transcript.seq = message.seq;
  transcript.known = true;
  transcript.info = message.info;
  for (const [index, entry] of message.entries.entries()) {
    const item = newItem(entry.entryId, message.first + index, entry, message.html?.[entry.entryId]);
    if (entry.type === 'user' && entry.requestId) removeSent(transcript, entry.requestId);
    transcript.items.push(item);
    transcript.byId.set(entry.entryId, item);
  }
  removeQueued(transcript);
  return EVERYTHING;
}

/** @param {Transcript} transcript @param {Extract<ServerMessage, { type: 'session:page' }>} message @param {number} now */
function older(transcript, message, now) {
  // A history received after the request may have changed the first item; the page must end right before it.
  if (message.entries.length === 0 || message.first + message.entries.length !== transcript.first) return NOTHING;
  const items = message.entries.map((entry, index) =>
    newItem(entry.entryId, message.first + index, entry, message.html?.[entry.entryId]),
  );
  for (const item of items) transcript.byId.set(item.entry.entryId, item);
  transcript.items = items.concat(transcript.items);
  transcript.first = message.first;
  // Apply the events that are newer than the page.
  const later = (transcript.early ?? []).filter(({ seq }) => seq > message.seq);
  transcript.early = null;
  for (const one of later) applyEvent(transcript, one, now);
  return EVERYTHING;
}

/** @param {Transcript} transcript @param {SessionInfo} info @param {number} now @returns {Change} */
function applyInfo(transcript, info, now) {
  const before = transcript.info;
  transcript.info = info;
  removeQueued(transcript);
  /** @type {Item[]} */
  const items = [];
  const last = transcript.items.at(-1);
  if (last && Boolean(before?.turn) !== Boolean(info.turn)) {
    if (!info.turn) end(last, now);
    items.push(markChanged(last));
  }
  const toolCallIds = [...(before?.permissions ?? []), ...info.permissions].map(({ toolCallId }) => toolCallId);
  for (let at = transcript.items.length - 1; toolCallIds.length > 0 && at >= 0; at -= 1) {
    const { entry } = transcript.items[at];
    if (entry.type === 'user') break;
    if (entry.type === 'tool-call' && toolCallIds.includes(entry.toolCallId))
      items.push(markChanged(transcript.items[at]));
  }
  return { all: false, from: items[0] ? Math.min(...items.map(({ number }) => number)) : Infinity, items };
}

/** Removes the sent messages that are in the queue, which shows them. @param {Transcript} transcript */
function removeQueued(transcript) {
  for (const { requestId } of transcript.info?.queue ?? []) if (requestId) removeSent(transcript, requestId);
}

/**
 * @param {Transcript} transcript
 * @param {Extract<ServerMessage, { type: 'session:update' }>} message
 * @param {number} now
 * @returns {Change}
 */
function begin(transcript, { entry, html }, now) {
  const requestId = entry.type === 'user' ? entry.requestId : undefined;
  const sent = requestId ? removeSent(transcript, requestId) : undefined;
  const number = transcript.first + transcript.items.length;
  const item = newItem(sent?.id ?? entry.entryId, number, entry, html);
  item.began = now;
  const last = transcript.items.at(-1);
  if (last) end(markChanged(last), now);
  transcript.items.push(item);
  transcript.byId.set(entry.entryId, item);
  return { all: false, from: last?.number ?? number, items: last ? [last, item] : [item] };
}

/** @param {Item} item @param {Extract<ServerMessage, { type: 'session:update' }>} message @param {number} now @returns {Change} */
function update(item, { entry, html }, now) {
  const before = item.entry;
  item.entry = entry;
  if (entry.type === 'tool-call' && before.type === 'tool-call') {
    if (entry.status !== 'running' && before.status === 'running') item.ended = now;
    if (!sameTerminals(before, entry)) replaceContent(item);
  } else if (!isContinuation(before, entry)) {
    replaceContent(item);
  }
  item.diffs = html?.diffs ?? [];
  if (html?.finished || html?.tail) {
    item.markup = whole(html);
    item.generation = next();
  }
  return { all: false, from: item.number, items: [markChanged(item)] };
}

/** @param {Extract<ChatEntry, { type: 'tool-call' }>} before @param {Extract<ChatEntry, { type: 'tool-call' }>} after */
function sameTerminals(before, after) {
  const outputs = /** @param {typeof before} call */ (call) =>
    (call.content ?? []).map((part) => (part.type === 'terminal' ? part.output : null));
  const [old, now] = [outputs(before), outputs(after)];
  return old.length === now.length && old.every((output, index) => output === now[index]);
}

/** @param {ChatEntry} before @param {ChatEntry} after */
function isContinuation(before, after) {
  return 'content' in before && 'content' in after && typeof before.content === 'string'
    ? typeof after.content === 'string' && after.content.startsWith(before.content)
    : false;
}

/** @param {Item} item @param {Extract<ServerMessage, { type: 'session:chunk' }>} message @returns {Change} */
function chunk(item, { content, html, terminalId }) {
  const { entry } = item;
  if (entry.type === 'tool-call') {
    const shown = entry.content?.find((part) => part.type === 'terminal' && part.terminalId === terminalId);
    if (shown?.type !== 'terminal' || terminalId === undefined) return NOTHING;
    shown.output += content;
    if (shown.output.length > TERMINAL_OUTPUT_MAX + TERMINAL_OUTPUT_SLACK) {
      shown.output = shown.output.slice(-TERMINAL_OUTPUT_MAX);
    }
    item.output.set(terminalId, (item.output.get(terminalId) ?? 0) + content.length);
  } else if (entry.type === 'assistant' || entry.type === 'thinking' || entry.type === 'user') {
    entry.content += content;
    if (html) {
      item.markup ??= { finished: [], tail: [] };
      grow(item.markup, html);
    }
  } else {
    return NOTHING;
  }
  return { all: false, from: Infinity, items: [markChanged(item)] };
}

/**
 * @param {Item} item
 * @param {Extract<ServerMessage, { type: 'session:complete' | 'session:cancelled' }>} message
 * @param {number} now
 * @returns {Change}
 */
function finish(item, message, now) {
  end(item, now);
  if (message.html && item.markup) grow(item.markup, message.html);
  return { all: false, from: Infinity, items: [markChanged(item)] };
}

/** @param {Rendered} html @returns {Markup} */
const whole = ({ finished = [], tail = [] }) => ({ finished: [...finished], tail });

/** @param {Markup} markup @param {Rendered} more */
function grow(markup, { finished = [], tail = [] }) {
  markup.finished.push(...finished);
  markup.tail = tail;
}

/** @param {string} id @param {number} number @param {ChatEntry} entry @param {Rendered | undefined} html @returns {Item} */
function newItem(id, number, entry, html) {
  return {
    id,
    number,
    entry,
    markup: html ? whole(html) : null,
    diffs: html?.diffs ?? [],
    version: next(),
    generation: next(),
    output: new Map(),
    began: null,
    ended: null,
    sending: null,
    problem: '',
  };
}

/** Marks an item as changed. @param {Item} item */
export function markChanged(item) {
  item.version = next();
  return item;
}

/** @param {Item} item */
function replaceContent(item) {
  item.generation = next();
  item.output.clear();
  item.markup = null;
}

/** @param {Item} item @param {number} now */
function end(item, now) {
  if (item.began !== null && item.entry.type !== 'tool-call') item.ended ??= now;
}
