/**
 * The frames of the open sessions. A frame is created when its tab is first shown and stays alive while hidden. Server
 * messages about a session are forwarded to its page, requests of the page to the server. A page that has been hidden
 * for a moment is unsubscribed, which saves rendering and traffic; when it is shown again, its stream is resumed.
 *
 * A frame is loaded only while the server is connected, and one that was loading when the connection was lost is replaced
 * before it receives anything: another program may have answered.
 *
 * Invariant: a page receives a history first, and then every message once and in order, also across lost connections
 * and times when it was hidden.
 *
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 * @typedef {import('../types/bridge.js').ToPortlet} ToPortlet
 * @typedef {import('../types/bridge.js').FromPortlet} FromPortlet
 * @typedef {import('./workspace.js').Agent} Agent
 * @typedef {import('./workspace.js').Workspace} Workspace
 *
 * @typedef {object} Dependencies
 * @property {import('./socket.js').Socket} socket
 * @property {ReturnType<typeof import('./drafts.js').startDrafts>} drafts
 * @property {import('./places.js').Places} places
 * @property {(key: import('./shortcuts.js').Key) => void} onKey
 * @property {(cliType: string) => void} onReconnect
 * @property {(sessionId: string) => void} onGone  called when the server does not know the session
 * @property {(text: string) => void} copy
 */

import { h } from '../shared/dom.js';
import { chosenTheme } from '../shared/theme.js';
import { openBridge } from './bridge.js';
import { receive, requested, UNREAD } from './reading.js';
import { RequestError } from './socket.js';
import { find } from './workspace.js';

/** Entries in the first history, enough to fill a tall window; the page requests older ones as needed. */
const TAIL = 40;
/** Entries in the first history of a session whose stored scroll position is not at the end. */
const TAIL_BEHIND = 200;
/** Maximum messages held for a page that is still loading; beyond this the page gets a new history instead. */
const WAITING_MAX = 2000;
/** Deadline for a loaded page to request its port; a page that misses it is broken or another page. */
const SILENT_MS = 5000;
/**
 * A frame that became ready less than this before the connection was lost is replaced, too: the loss may be noticed
 * after the frame of another program. Loading a frame takes longer than a closed connection is late.
 */
const TRUSTED_AFTER_MS = 50;
/** Delay before the next frame is preloaded after one was used. */
const SPARE_DELAY_MS = 400;
/** Delay before a hidden page is unsubscribed, because users often switch back soon. */
const REST_DELAY_MS = 1000;
/**
 * Delay before the frame of a closed tab is removed. The browser may still be delivering the key press that closed it,
 * and removing the frame at once would lose the next key press.
 */
const LINGER_MS = 200;

/** The element id of a session's tab or panel. @param {'tab' | 'panel'} kind @param {string} sessionId */
export function elementId(kind, sessionId) {
  return `${kind}-${encodeURIComponent(sessionId)}`;
}

/**
 * @param {HTMLElement} place
 * @param {Dependencies} dependencies
 */
