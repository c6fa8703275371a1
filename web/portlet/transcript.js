/**
 * The conversation as this page knows it: what the server said, folded in order. Pure but for growing
 * in place: one more chunk must not cost more in a long session than in a short one.
 *
 * Invariants: entries stand by their number without a gap, a `seq` counts once, and a message sent
 * from here stands either among `sent` or among `items`, never in both.
 *
 * @typedef {import('../types/wire.js').ChatEntry} ChatEntry
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').SessionInfo} SessionInfo
 * @typedef {import('../types/wire.js').Rendered} Rendered
 * @typedef {import('../types/wire.js').RenderedPart} RenderedPart
 *
 * @typedef {Extract<ServerMessage, { type: `session:${'update' | 'chunk' | 'complete' | 'cancelled'}` }>} Happening
 *
 * @typedef {object} Markup
 * @property {RenderedPart[]} finished  each to be added once
 * @property {RenderedPart[]} tail  replaces the last tail
 *
 * @typedef {object} Item
 * @property {string} id  stays while the entry is optimistic and when it is confirmed
 * @property {number} number  from 0, in the whole conversation; -1 before the server has it
 * @property {ChatEntry} entry
 * @property {Markup | null} markup
 * @property {import('../types/wire.js').ColouredDiff[]} diffs  of a tool call, in their order; empty if without colours
 * @property {number} version  grows with each change
 * @property {number} generation  grows when what was shown is replaced rather than continued
 * @property {Map<string, number>} output  per terminal, how much has been added since the last generation
 * @property {number | null} began  when we saw it begin; null for history
 * @property {number | null} ended
 * @property {'sending' | 'refused' | null} sending
 * @property {string} problem  why it was refused
 *
 * @typedef {object} Transcript
 * @property {Item[]} items
 * @property {Map<string, Item>} byId
 * @property {number} first  the number of the first item we have
 * @property {number} seq
 * @property {boolean} known  a history has come
 * @property {SessionInfo | null} info
 * @property {Item[]} sent  messages of ours that the server has not confirmed, oldest first
 * @property {Happening[] | null} early  while a page is on its way: what happened to entries that may be on it
 *
 * What a view has to look at again: everything; items from a number on; some items; nothing.
 * @typedef {object} Change
 * @property {boolean} all
 * @property {number} from  Infinity for none
 * @property {Item[]} items
 */

export const TERMINAL_OUTPUT_MAX = 1024 * 1024;
/** Cutting a long text costs its length, so it is done once in a while. */
const TERMINAL_OUTPUT_SLACK = 64 * 1024;

/** @returns {Transcript} */
export function emptyTranscript() {
  return { items: [], byId: new Map(), first: 0, seq: 0, known: false, info: null, sent: [], early: null };
}

/** One count for all, or an item of a new history could pass for the one it takes the place of. */
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
 * @param {number} now  milliseconds, only compared with each other
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
      return inform(transcript, message.info, now);
    case 'session:update':
    case 'session:chunk':
    case 'session:complete':
    case 'session:cancelled':
      // Replayed after a reconnect.
      if (message.seq <= transcript.seq) return NOTHING;
      transcript.seq = message.seq;
      return happen(transcript, message, now);
    default:
      return NOTHING;
  }
}

/** @param {Transcript} transcript @param {Happening} message @param {number} now @returns {Change} */
function happen(transcript, message, now) {
  if (message.type === 'session:update' && message.begins) return begin(transcript, message, now);
  const item = transcript.byId.get(message.type === 'session:update' ? message.entry.entryId : message.entryId);
  if (!item) {
    // Older than what we have: it comes with its page.
    transcript.early?.push(message);
    return NOTHING;
  }
  if (message.type === 'session:update') return update(item, message, now);
  if (message.type === 'session:chunk') return chunk(item, message);
  return finish(item, message, now);
}

/** Whether older entries have been asked for and have not come yet. @param {Transcript} transcript @param {boolean} waits */
export function awaitPage(transcript, waits) {
  transcript.early = waits ? [] : null;
}

/**
 * A message of ours, shown before the server has it.
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

/** @param {Transcript} transcript @param {string} requestId @returns {Item | undefined} */
export function takeBack(transcript, requestId) {
  const at = transcript.sent.findIndex((item) => item.id === requestId);
  return at < 0 ? undefined : transcript.sent.splice(at, 1)[0];
}

/** Whether more text may come for this item. @param {Transcript} transcript @param {Item} item */
export function grows(transcript, item) {
  return Boolean(transcript.info?.turn) && transcript.items.at(-1) === item;
}

