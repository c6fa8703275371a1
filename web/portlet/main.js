/**
 * Entry module of a session's page. Messages from the shell are applied to the transcript at once and shown once per
 * animation frame. `entry-views` renders entries, and `bridge` transports messages.
 */

import { h, part } from '../shared/dom.js';
import '../shared/exact-time.js';
import { icon } from '../shared/icons.js';
import { showSignInProgress } from '../shared/sign-in.js';
import { startAnnouncer } from './announcer.js';
import { connectBridge, RequestError } from './bridge.js';
import { startClosed } from './closed.js';
import { startComposer } from './composer.js';
import { rowView } from './entry-views.js';
import { startFind } from './find.js';
import { counted } from './format.js';
import { startHead } from './head.js';
import { startKeys } from './keys.js';
import { requestId } from './request-id.js';
import { toRows } from './rows.js';
import { startStatusLine } from './status-line.js';
import { apply, emptyTranscript, markChanged, optimistic, removeSent, setPageRequested } from './transcript.js';
import { welcome } from './welcome.js';
import { startWindow } from './window.js';

/** @typedef {import('./transcript.js').Item} Item */
/** @typedef {import('./rows.js').Row} Row */
/** @typedef {import('../types/bridge.js').ScrollPlace} ScrollPlace */

/** Entries per page of older entries. */
const PAGE = 200;
/** Maximum pages loaded to find a row, such as the one at the last scroll position. */
const PLACE_PAGES = 25;
/** Maximum file completions. */
const FILES = 20;
const PLACE_DELAY_MS = 250;
/** Height of the search bar in pixels; it covers the top of the conversation. */
const FIND_HEIGHT = 48;
/** Maximum wait for an animation frame; a page that is not painted gets none. */
const FRAME_MS = 120;

const transcript = emptyTranscript();
/** @type {Extract<import('../types/bridge.js').ToPortlet, { type: 'init' }> | null} */
let init = null;
/** @type {import('../types/wire.js').AgentState} */
let status = 'idle';
let reason = '';
let online = true;
let shown = true;
/** Whether the shell has asked for focus and the input does not have it yet. */
let focusRequested = false;

/** @type {Row[]} */
let rows = [];
/** @type {Map<string, Row>} */
const rowOfItem = new Map();
/** @type {Set<Item>} */
const dirty = new Set();
let rowsFrom = Infinity;
let allChanged = false;
let infoChanged = false;
let scheduled = false;
/** @type {Promise<void> | null} */
let loading = null;
/** Number of the last entry when the user scrolled away from the end. */
let lastSeen = -1;

const bridge = connectBridge(receive);

/** @type {import('./view-context.js').ViewContext} */
const context = {
  transcript,
  agentName: () => init?.agent.name ?? 'The agent',
  projectPath: () => init?.projectPath ?? '',
  pass: () => init?.pass ?? '',
  opened: new Map(),
  copy: (text) => bridge.send({ type: 'copy', text }),
  openLink: (href) => bridge.send({ type: 'open-link', href }),
  permit: async (permissionId, optionId) => {
    await bridge.request({ type: 'session:permit', permissionId, optionId });
  },
  answer: async (questionId, action, content) => {
    await bridge.request({ type: 'session:answer', questionId, action, ...(content && { content }) });
  },
  drafts: new Map(),
  leave: () => composer.focus(),
  sendAgain: (item) => {
    if (item.entry.type !== 'user') return;
    // An unconfirmed message keeps its request id, so that the server runs it only once.
    if (item.sending) transmit(item);
    else send(item.entry.content, item.entry.images ?? []);
  },
  discard: (item) => {
    removeSent(transcript, item.id);
    if (item.entry.type === 'user') composer.fill(item.entry.content);
    rowsChanged(Infinity);
  },
  reconnect: () => bridge.send({ type: 'reconnect' }),
  signIn: () => init?.agent.signIn ?? [],
  signInRequest: (message) => bridge.request(message),
  cliType: () => init?.agent.cliType ?? '',
};