export function startPortlets(place, dependencies) {
  /** @type {Map<string, ReturnType<typeof openPortlet>>} */
  const portlets = new Map();
  /** @type {Workspace | null} */
  let workspace = null;
  let connected = false;
  let bootId = '';
  /** The browser's pass for uploads and pictures. */
  let pass = '';
  /** @type {string | null} */
  let shown = null;
  /** A preloaded frame, so that the next session opens without delay. @type {Spare | null} */
  let spare = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let spareTimer;

  const prepare = () => {
    clearTimeout(spareTimer);
    spareTimer = setTimeout(() => {
      spare ??= connected ? openSpare(place, bootId) : null;
    }, SPARE_DELAY_MS);
  };

  const takeSpare = () => {
    const taken = spare ?? openSpare(place, bootId);
    spare = null;
    prepare();
    return taken;
  };

  const dropSpare = () => {
    clearTimeout(spareTimer);
    spare?.bridge.closeChannel();
    spare?.panel.remove();
    spare = null;
  };

  /** @param {string | null} id */
  const show = (id) => {
    shown = id;
    if (id !== null && !portlets.has(id)) create(id);
    for (const [other, portlet] of portlets) portlet.show(other === id);
  };

  /** @param {string} id */
  const create = (id) => {
    const session = workspace && find(workspace, id);
    // The list with this session has not arrived yet, or the server is away; `render` tries again.
    if (!workspace || !session || !connected) return;
    const server = () => ({ bootId, pass });
    portlets.set(id, openPortlet(takeSpare(), session, workspace, server, dependencies));
  };

  return {
    show,
    /** @param {string} id */
    close: (id) => {
      portlets.get(id)?.close();
      portlets.delete(id);
    },
    /** @param {Workspace} now */
    render: (now) => {
      workspace = now;
      if (shown !== null && !portlets.has(shown)) show(shown);
      for (const portlet of portlets.values()) portlet.render(now);
    },
    /** Forwards a server message to the page of its session. @param {ServerMessage} message */
    receive: (message) => {
      const id = 'sessionId' in message ? message.sessionId : undefined;
      if (message.type === 'agent:sign-in') for (const portlet of portlets.values()) portlet.pass(message);
      if (id !== undefined) portlets.get(id)?.receive(message);
    },
    /** @param {import('./socket.js').Connection} state */
    connection: (state) => {
      const open = state.state === 'up';
      if (open) ({ bootId, pass } = state);
      connected = open;
      if (open) prepare();
      else dropSpare();
      for (const portlet of portlets.values()) portlet.connection(open);
    },
    /** Sends a changed theme to all frames. */
    sendTheme: () => {
      for (const portlet of portlets.values()) portlet.say({ type: 'theme', theme: chosenTheme() });
    },
    /** Whether the session's page is subscribed to the session. @param {string} id */
    follows: (id) => portlets.get(id)?.isFollowing() ?? false,
    /** @param {string} id */
    hasFocus: (id) => portlets.get(id)?.hasFocus() ?? false,
    /** Moves the focus to the page in view. */
    focus: () => {
      if (shown !== null) portlets.get(shown)?.focus();
    },
    /** @param {'stop' | 'latest' | 'find'} what */
    order: (what) => {
      if (shown !== null) portlets.get(shown)?.say({ type: 'do', what });
    },
  };
}

/** @typedef {ReturnType<typeof openSpare>} Spare */

/** A panel with a preloaded frame that is not assigned to a session. @param {HTMLElement} place @param {string} bootId */
function openSpare(place, bootId) {
  const panel = h('div', { class: 'spare', inert: true });
  place.append(panel);
  return { panel, bridge: openBridge(panel, bootId) };
}

/**
 * @param {Spare} spare
 * @param {SessionListItem} session
 * @param {Workspace} workspace
 * @param {() => { bootId: string, pass: string }} server  the connected server, or the last one
 * @param {Dependencies} dependencies
 */