/** @param {Transcript} transcript @param {Extract<ServerMessage, { type: 'session:history' }>} message */
function history(transcript, message) {
  // What is older than this history stays, where the two meet: somebody has scrolled up to it. But not a call
  // that still ran when we last heard of it.
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
    if (entry.type === 'user' && entry.requestId) takeBack(transcript, entry.requestId);
    transcript.items.push(item);
    transcript.byId.set(entry.entryId, item);
  }
  forgetQueued(transcript);
  return EVERYTHING;
}

/** @param {Transcript} transcript @param {Extract<ServerMessage, { type: 'session:page' }>} message @param {number} now */
function older(transcript, message, now) {
  // Only what ends exactly where we begin: a history may have come since it was asked for.
  if (message.entries.length === 0 || message.first + message.entries.length !== transcript.first) return NOTHING;
  const items = message.entries.map((entry, index) =>
    newItem(entry.entryId, message.first + index, entry, message.html?.[entry.entryId]),
  );
  for (const item of items) transcript.byId.set(item.entry.entryId, item);
  transcript.items = items.concat(transcript.items);
  transcript.first = message.first;
  // Its answer may have been overtaken.
  const later = (transcript.early ?? []).filter(({ seq }) => seq > message.seq);
  transcript.early = null;
  for (const one of later) happen(transcript, one, now);
  return EVERYTHING;
}

/** @param {Transcript} transcript @param {SessionInfo} info @param {number} now @returns {Change} */
function inform(transcript, info, now) {
  const before = transcript.info;
  transcript.info = info;
  forgetQueued(transcript);
  /** @type {Item[]} */
  const items = [];
  const last = transcript.items.at(-1);
  if (last && Boolean(before?.turn) !== Boolean(info.turn)) {
    if (!info.turn) end(last, now);
    items.push(touch(last));
  }
  const asked = [...(before?.permissions ?? []), ...info.permissions].map(({ toolCallId }) => toolCallId);
  for (let at = transcript.items.length - 1; asked.length > 0 && at >= 0; at -= 1) {
    const { entry } = transcript.items[at];
    if (entry.type === 'user') break;
    if (entry.type === 'tool-call' && asked.includes(entry.toolCallId)) items.push(touch(transcript.items[at]));
  }
  return { all: false, from: items[0] ? Math.min(...items.map(({ number }) => number)) : Infinity, items };
}

/** A message that waits in the queue is shown there. @param {Transcript} transcript */
function forgetQueued(transcript) {
  for (const { requestId } of transcript.info?.queue ?? []) if (requestId) takeBack(transcript, requestId);
}

/**
 * @param {Transcript} transcript
 * @param {Extract<ServerMessage, { type: 'session:update' }>} message
 * @param {number} now
 * @returns {Change}
 */
function begin(transcript, { entry, html }, now) {
  const requestId = entry.type === 'user' ? entry.requestId : undefined;
  const sent = requestId ? takeBack(transcript, requestId) : undefined;
  const number = transcript.first + transcript.items.length;
  const item = newItem(sent?.id ?? entry.entryId, number, entry, html);
  item.began = now;
  const last = transcript.items.at(-1);
  if (last) end(touch(last), now);
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
    if (!sameTerminals(before, entry)) renew(item);
  } else if (!continues(before, entry)) {
    renew(item);
  }
  item.diffs = html?.diffs ?? [];
  if (html?.finished || html?.tail) {
    item.markup = whole(html);
    item.generation = next();
  }
  return { all: false, from: item.number, items: [touch(item)] };
}

/** @param {Extract<ChatEntry, { type: 'tool-call' }>} before @param {Extract<ChatEntry, { type: 'tool-call' }>} after */
function sameTerminals(before, after) {
  const outputs = /** @param {typeof before} call */ (call) =>
    (call.content ?? []).map((part) => (part.type === 'terminal' ? part.output : null));
  const [old, now] = [outputs(before), outputs(after)];
  return old.length === now.length && old.every((output, index) => output === now[index]);
}

/** @param {ChatEntry} before @param {ChatEntry} after */
function continues(before, after) {
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
  return { all: false, from: Infinity, items: [touch(item)] };
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
  return { all: false, from: Infinity, items: [touch(item)] };
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

/** Says that an item has changed. @param {Item} item */
export function touch(item) {
  item.version = next();
  return item;
}

/** @param {Item} item */
function renew(item) {
  item.generation = next();
  item.output.clear();
  item.markup = null;
}

/** @param {Item} item @param {number} now */
function end(item, now) {
  if (item.began !== null && item.entry.type !== 'tool-call') item.ended ??= now;
}