const conversation = part('conversation', HTMLElement);
const scroller = part('scroller', HTMLElement);
const latest = part('latest', HTMLButtonElement);
const empty = h('div', { class: 'empty-session' });
const view = startWindow(scroller, conversation, {
  make: (row) => rowView(row, context),
  onNearTop: loadOlder,
  onMoved: moved,
});
const head = startHead(part('head', HTMLElement), context.reconnect);
const announcer = startAnnouncer(part('announcer', HTMLElement));
const line = h('div', { class: 'status-line' });
part('composer', HTMLElement).append(line);
const composer = startComposer(part('composer', HTMLElement), {
  send,
  queue: (content, images) => bridge.request({ type: 'session:send', content, images }, requestId()),
  stop: () => bridge.request({ type: 'session:cancel' }),
  restart: context.reconnect,
  draft: (text) => bridge.send({ type: 'draft', text }),
  upload: bridge.upload,
  prompts: () => transcript.items.flatMap(({ entry }) => (entry.type === 'user' ? [entry.content] : [])),
  files: async (query) => {
    const found = await bridge.request({ type: 'project:files', query, limit: FILES });
    return found.type === 'project:files' ? found.files : [];
  },
  showQuestion,
  queued: {
    edit: (queueId, content) => bridge.request({ type: 'session:queue-edit', queueId, content }),
    remove: (queueId) => bridge.request({ type: 'session:queue-remove', queueId }),
    resume: () => bridge.request({ type: 'session:queue-resume' }),
  },
});
const closed = startClosed(part('composer', HTMLElement), {
  attach: () => bridge.request({ type: 'session:attach' }),
  context,
});
const find = startFind(part('chat', HTMLElement), {
  items: () => transcript.items,
  more: () => transcript.first > 0 && online,
  older: loadOlder,
  show: showItem,
  reveal,
  left: () => composer.focus(),
});
const statusLine = startStatusLine(line, {
  setMode: (modeId) => bridge.request({ type: 'session:set-mode', modeId }),
  setOption: (optionId, value) => bridge.request({ type: 'session:set-option', optionId, value }),
  setPolicy: (policy) => bridge.request({ type: 'session:policy', policy }),
  showError: (message) => {
    composer.showError(message);
    infoChanged = true;
    schedule();
  },
});

/** @param {import('../types/bridge.js').ToPortlet} message */
function receive(message) {
  switch (message.type) {
    case 'init':
      init = message;
      status = message.agent.status;
      document.title = message.session.title;
      theme(message.theme);
      composer.fill(message.draft);
      infoChanged = true;
      break;
    case 'server':
      applyMessage(message.message);
      break;
    case 'agent':
      status = message.status;
      reason = message.reason ?? '';
      if (init) init.agent = { ...init.agent, signIn: message.signIn };
      // The last entry may show the agent's sign-in methods.
      if (transcript.items.length > 0) dirty.add(transcript.items[transcript.items.length - 1]);
      infoChanged = true;
      break;
    case 'title':
      if (init) init.session = { ...init.session, title: message.title };
      document.title = message.title;
      infoChanged = true;
      break;
    case 'connection':
      online = message.open;
      if (init) init.pass = message.pass;
      infoChanged = true;
      break;
    case 'shown':
      shown = message.shown;
      focusRequested &&= shown;
      if (shown) flush();
      break;
    case 'focus':
      // Not on a touch screen, where the on-screen keyboard would cover the conversation.
      focusRequested = !matchMedia('(pointer: coarse)').matches;
      takeFocus();
      break;
    case 'do':
      if (message.what === 'stop') composer.stop();
      else if (message.what === 'find') find.open();
      else view.toEnd();
      break;
    case 'theme':
      theme(message.theme);
  }
  schedule();
}

/**
 * Focuses the input once this frame has the focus. The shell's request may arrive before the browser has moved the
 * focus here; focusing the input earlier could take the focus from a field the user is typing in.
 */
function takeFocus() {
  if (!focusRequested || !document.hasFocus()) return;
  focusRequested = false;
  composer.focus();
}

/** @param {import('../types/wire.js').ServerMessage} message */
function applyMessage(message) {
  if (message.type === 'error') return composer.showError(message.message);
  if (message.type === 'agent:sign-in') return showSignInProgress(message);
  const first = message.type === 'session:history' && !transcript.known;
  const change = apply(transcript, message, performance.now());
  allChanged ||= change.all;
  rowsFrom = Math.min(rowsFrom, change.from);
  for (const item of change.items) dirty.add(item);
  infoChanged ||= 'info' in message;
  if (message.type === 'session:history' || message.type === 'session:resumed') resendUnconfirmed();
  if (first && init?.place) returnTo(init.place);
}

/** Restores the last scroll position, unless the user scrolls meanwhile. @param {ScrollPlace} place */
async function returnTo({ entryId, offset }) {
  returning = true;
  const row = await findRow(() => rowOfItem.get(entryId), view.following);
  returning = false;
  if (row && view.following()) view.toRow(row.id, offset);
}

/** Finds a row, loading older pages as needed. @param {() => Row | undefined} find @param {() => boolean} [isWanted] */
async function findRow(find, isWanted = () => true) {
  flush();
  for (let page = 0; page < PLACE_PAGES && !find() && isWanted(); page += 1) {
    const before = transcript.first;
    await loadOlder();
    flush();
    if (transcript.first === before) break;
  }
  return find();
}

/** Resends unconfirmed messages under their ids after a reconnect. */
function resendUnconfirmed() {
  for (const item of transcript.sent) if (item.sending === 'refused' && item.problem === AWAY) transmit(item);
}

