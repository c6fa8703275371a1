/** Entry module of the shell: creates its parts and connects them. Parts depend only on what they are given here. */

import { part } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import '../shared/exact-time.js';
import { showSignInProgress } from '../shared/sign-in.js';
import { recall, remember } from '../shared/storage.js';
import { startTheme } from '../shared/theme.js';
import { startAddProject } from './add-project.js';
import { startAgentLines } from './agent-lines.js';
import { markOf, needed, newlyNeeded } from './attention.js';
import { paletteChoices } from './commands.js';
import { startConnection } from './connection.js';
import { startDrafts } from './drafts.js';
import { startDrawer } from './drawer.js';
import { startHelp } from './help.js';
import { startLaunch } from './launch.js';
import { startMainArea } from './main-area.js';
import { startNotify } from './notify.js';
import { startPalette, WHOLE_LIST } from './palette.js';
import { startPlaces } from './places.js';
import { startPortlets } from './portlets.js';
import { projectActions } from './project-actions.js';
import { sessionActions } from './session-actions.js';
import { startSessionLists } from './session-lists.js';
import { keyOf, keysOf, shortcutFor } from './shortcuts.js';
import { startSidebar } from './sidebar.js';
import { startSidebarWidth } from './sidebar-width.js';
import { connect, RequestError } from './socket.js';
import * as tabList from './tab-list.js';
import { openTabMenu } from './tab-menu.js';
import { startTabStrip } from './tab-strip.js';
import { startToasts } from './toasts.js';
import { startTraffic } from './traffic.js';
import { startUnseen } from './unseen.js';
import { startWaiting } from './waiting.js';
import { apply, complete, EMPTY, find } from './workspace.js';

/**
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 */

// The token is no longer needed and must not stay in the address bar or the history.
const dropToken = () => location.hash && history.replaceState(null, '', '/');
addEventListener('hashchange', dropToken);
dropToken();
// The server has no service worker: one at this address was installed by another program that answered here.
navigator.serviceWorker?.getRegistrations().then((all) => all.forEach((one) => void one.unregister()));

/** Delay of the first request for agents, until after everything the first session needs. */
const AGENTS_DELAY_MS = 1500;
/** Maximum wait for an animation frame; a window that is not painted gets none. */
const FRAME_MS = 50;

let workspace = EMPTY;
let tabs = recall(tabList.KEY, tabList.fromStored, tabList.NO_TABS);
let connected = false;
let drawing = false;
/** Ids of agents that the user has restarted in this window. @type {Set<string>} */
const restarted = new Set();

const unseen = startUnseen();
const toasts = startToasts(part('toasts', HTMLElement));
const socket = connect({ onMessage, onConnection, onSignedOut: () => location.replace('/login') });
const connection = startConnection(part('connection', HTMLElement), socket.retryNow);
const drawer = startDrawer();
const palette = startPalette();
const help = startHelp();
const addProject = startAddProject(socket, (id) => {
  draw();
  // In a narrow window the sidebar is closed, so its menu button gets the focus instead.
  if (!sidebar.focusProject(id)) part('menu', HTMLButtonElement).focus();
});
const portlets = startPortlets(part('portlets', HTMLElement), {
  socket,
  drafts: startDrafts(),
  places: startPlaces(),
  onKey: (key) => runCommand(shortcutFor(key), key.code),
  onReconnect: reconnect,
  onGone: (id) => setTabs(tabList.close(tabs, id)),
  copy,
});
const traffic = startTraffic(part('traffic', HTMLElement), { socket, toasts, copy, onClose: () => portlets.focus() });
const actions = sessionActions({ socket, toasts, showError, tabsOf, beginRename, open, showTraffic });
const launch = startLaunch(part('launch', HTMLElement), {
  socket,
  toasts,
  palette,
  agents: () => workspace.agents,
  askAgents,
  copy,
  onShown: () => {
    drawer.closeIfNarrow();
    setTabs(tabList.showNone(tabs));
  },
  onHidden: () => draw(),
  onCreated: (id, inView) => {
    if (inView) open(id);
    else setTabs(tabList.add(tabs, id));
  },
});
const sidebar = startSidebar(
  part('projects', HTMLElement),
  {
    filter: part('filter', HTMLInputElement),
    archived: part('archived', HTMLButtonElement),
    count: part('filter-count', HTMLElement),
    archivedHead: part('archived-head', HTMLElement),
    tools: part('sidebar-tools', HTMLElement),
  },
  {
    ...actions,
    ...projectActions({
      socket,
      toasts,
      showError,
      copy,
      agents: (project) => launch.choices(project, 'New session with '),
      tabsIn: (projectId) => tabsOf(tabs.order.filter((id) => find(workspace, id)?.projectId === projectId)),
      restored: (id) => {
        draw();
        sidebar.focusProject(id);
      },
    }),
    add: addProject.open,
    newSession: launch.choose,
    wantArchived: (wanted) => {
      if (wanted) lists.requestArchived(workspace.projects ?? []);
    },
  },
);
const lists = startSessionLists(socket, sidebar.showsArchived);
const mainArea = startMainArea({ add: addProject.open, newSession, install: launch.install });
const agentLines = startAgentLines(part('agent-lines', HTMLElement), {
  reconnect,
  askMemory: async () => {
    const answer = await socket.request({ type: 'agent:memory' });
    return answer.type === 'agent:memory' ? answer.agents : [];
  },
});
const tabActions = { close: closeTabs, rename: beginRename, archive: archiveSession };
const strip = startTabStrip(part('tabs', HTMLElement), part('all-tabs', HTMLButtonElement), {
  choose: (id) => setTabs(tabList.open(tabs, id)),
  close: (id) => setTabs(tabList.close(tabs, id)),
  move: (id, to) => setTabs(tabList.move(tabs, id, to)),
  enter: portlets.focus,
  menu: (id, title, anchor, at) => openTabMenu({ id, title, order: tabs.order }, tabActions, anchor, at),
  list: (choices) => palette.open('Find an open tab', choices, WHOLE_LIST),
});
const notify = startNotify(part('notify', HTMLButtonElement), { open, refuse: (text) => toasts.show(text) });
const waiting = startWaiting(part('waiting-button', HTMLButtonElement), {
  socket,
  isLive: portlets.follows,
  open,
  showError,
  placeOf: ({ projectId, cliType }) => [projectOf(projectId)?.name, agentOf(cliType)?.name].filter(Boolean).join(', '),
});

