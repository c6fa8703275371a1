/**
 * The pages of the open sessions: each a frame that is made when its tab is first shown, and stays alive behind
 * the others. What the server says about a session goes to its page, and what the page asks goes to the server.
 * A page that nobody has looked at for a moment is told nothing more, so that nothing is rendered or sent for
 * it; when it is shown again, it goes on where it was.
 *
 * Invariant: a page gets a history before anything else, and then every message once and in order, also when
 * the connection was lost in between, or nobody looked.
 *
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 * @typedef {import('../types/bridge.js').ToPortlet} ToPortlet
 * @typedef {import('../types/bridge.js').FromPortlet} FromPortlet
 * @typedef {import('./workspace.js').Agent} Agent
 * @typedef {import('./workspace.js').Workspace} Workspace
 *
 * @typedef {object} Needs
 * @property {import('./socket.js').Socket} socket
 * @property {ReturnType<typeof import('./drafts.js').startDrafts>} drafts
 * @property {import('./places.js').Places} places
 * @property {(key: import('./shortcuts.js').Key) => void} onKey
 * @property {(cliType: string) => void} onReconnect
 * @property {(sessionId: string) => void} onGone  the server does not know this session
 * @property {(text: string) => void} copy
 */

import { h } from '../shared/dom.js';
import { chosenTheme } from '../shared/theme.js';
import { openBridge } from './bridge.js';
import { asked, read, UNREAD } from './reading.js';
import { RequestError } from './socket.js';
import { find } from './workspace.js';

/** Entries that a page gets at first, enough to fill a tall window; it asks for older ones as it needs them. */
const TAIL = 40;
/** The same when somebody was reading further up. */
const TAIL_BEHIND = 200;
/** What may wait for a page that is still loading; a page that is later gets a fresh history instead. */
const WAITING_MAX = 2000;
/** A page that was loaded and has said nothing for this long is not ours, or broken. */
const SILENT_MS = 5000;
/** How long after something was opened the next page is loaded ahead. */
const SPARE_DELAY_MS = 400;
/** How long a page goes on reading out of view: people go back and forth. */
const REST_DELAY_MS = 1000;
/**
 * A frame that vanished while the browser waits for it to take a key, the one that closed it, would swallow the
 * next; and keys go to it until the browser has learnt that the focus is elsewhere.
 */
const LINGER_MS = 200;

/** Ids of elements that belong to a session. @param {'tab' | 'panel'} kind @param {string} sessionId */
export function elementId(kind, sessionId) {
  return `${kind}-${encodeURIComponent(sessionId)}`;
}

/**
 * @param {HTMLElement} place
 * @param {Needs} needs
 */