const AWAY = 'The server is not reachable. The message is sent after the reconnect.';

/** @param {string} content @param {string[]} images */
function send(content, images) {
  const item = optimistic(transcript, requestId(), content, images, new Date().toISOString());
  view.toEnd();
  transmit(item);
}

/** @param {Item} item */
async function transmit(item) {
  if (item.entry.type !== 'user') return;
  setSending(item, 'sending', '');
  const { content, images } = item.entry;
  try {
    await bridge.request({ type: 'session:send', content, ...(images && { images }) }, item.id);
  } catch (error) {
    const away = error instanceof RequestError && (error.code === 'OFFLINE' || error.code === 'LATE');
    setSending(item, 'refused', away ? AWAY : error instanceof Error ? error.message : String(error));
  }
}

/** @param {Item} item @param {Item['sending']} sending @param {string} problem */
function setSending(item, sending, problem) {
  item.sending = sending;
  item.problem = problem;
  markChanged(item);
  rowsChanged(Infinity);
}

/** @param {number} from */
function rowsChanged(from) {
  rowsFrom = Math.min(rowsFrom, from, Number.MAX_SAFE_INTEGER);
  schedule();
}

/** Loads a page of older entries. Concurrent calls share one request. */
function loadOlder() {
  if (!transcript.known || transcript.first === 0 || !online) return Promise.resolve();
  loading ??= fetchOlder().finally(() => {
    loading = null;
    schedule();
  });
  return loading;
}

async function fetchOlder() {
  setPageRequested(transcript, true);
  try {
    applyMessage(await bridge.request({ type: 'session:page', before: transcript.first, limit: PAGE }));
  } catch {
    // Requested again on the next scroll.
  }
  setPageRequested(transcript, false);
}

function schedule() {
  if (scheduled || !shown) return;
  scheduled = true;
  const fallback = setTimeout(flush, FRAME_MS);
  requestAnimationFrame(() => {
    clearTimeout(fallback);
    if (scheduled) flush();
  });
}

/** Renders all changes since the last call. */
function flush() {
  scheduled = false;
  if (!init || !shown) return;
  const structure = allChanged || rowsFrom !== Infinity;
  if (structure) {
    if (allChanged) rowOfItem.clear();
    const kept = allChanged ? [] : rows.filter((row) => row.items[0].number >= 0);
    const folded = toRows(kept, transcript.items, allChanged ? 0 : rowsFrom, needsPermission);
    const sent = transcript.sent.map((item) => ({ id: item.id, items: [item], headed: false }));
    const before = rows;
    rows = [...folded, ...sent];
    for (let at = rows.length - 1; at >= 0 && rows[at] !== before[at]; at -= 1) {
      for (const item of rows[at].items) rowOfItem.set(item.entry.entryId || item.id, rows[at]);
    }
    view.show(rows);
    showEmpty();
  } else if (dirty.size > 0) {
    const ids = new Map(
      [...dirty].map((item) => rowOfItem.get(item.entry.entryId)).flatMap((row) => (row ? [[row.id, row]] : [])),
    );
    view.refresh((id) => ids.get(id), ids.keys());
  }
  allChanged = false;
  rowsFrom = Infinity;
  dirty.clear();
  if (infoChanged) showInfo();
  moved();
}

/** @param {Item} item */
function needsPermission(item) {
  const { entry } = item;
  return (
    entry.type === 'tool-call' &&
    Boolean(transcript.info?.permissions.some(({ toolCallId }) => toolCallId === entry.toolCallId))
  );
}

function showInfo() {
  infoChanged = false;
  if (!init) return;
  const { session, projectName } = init;
  const agentName = context.agentName();
  head.show({ title: session.title, agentName, projectName, status, reason, online });
  showEmpty();
  if (!transcript.info) return;
  composer.show({ info: transcript.info, agentName, status, online });
  // If the agent is disconnected, the header shows it instead.
  closed.show(status === 'connected' && online ? transcript.info.problem : undefined);
  statusLine.show(transcript.info, agentName, online);
  announcer.update(transcript.info, transcript.items.at(-1)?.entry, agentName);
  tick();
}