/** @param {ServerMessage} message */
function onMessage(message) {
  const before = workspace;
  workspace = apply(workspace, message);
  portlets.receive(message);
  waiting.receive(message);
  launch.receive(message);
  if (message.type === 'agent:sign-in') showSignInProgress(message);
  if (workspace === before) return;
  // `hello` also follows a reconnect: the new lists contain the changes made meanwhile.
  if (message.type === 'hello') {
    lists.begin();
    // This request makes the server search for installed agents, which must not delay the first session.
    setTimeout(askAgents, AGENTS_DELAY_MS);
  }
  if (message.type === 'session:list') lists.listReceived(message.projectId, message.archived);
  if (message.type === 'project:list') lists.requestOthers(message.projects);
  if (message.type === 'project:added') lists.ask([message.project]);
  // An agent reports its details, such as its sign-in methods, when it starts.
  if (message.type === 'agent:status' && message.status === 'connected') {
    askAgents();
    if (restarted.delete(message.cliType)) toasts.show(`${agentOf(message.cliType)?.name} is connected.`);
  }
  const needing = newlyNeeded(before, workspace, message).filter(({ session }) => !isInView(session.id));
  for (const { session, mark } of needing) if (mark !== 'waiting') unseen.add(session.id);
  notify.notify(needing);
  if (complete(workspace)) setTabs(tabList.keep(tabs, (id) => find(workspace, id) !== undefined));
  drawSoon();
}

/** @param {import('./socket.js').Connection} state */
function onConnection(state) {
  connection.show(state);
  mainArea.warn(state.state === 'down' && state.other ? otherProgram() : null);
  const up = state.state === 'up';
  if (up === connected) return;
  connected = up;
  portlets.connection(state);
  draw();
}

/** What the user has to know while another program answers at the server's address. */
function otherProgram() {
  return `Another program answers at ${location.host}, where Liminal Builder was. Nothing is sent to it. \
Do not reload this page and do not enter your access token here; stop that program and start Liminal Builder again. \
If you have deleted its data directory, open the address that it prints in a new tab.`;
}

/** Draws once for all messages of an animation frame, or after a timeout in a background window. */
function drawSoon() {
  if (drawing) return;
  drawing = true;
  const now = () => drawing && draw();
  requestAnimationFrame(now);
  setTimeout(now, document.visibilityState === 'visible' ? FRAME_MS : 0);
}

