/** Wires the parts of the shell together. Each part knows only what it is handed here. */

import { part } from '../shared/dom.js';
import { startTheme } from '../shared/theme.js';
import { startAddProject } from './add-project.js';
import { startConnection } from './connection.js';
import { startDrawer } from './drawer.js';
import { startMainArea } from './main-area.js';
import { startSidebar } from './sidebar.js';
import { startSidebarWidth } from './sidebar-width.js';
import { connect, RequestError } from './socket.js';
import { startToasts } from './toasts.js';
import { apply, EMPTY } from './workspace.js';

// The token has done its work; it must not stay in the address bar or the history.
const dropToken = () => location.hash && history.replaceState(null, '', '/');
addEventListener('hashchange', dropToken);
dropToken();

let workspace = EMPTY;

const socket = connect({
  onMessage: (message) => {
    workspace = apply(workspace, message);
    // Also after a reconnect: whatever happened meanwhile is in the list.
    if (message.type === 'hello') socket.request({ type: 'project:list' }).catch(() => {});
    sidebar.render(workspace.projects);
    mainArea.render(workspace);
  },
  onConnection: (state) => connection.show(state),
  onSignedOut: () => location.reload(),
});

const toasts = startToasts(part('toasts', HTMLElement));
const connection = startConnection(part('connection', HTMLElement), socket.retryNow);
const addProject = startAddProject(socket, (id) => {
  // On a narrow window the sidebar is closed, and the way to it takes the focus instead.
  if (!sidebar.focus(id)) part('menu', HTMLButtonElement).focus();
});
const sidebar = startSidebar(part('projects', HTMLElement), { add: addProject.open, remove });
const mainArea = startMainArea(addProject.open);

/** @param {import('../types/wire.js').Project} project */
async function remove({ id, name }) {
  try {
    await socket.request({ type: 'project:remove', projectId: id });
    toasts.show(`Removed ${name}. Its files stay where they are.`, { label: 'Undo', run: () => restore(id) });
  } catch (error) {
    // Another window was faster: it is gone, which is what was wanted.
    if (!(error instanceof RequestError && error.code === 'PROJECT_NOT_FOUND')) complain(error);
  }
}

/** @param {string} id */
async function restore(id) {
  try {
    await socket.request({ type: 'project:restore', projectId: id });
    sidebar.focus(id);
  } catch (error) {
    complain(error);
  }
}

/** @param {unknown} error */
function complain(error) {
  toasts.show(error instanceof Error ? error.message : String(error));
}

part('add-project', HTMLButtonElement).addEventListener('click', addProject.open);
startTheme(part('theme', HTMLButtonElement));
startSidebarWidth(part('divider', HTMLElement));
startDrawer();