export function startPortlets(place, needs) {
  /** @type {Map<string, ReturnType<typeof openPortlet>>} */
  const portlets = new Map();
  /** @type {Workspace | null} */
  let workspace = null;
  let connected = false;
  /** @type {string | null} */
  let shown = null;
  /** Loaded ahead, so that the next session opens without waiting for a page. @type {Spare | null} */
  let spare = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let preparing;

  const prepare = () => {
    clearTimeout(preparing);
    preparing = setTimeout(() => {
      spare ??= connected ? openSpare(place) : null;
    }, SPARE_DELAY_MS);
  };

  const takeSpare = () => {
    const taken = spare ?? openSpare(place);
    spare = null;
    prepare();
    return taken;
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
    // Its list has not come yet; `render` tries again.
    if (!workspace || !session) return;
    portlets.set(id, openPortlet(takeSpare(), session, workspace, connected, needs));
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
    /** What the server said, to the page it is about. @param {ServerMessage} message */
    receive: (message) => {
      const id = 'sessionId' in message ? message.sessionId : undefined;
      if (message.type === 'agent:sign-in') for (const portlet of portlets.values()) portlet.pass(message);
      if (id !== undefined) portlets.get(id)?.receive(message);
    },
    /** @param {boolean} open */
    connection: (open) => {
      connected = open;
      if (open) prepare();
      for (const portlet of portlets.values()) portlet.connection(open);
    },
    /** The person chose another theme. */
    themed: () => {
      for (const portlet of portlets.values()) portlet.say({ type: 'theme', theme: chosenTheme() });
    },
    /** Whether what the server says about this session reaches its page. @param {string} id */
    follows: (id) => portlets.get(id)?.isFollowing() ?? false,
    /** @param {string} id */
    hasKeyboard: (id) => portlets.get(id)?.hasKeyboard() ?? false,
    /** Brings the keyboard to the page in view. */
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

/** A panel with a page that is nobody's yet. @param {HTMLElement} place */
function openSpare(place) {
  const panel = h('div', { class: 'spare', inert: true });
  place.append(panel);
  return { panel, bridge: openBridge(panel) };
}

/**
 * @param {Spare} spare
 * @param {SessionListItem} session
 * @param {Workspace} workspace
 * @param {boolean} connected
 * @param {Needs} needs
 */
function openPortlet({ panel, bridge: first }, session, workspace, connected, needs) {
  const { socket, drafts, places } = needs;
  const { id, cliType } = session;
  const ids = { sessionId: id, projectId: session.projectId, cliType };
  const problem = h('div', { class: 'panel-problem', role: 'alert', hidden: true });
  panel.className = 'panel';
  panel.id = elementId('panel', id);
  panel.setAttribute('role', 'tabpanel');
  panel.setAttribute('aria-labelledby', elementId('tab', id));
  panel.prepend(problem);

  let bridge = first;
  /** Null once the page reads. @type {ToPortlet[] | null} */
  let waiting = [];
  let missed = false;
  let reading = UNREAD;
  let known = { title: session.title, agent: '' };
  let current = workspace;
  let inView = false;
  let closed = false;
  let wantsFocus = false;
  let online = connected;
  /** Whether the server was told that we want to know. */
  let following = false;
  /** Requests of the page that are under way. */
  let pending = 0;
  let asks = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let silence;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let resting;

  /** @param {ToPortlet} message */
  const say = (message) => {
    if (waiting === null) bridge.say(message);
    else if (waiting.length < WAITING_MAX) waiting.push(message);
    else missed = true;
  };

  const ask = () => {
    asks += 1;
    const requestId = `${id} ${asks}`;
    reading = asked(reading, requestId);
    following = true;
    const after = reading.position ?? undefined;
    const tail = places.of(id) ? TAIL_BEHIND : TAIL;
    socket.request({ type: 'session:open', sessionId: id, tail, after }, requestId).then(
      () => showProblem(null),
      (error) => {
        const code = error instanceof RequestError ? error.code : '';
        if (code === 'SESSION_NOT_FOUND') needs.onGone(id);
        // Asked again as soon as the server is back.
        else if (code !== 'OFFLINE') showProblem(messageOf(error, 'Could not load session'), ask);
      },
    );
  };

  const leave = () => {
    following = false;
    socket.request({ type: 'session:leave', sessionId: id }).catch(() => {});
  };

  /** Nobody looks; once nothing is under way, nothing more has to come. */
  const rest = () => {
    clearTimeout(resting);
    resting = setTimeout(() => {
      if (!inView && following && pending === 0) leave();
    }, REST_DELAY_MS);
  };

  /** @param {string | null} text @param {() => void} [retry] */
  const showProblem = (text, retry) => {
    problem.hidden = text === null;
    problem.replaceChildren();
    if (text === null) return;
    const again = () => {
      showProblem(null);
      retry?.();
    };
    problem.append(h('p', {}, text), h('button', { class: 'button', type: 'button', onclick: again }, 'Retry'));
  };

  const claim = () => {
    waiting = [];
    missed = false;
    const expect = () => {
      silence = setTimeout(() => waiting && lost(), SILENT_MS);
    };
    if (bridge.loaded()) expect();
    bridge.frame.addEventListener('load', expect);
    bridge.frame.tabIndex = 0;
    bridge.claim(ids, session.title, { onReady: ready, onSaid: said, onLost: lost });
  };
  const rebuild = () => {
    clearTimeout(silence);
    bridge.hush();
    bridge.frame.remove();
    reading = UNREAD;
    bridge = openBridge(panel);
    claim();
    ask();
  };
  const lost = () => showProblem("This session's page could not be shown.", rebuild);

  const ready = () => {
    clearTimeout(silence);
    const held = waiting ?? [];
    waiting = null;
    bridge.say(greeting());
    for (const message of held) bridge.say(message);
    if (missed) {
      reading = UNREAD;
      ask();
    }
    // It took a while, and somebody may have begun to type elsewhere.
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
    };
  };

  /** @param {FromPortlet} message */
  const said = async (message) => {
    // What was pressed and written before it was closed still counts.
    if (closed && message.type !== 'key' && message.type !== 'draft') return;
    switch (message.type) {
      case 'request': {
        pending += 1;
        const answer = await socket.request(message.message, message.requestId).catch(asMessage);
        pending -= 1;
        if (!inView) rest();
        return say({ type: 'answer', id: message.id, message: answer });
      }
      case 'reconnect':
        return needs.onReconnect(cliType);
      case 'draft':
        return drafts.keep(id, message.text);
      case 'place':
        return places.keep(id, message.place);
      case 'open-link':
        window.open(message.href, '_blank', 'noopener,noreferrer');
        return;
      case 'copy':
        return needs.copy(message.text);
      case 'upload':
        return say({ type: 'uploaded', id: message.id, ...(await upload(message.file)) });
      case 'key':
        return needs.onKey(message);
    }
  };

  const focus = () => {
    wantsFocus = waiting !== null;
    // The keyboard leaves for a page that is still loading; who writes elsewhere from now on keeps it.
    if (wantsFocus && document.activeElement instanceof HTMLInputElement) document.activeElement.blur();
    if (wantsFocus || !inView) return;
    bridge.frame.focus();
    bridge.say({ type: 'focus' });
  };

  claim();
  if (connected) ask();
  else say({ type: 'connection', open: false });

  return {
    say,
    focus,
    isFollowing: () => following,
    hasKeyboard: () => document.activeElement === bridge.frame,
    /** About its agent rather than its session. @param {Extract<ServerMessage, { cliType: string }>} message */
    pass: (message) => {
      if (message.cliType === cliType && waiting === null) say({ type: 'server', message });
    },
    /** @param {ServerMessage} message */
    receive: (message) => {
      if (!following) return;
      const { reading: next, pass, gap } = read(reading, message);
      reading = next;
      if (pass) say({ type: 'server', message });
      if (gap) ask();
    },
    /** @param {boolean} open */
    connection: (open) => {
      online = open;
      say({ type: 'connection', open });
      if (!open) {
        following = false;
        return;
      }
      // A page that could not be loaded while the server was away.
      if (waiting !== null && !problem.hidden) rebuild();
      else if (inView) ask();
    },
    /** @param {boolean} visible */
    show: (visible) => {
      if (visible === inView && panel.inert === !visible) return;
      inView = visible;
      panel.classList.toggle('in-view', visible);
      panel.inert = !visible;
      if (!visible) wantsFocus = false;
      say({ type: 'shown', shown: visible });
      if (!visible) rest();
      else if (!following && online) ask();
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
      if (waiting === null && agent !== known.agent) say({ type: 'agent', ...state });
      known = { title, agent };
    },
    close: () => {
      clearTimeout(silence);
      clearTimeout(resting);
      closed = true;
      panel.removeAttribute('id');
      panel.classList.remove('in-view');
      panel.inert = true;
      setTimeout(() => {
        bridge.hush();
        panel.remove();
      }, LINGER_MS);
      leave();
    },
  };
}

/** Whether the keyboard is in a field of the shell. */
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

/** What of an agent a page is kept informed about. @param {Agent} agent */
function stateOf({ status, reason, signIn }) {
  return { status, reason, signIn };
}

/** @param {unknown} error @returns {ServerMessage} */
function asMessage(error) {
  const code = error instanceof RequestError ? error.code : 'INTERNAL_ERROR';
  const message = messageOf(error, 'Something went wrong.');
  // `OFFLINE`, `LATE` and `BUSY` are the shell's own.
  return { type: 'error', code: /** @type {import('../types/wire.js').ErrorCode} */ (code), message };
}

/** @param {unknown} error @param {string} otherwise */
function messageOf(error, otherwise) {
  return error instanceof Error && error.message ? error.message : otherwise;
}

/** @param {Blob} file @returns {Promise<{ imageId?: string, error?: string }>} */
async function upload(file) {
  if (!file.type.startsWith('image/')) return { error: 'Only pictures can be sent.' };
  try {
    const response = await fetch('/uploads', { method: 'POST', headers: { 'content-type': file.type }, body: file });
    if (response.status === 404 || response.status === 405) return { error: 'Pictures cannot be sent yet.' };
    const text = await response.text();
    if (!response.ok) return { error: text.trim() || 'The picture could not be sent.' };
    const { imageId } = JSON.parse(text);
    return typeof imageId === 'string' ? { imageId } : { error: 'The picture could not be sent.' };
  } catch {
    return { error: 'The server is not reachable right now.' };
  }
}