function showEmpty() {
  const nothing = transcript.known && rows.length === 0;
  if (nothing && !empty.isConnected) {
    empty.replaceChildren(...welcome(context.agentName(), init?.projectPath || init?.projectName || ''));
    scroller.append(empty);
  } else if (!nothing) {
    empty.remove();
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let placeTimer;
/** Whether the last scroll position is being restored. */
let returning = false;
function moved() {
  const following = view.following();
  const last = transcript.items.at(-1)?.number ?? -1;
  if (following) lastSeen = last;
  const count = transcript.items
    .slice(Math.max(0, lastSeen + 1 - transcript.first))
    .filter(({ entry }) => entry.type !== 'turn').length;
  const label = count > 0 ? `${counted(count, 'new entry', 'new entries')}, to the latest` : 'To the latest';
  latest.hidden = following;
  composer.remind(isQuestionAway());
  if (latest.getAttribute('aria-label') !== label) {
    latest.setAttribute('aria-label', label);
    latest.replaceChildren(icon('down'), count > 0 ? `${count} new` : 'Latest');
  }
  clearTimeout(placeTimer);
  placeTimer = setTimeout(() => {
    if (returning) return;
    const place = view.place();
    const entryId = place && rows.find((row) => row.id === place.id)?.items[0].entry.entryId;
    bridge.send({ type: 'place', place: place && entryId ? { entryId, offset: place.offset } : null });
  }, PLACE_DELAY_MS);
}

/** Whether there are open requests to the user and all of them are out of view. */
function isQuestionAway() {
  const { permissions = [], questions = [] } = transcript.info ?? {};
  if (permissions.length + questions.length === 0) return false;
  const place = scroller.getBoundingClientRect();
  return ![...conversation.querySelectorAll('.question')].some((question) => {
    const { top, bottom } = question.getBoundingClientRect();
    return bottom > place.top && top < place.bottom;
  });
}

/** Expands an entry, scrolls to it and returns its element. @param {Item} item */
function showItem(item) {
  flush();
  const { entry } = item;
  const row = rowOfItem.get(entry.entryId);
  if (!row) return null;
  const opens = [
    `said-${entry.entryId}`,
    `thinking-${entry.entryId}`,
    `tool-${entry.entryId}`,
    ...(row.items.length > 1 ? [row.id] : []),
  ];
  for (const key of opens) context.opened.set(key, true);
  markChanged(item);
  view.toRow(row.id);
  view.refresh(() => row, [row.id]);
  /** @type {NodeListOf<HTMLElement>} */
  const shownRows = conversation.querySelectorAll('.row');
  return [...shownRows].find((element) => element.dataset.row === row.id) ?? null;
}

/** Scrolls a range of text into view, in all scroll containers around it. @param {Range} range */
function reveal(range) {
  range.startContainer.parentElement?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  const [place, text] = [scroller.getBoundingClientRect(), range.getBoundingClientRect()];
  if (text.top >= place.top + FIND_HEIGHT && text.bottom <= place.bottom) return;
  scroller.scrollTop += text.top - place.top - place.height / 3;
}

async function showQuestion() {
  const permission = transcript.info?.permissions[0];
  const question = transcript.info?.questions[0];
  const row = await findRow(() => {
    const item = transcript.items.findLast(({ entry }) =>
      permission
        ? entry.type === 'tool-call' && entry.toolCallId === permission.toolCallId
        : entry.entryId === question?.entryId,
    );
    return item && rowOfItem.get(item.entry.entryId);
  });
  if (!row) return;
  view.toRow(row.id);
  const control = conversation.querySelector('.question :is(button, input, select, textarea)');
  if (control instanceof HTMLElement) control.focus({ preventScroll: true });
}

function tick() {
  const turn = transcript.info?.turn;
  const now = Date.now();
  composer.tick(now);
  statusLine.tick(turn && online ? now - Date.parse(turn.startedAt) : null);
}
setInterval(() => {
  if (shown && online && (transcript.info?.turn || status === 'starting')) tick();
}, 1000);

/** @param {'dark' | 'light' | null | undefined} chosen */
function theme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
}

latest.addEventListener('click', () => {
  view.toEnd();
  composer.focus();
});
conversation.addEventListener('click', (event) => {
  const opens = event.target instanceof Element ? event.target.closest('summary, .link-button') : null;
  const row = /** @type {HTMLElement | null} */ (opens?.closest('.row') ?? null);
  if (row?.dataset.row) view.hold(row.dataset.row);
  openLinkInShell(event);
});
// A middle click would open the link without the shell.
conversation.addEventListener('auxclick', (event) => {
  if (event.button === 1) openLinkInShell(event);
});

/** @param {MouseEvent} event */
function openLinkInShell(event) {
  const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
  if (!link || event.defaultPrevented) return;
  event.preventDefault();
  context.openLink(link.getAttribute('href') ?? '');
}

addEventListener('focus', takeFocus);
startKeys({
  find: () => !find.has() && find.open(),
  question: () => transcript.info?.permissions[0],
  answer: ({ permissionId }, { optionId }) => {
    context.permit(permissionId, optionId).catch((error) => composer.showError(error.message));
  },
  stop: () => {
    if (transcript.info?.turn) composer.stop();
    return Boolean(transcript.info?.turn);
  },
  pass: (key) => bridge.send({ type: 'key', ...key }),
});