function draw() {
  drawing = false;
  const { active } = tabs;
  if (isInView(active)) unseen.see(active);
  const inView = active === null ? undefined : find(workspace, active);
  const all = needed(workspace, unseen.ids);
  const counts = { waiting: all.waiting.length, failed: all.failed.length, finished: all.finished.length };
  document.body.classList.toggle('has-tabs', tabs.order.length > 0);
  sidebar.render({ workspace, unseen: unseen.ids, current: active });
  mainArea.render(workspace);
  mainArea.show(active === null && !launch.isShown());
  strip.render(tabs, faceOf);
  portlets.render(workspace);
  agentLines.render(workspace.agents, connected);
  waiting.render(all, counts);
  part('waiting-button', HTMLElement).hidden = !workspace.projects?.length;
  drawer.showCounts(counts);
  notify.show(counts, inView?.title);
}

/** @param {string} id @returns {import('./tab-strip.js').TabFace} */
function faceOf(id) {
  const session = find(workspace, id);
  if (!session) return { title: '…', badge: '', agentName: '', projectName: '', mark: 'idle' };
  const agent = agentOf(session.cliType);
  return {
    title: session.title,
    badge: agent?.badge ?? '',
    agentName: agent?.name ?? session.cliType,
    projectName: projectOf(session.projectId)?.name ?? '',
    mark: markOf(session, unseen.ids),
  };
}

/** @param {import('./tab-list.js').TabList} next */
function setTabs(next) {
  if (next === tabs) return;
  const closed = tabs.order.filter((id) => !next.order.includes(id));
  const hadFocus = closed.some(portlets.hasFocus);
  tabs = next;
  remember(tabList.KEY, tabList.toStored(tabs));
  if (tabs.active !== null) launch.leave();
  portlets.show(tabs.active);
  for (const id of closed) {
    portlets.close(id);
    traffic.forget(id);
  }
  traffic.show(tabs.active);
  draw();
  if (hadFocus) focusView();
}

/** Shows a session and moves the focus into it. @param {string} id */
function open(id) {
  const session = find(workspace, id);
  if (session) sidebar.reveal(session.projectId);
  drawer.closeIfNarrow();
  setTabs(tabList.open(tabs, id));
  portlets.focus();
}

/** Returns a function that restores these tabs at their current positions. @param {string[]} ids */
function tabsOf(ids) {
  const before = tabs;
  const there = before.order.filter((id) => ids.includes(id));
  return () => {
    if (there.length > 0) setTabs(tabList.reopen(tabs, before, there));
  };
}

/** @param {string[]} ids */
function closeTabs(ids) {
  const bringBack = tabsOf(ids);
  setTabs(tabList.keep(tabs, (id) => !ids.includes(id)));
  // No undo for a single tab, which is as quickly reopened.
  if (ids.length > 1) toasts.show(`Closed ${ids.length} tabs.`, { label: 'Undo', run: bringBack, undoes: true });
}

/** Opens a session with its traffic panel. @param {string} id */
function showTraffic(id) {
  open(id);
  traffic.toggle(id);
}

/** @param {string} id */
function beginRename(id) {
  const session = find(workspace, id);
  if (session) sidebar.reveal(session.projectId);
  drawer.reveal();
  sidebar.rename(id);
}

/** @param {string} id */
function archiveSession(id) {
  const session = find(workspace, id);
  if (session) actions.archive(session);
}

/** @param {string | null} id */
function isInView(id) {
  return id !== null && id === tabs.active && document.visibilityState === 'visible' && document.hasFocus();
}

/** @param {string} id */
function projectOf(id) {
  return workspace.projects?.find((project) => project.id === id);
}

function askAgents() {
  return socket.request({ type: 'agent:list' }).catch(() => {});
}

/** @param {string} cliType */
function agentOf(cliType) {
  return workspace.agents.find((agent) => agent.cliType === cliType);
}

/** @param {string} cliType */
function reconnect(cliType) {
  // Progress is broadcast as the agent's status; only an error comes as the response.
  restarted.add(cliType);
  socket.request({ type: 'session:reconnect', cliType }).catch((error) => {
    if (!restarted.delete(cliType) && error instanceof RequestError && error.code === 'LATE') return;
    showError(error);
  });
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    showError(new Error('The browser does not allow copying here.'));
  }
}

/** Starts a new session. Asks for the project if it is not clear from the focus, then for the agent. */
function newSession() {
  const session = tabs.active === null ? undefined : find(workspace, tabs.active);
  const projects = workspace.projects ?? [];
  const here = sidebar.focusedProject() ?? (session && projectOf(session.projectId));
  if (projects.length === 0) addProject.open();
  else if (here || projects.length === 1) launch.chooseAny(here ?? projects[0]);
  else {
    const choices = projects.map((project) => ({
      label: project.name,
      note: project.path,
      run: () => launch.chooseAny(project),
    }));
    palette.open('New session: in which project?', choices);
  }
}