function openPortlet({ panel, bridge: first }, session, workspace, server, dependencies) {
  const { socket, drafts, places } = dependencies;
  const { id, cliType } = session;
  const ids = { sessionId: id, projectId: session.projectId, cliType };
  const problem = h('div', { class: 'panel-problem', role: 'alert', hidden: true });
  panel.className = 'panel';
  panel.id = elementId('panel', id);
  panel.setAttribute('role', 'tabpanel');
  panel.setAttribute('aria-labelledby', elementId('tab', id));
  panel.prepend(problem);

  let bridge = first;
  /** Messages held until the page is ready; null from then on. @type {ToPortlet[] | null} */
  let heldMessages = [];
  let missed = false;
  let reading = UNREAD;
  let known = { title: session.title, agent: '' };
  let current = workspace;
  let inView = false;
  let closed = false;
  let wantsFocus = false;
  let online = true;
  /** When the page became ready. */
  let readyAt = 0;
  /** The frame was removed because another program may have answered. */
  let dropped = false;
  /** Whether this page is subscribed to the session on the server. */
  let subscribed = false;
  /** Number of open requests of the page. */
  let pending = 0;
  let requestCount = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let silence;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let unsubscribeTimer;

  /** @param {ToPortlet} message */
  const say = (message) => {
    if (heldMessages === null) bridge.say(message);
    else if (heldMessages.length < WAITING_MAX) heldMessages.push(message);
    else missed = true;
  };

  const subscribe = () => {
    requestCount += 1;
    const requestId = `${id} ${requestCount}`;
    reading = requested(reading, requestId);
    subscribed = true;
    const after = reading.position ?? undefined;
    const tail = places.of(id) ? TAIL_BEHIND : TAIL;
    socket.request({ type: 'session:open', sessionId: id, tail, after }, requestId).then(
      () => showProblem(null),
      (error) => {
        const code = error instanceof RequestError ? error.code : '';
        if (code === 'SESSION_NOT_FOUND') dependencies.onGone(id);
        // Requested again after the reconnect.
        else if (code !== 'OFFLINE') showProblem(messageOf(error, 'Could not load session'), subscribe);
      },
    );
  };

  const unsubscribe = () => {
    subscribed = false;
    socket.request({ type: 'session:leave', sessionId: id }).catch(() => {});
  };

  /** Unsubscribes a hidden page after a delay, unless it has open requests. */
  const unsubscribeLater = () => {
    clearTimeout(unsubscribeTimer);
    unsubscribeTimer = setTimeout(() => {
      if (!inView && subscribed && pending === 0) unsubscribe();
    }, REST_DELAY_MS);
  };

  /** @param {string | null} text @param {() => void} [retry] */
  const showProblem = (text, retry) => {
    problem.hidden = text === null;
    problem.replaceChildren();
    if (text === null) return;
    problem.append(h('p', {}, text));
    if (!retry) return;
    const again = () => {
      showProblem(null);
      retry();
    };
    problem.append(h('button', { class: 'button', type: 'button', onclick: again }, 'Retry'));
  };

  const claim = () => {
    heldMessages = [];
    missed = false;
    const expect = () => {
      silence = setTimeout(() => heldMessages && lost(), SILENT_MS);
    };
    if (bridge.loaded()) expect();
    bridge.frame.addEventListener('load', expect);
    bridge.frame.tabIndex = 0;
    bridge.claim(ids, session.title, { onReady: ready, onSaid: onPageMessage, onLost: lost });
  };
  const rebuild = () => {
    drop();
    dropped = false;
    showProblem(null);
    reading = UNREAD;
    bridge = openBridge(panel, server().bootId);
    claim();
    subscribe();
  };
  const drop = () => {
    clearTimeout(silence);
    bridge.closeChannel();
    bridge.frame.remove();
    heldMessages = [];
    dropped = true;
  };
  const lost = () => showProblem("This session's page could not be shown.", rebuild);

  const ready = () => {
    clearTimeout(silence);
    const held = heldMessages ?? [];
    heldMessages = null;
    readyAt = performance.now();
    bridge.say(greeting());
    for (const message of held) bridge.say(message);
    if (missed) {
      reading = UNREAD;
      subscribe();
    }
    // The user may have started to type elsewhere while the page was loading.
    if (wantsFocus && !isTyping()) focus();
  };

  /** @returns {ToPortlet} */
  const greeting = () => {
    const item = find(current, id) ?? session;
    const project = current.projects?.find((other) => other.id === item.projectId);
    const agent = agentOf(current, cliType);
    known = { title: item.title, agent: JSON.stringify(stateOf(agent)) };
    return {
      type: 'init',
      session: item,
      agent,
      agents: current.agents,
      projectName: project?.name ?? '',
      projectPath: project?.path ?? '',
      draft: drafts.of(id),
      place: places.of(id),
      theme: chosenTheme(),
      pass: server().pass,
    };
  };

  /** @param {FromPortlet} message */
  const onPageMessage = async (message) => {
    // Key presses and drafts sent before the tab was closed are still handled.
    if (closed && message.type !== 'key' && message.type !== 'draft') return;
    switch (message.type) {
      case 'request': {
        pending += 1;
        const answer = await socket.request(message.message, message.requestId).catch(asMessage);
        pending -= 1;
        if (!inView) unsubscribeLater();
        return say({ type: 'answer', id: message.id, message: answer });
      }
      case 'reconnect':
        return dependencies.onReconnect(cliType);
      case 'draft':
        return drafts.keep(id, message.text);
      case 'place':
        return places.keep(id, message.place);
      case 'open-link':
        window.open(message.href, '_blank', 'noopener,noreferrer');
        return;
      case 'copy':
        return dependencies.copy(message.text);
      case 'upload':
        return say({ type: 'uploaded', id: message.id, ...(await upload(message.file, online, server().pass)) });
      case 'key':
        return dependencies.onKey(message);
    }
  };

  const focus = () => {
    wantsFocus = heldMessages !== null;
    // The page is still loading: release the focus now, and take it later unless the user focuses another field.
    if (wantsFocus && document.activeElement instanceof HTMLInputElement) document.activeElement.blur();
    if (wantsFocus || !inView) return;
    bridge.frame.focus();
    bridge.say({ type: 'focus' });
  };

  claim();
  subscribe();

  return {
    say,
    focus,
    isFollowing: () => subscribed,
    hasFocus: () => document.activeElement === bridge.frame,
    /** Forwards a message about the session's agent. @param {Extract<ServerMessage, { cliType: string }>} message */
    pass: (message) => {
      if (message.cliType === cliType && heldMessages === null) say({ type: 'server', message });
    },
    /** @param {ServerMessage} message */
    receive: (message) => {
      if (!subscribed) return;
      const { reading: next, pass, gap } = receive(reading, message);
      reading = next;
      if (pass) say({ type: 'server', message });
      if (gap) subscribe();
    },
    /** @param {boolean} open */
    connection: (open) => {
      online = open;
      say({ type: 'connection', open, pass: server().pass });
      if (!open) {
        subscribed = false;
        if (heldMessages !== null || performance.now() - readyAt < TRUSTED_AFTER_MS) {
          drop();
          showProblem('This session is loaded again when the server is back.');
        }
        return;
      }
      if (dropped) rebuild();
      else if (inView) subscribe();
    },
    /** @param {boolean} visible */
    show: (visible) => {
      if (visible === inView && panel.inert === !visible) return;
      inView = visible;
      panel.classList.toggle('in-view', visible);
      panel.inert = !visible;
      if (!visible) wantsFocus = false;
      say({ type: 'shown', shown: visible });
      if (!visible) unsubscribeLater();
      else if (!subscribed && online) subscribe();
    },
    /** @param {Workspace} now */
    render: (now) => {
      current = now;
      const title = find(now, id)?.title ?? known.title;
      const state = stateOf(agentOf(now, cliType));
      const agent = JSON.stringify(state);
      if (title !== known.title) {
        bridge.frame.title = title;
        say({ type: 'title', title });
      }
      if (heldMessages === null && agent !== known.agent) say({ type: 'agent', ...state });
      known = { title, agent };
    },
    close: () => {
      clearTimeout(silence);
      clearTimeout(unsubscribeTimer);
      closed = true;
      panel.removeAttribute('id');
      panel.classList.remove('in-view');
      panel.inert = true;
      setTimeout(() => {
        bridge.closeChannel();
        panel.remove();
      }, LINGER_MS);
      unsubscribe();
    },
  };
}