function openPalette() {
  const { active } = tabs;
  // Actions on the session in view are listed only if there is one.
  const inView = active !== null && find(workspace, active) ? active : null;
  const ofSession = (/** @type {string} */ id) => [
    {
      label: 'Find in the conversation',
      keys: 'Ctrl+F',
      run: () => {
        portlets.focus();
        portlets.order('find');
      },
    },
    { label: 'Close the tab', keys: keysOf('close-tab'), run: () => runCommand('close-tab') },
    { label: 'Rename the session in view', run: () => beginRename(id) },
    { label: 'Archive the session in view', run: () => archiveSession(id) },
    { label: 'Traffic of the session in view', run: () => traffic.toggle(id) },
  ];
  const commands = [
    { label: 'New session', keys: keysOf('new-session'), run: newSession },
    { label: 'Add project', run: addProject.open },
    { label: 'Inbox', keys: keysOf('waiting'), run: waiting.open },
    ...(inView === null ? [] : ofSession(inView)),
    { label: 'Show or hide the sidebar', keys: keysOf('sidebar'), run: drawer.toggle },
    { label: 'Change the theme', run: () => part('theme', HTMLButtonElement).click() },
    { label: 'Keyboard shortcuts', keys: keysOf('help'), run: help.open },
  ];
  const choices = paletteChoices(workspace, unseen.ids, commands, {
    open,
    focusProject: (id) => {
      drawer.reveal();
      sidebar.focusProject(id);
    },
  });
  palette.open('Find a session, a project or an action', choices);
}

/** @param {string | undefined} command @param {string} [code]  code of the key, for numbered tabs */
function runCommand(command, code = '') {
  if (command === undefined) return;
  const { order, active } = tabs;
  const at = active === null ? -1 : order.indexOf(active);
  /** @type {Record<string, () => void>} */
  const commandActions = {
    palette: () => (palette.isOpen() ? palette.close() : openPalette()),
    'new-session': newSession,
    waiting: waiting.open,
    'next-tab': () => go(tabList.step(tabs, 1)),
    'previous-tab': () => go(tabList.step(tabs, -1)),
    'numbered-tab': () => {
      const number = Number(code.at(-1));
      const id = number === 9 ? order.at(-1) : order[number - 1];
      if (id !== undefined) go(tabList.open(tabs, id));
    },
    'tab-right': () => active !== null && setTabs(tabList.move(tabs, active, at + 1)),
    'tab-left': () => active !== null && setTabs(tabList.move(tabs, active, at - 1)),
    'close-tab': () => active !== null && go(tabList.close(tabs, active)),
    input: portlets.focus,
    stop: () => portlets.order('stop'),
    filter: () => {
      drawer.reveal();
      part('filter', HTMLInputElement).focus();
    },
    sidebar: drawer.toggle,
    help: help.open,
  };
  commandActions[command]?.();
}

/** @param {import('./tab-list.js').TabList} next */
function go(next) {
  setTabs(next);
  focusView();
}

/** Moves the focus to the content of the main area. */
function focusView() {
  if (tabs.active === null) part('empty-main', HTMLElement).querySelector('button')?.focus();
  else portlets.focus();
}

/** @param {unknown} error */
function showError(error) {
  toasts.show(error instanceof Error ? error.message : String(error));
}

addEventListener('keydown', (event) => {
  const command = shortcutFor(keyOf(event));
  const typing = event.target instanceof HTMLElement && event.target.matches('input, textarea');
  const modal = document.querySelector('dialog[open]') !== null;
  if (command === undefined || (command === 'help' && typing)) return;
  // No shortcuts while a dialog is open, except the one that closes the palette.
  if (modal && !(command === 'palette' && palette.isOpen())) return;
  event.preventDefault();
  runCommand(command, event.code);
});
for (const look of ['focus', 'visibilitychange']) addEventListener(look, drawSoon, true);
part('add-project', HTMLButtonElement).addEventListener('click', addProject.open);
part('help-button', HTMLButtonElement).addEventListener('click', help.open);
part('archived', HTMLButtonElement).append(icon('archive'));
part('notify', HTMLButtonElement).append(icon('bell'));
part('help-button', HTMLButtonElement).append(icon('help'));
part('all-tabs', HTMLButtonElement).append(icon('list'));
startTheme(part('theme', HTMLButtonElement), portlets.sendTheme);
startSidebarWidth(part('divider', HTMLElement));
portlets.show(tabs.active);
draw();