/** Whether a text field or a dialog of the shell has the focus. */
function isTyping() {
  return document.activeElement?.matches('input, textarea') === true || document.querySelector('dialog[open]') !== null;
}

/** @param {Workspace} workspace @param {string} cliType @returns {Agent} */
function agentOf({ agents }, cliType) {
  const unknown = { cliType, name: cliType, badge: cliType.slice(0, 2).toUpperCase(), found: false };
  return (
    agents.find((agent) => agent.cliType === cliType) ?? { ...unknown, readiness: 'not-installed', status: 'idle' }
  );
}

/** The part of an agent's state that is sent to pages. @param {Agent} agent */
function stateOf({ status, reason, signIn }) {
  return { status, reason, signIn };
}

/** @param {unknown} error @returns {ServerMessage} */
function asMessage(error) {
  const code = error instanceof RequestError ? error.code : 'INTERNAL_ERROR';
  const message = messageOf(error, 'Unexpected error.');
  // Includes `OFFLINE`, `LATE` and `BUSY`, which only the shell uses.
  return { type: 'error', code: /** @type {import('../types/wire.js').ErrorCode} */ (code), message };
}

/** @param {unknown} error @param {string} otherwise */
function messageOf(error, otherwise) {
  return error instanceof Error && error.message ? error.message : otherwise;
}

/** @param {Blob} file @param {boolean} online @param {string} pass @returns {Promise<{ imageId?: string, error?: string }>} */
async function upload(file, online, pass) {
  const offline = { error: 'The server is not reachable right now.' };
  if (!online) return offline;
  if (!file.type.startsWith('image/')) return { error: 'Only pictures can be sent.' };
  try {
    const response = await fetch(`/uploads?pass=${encodeURIComponent(pass)}`, {
      method: 'POST',
      headers: { 'content-type': file.type },
      body: file,
      credentials: 'omit',
      redirect: 'error',
    });
    if (response.status === 404 || response.status === 405) return { error: 'Pictures cannot be sent yet.' };
    const text = await response.text();
    if (!response.ok) return { error: text.trim() || 'The picture could not be sent.' };
    const { imageId } = JSON.parse(text);
    return typeof imageId === 'string' ? { imageId } : { error: 'The picture could not be sent.' };
  } catch {
    return offline;
  }
}
