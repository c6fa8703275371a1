/** The actions on a project. Removing can be undone. */

import { openMenu } from './menu.js';
import { RequestError } from './socket.js';

/**
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('./menu.js').MenuItem} MenuItem
 *
 * @typedef {object} Dependencies
 * @property {import('./socket.js').Socket} socket
 * @property {import('./toasts.js').Toasts} toasts
 * @property {(error: unknown) => void} showError
 * @property {(text: string) => void} copy
 * @property {(project: Project) => MenuItem[]} agents  menu items that start a session, one per agent
 * @property {(projectId: string) => () => void} tabsIn  returns a function that restores the current tabs of its sessions
 * @property {(projectId: string) => void} restored
 */

/** @param {Dependencies} needs */
export function projectActions({ socket, toasts, showError, copy, agents, tabsIn, restored }) {
  /** @param {Project} project */
  const remove = async ({ id, name }) => {
    const restoreTabs = tabsIn(id);
    try {
      await socket.request({ type: 'project:remove', projectId: id });
      const undo = { label: 'Undo', run: () => restore(id, restoreTabs), undoes: true };
      toasts.show(`Removed ${name}. Its files stay where they are.`, undo);
    } catch (error) {
      // Another window has already removed it, which is the wanted result.
      if (!(error instanceof RequestError && error.code === 'PROJECT_NOT_FOUND')) showError(error);
    }
  };

  /** @param {string} id @param {() => void} restoreTabs  restores its tabs */
  const restore = async (id, restoreTabs) => {
    try {
      await socket.request({ type: 'project:restore', projectId: id });
      restoreTabs();
      restored(id);
    } catch (error) {
      showError(error);
    }
  };

  /**
   * Opens the menu with all actions on a project.
   * @param {Project} project
   * @param {HTMLElement} anchor
   * @param {{ x: number, y: number } | undefined} at
   * @param {MenuItem} fold
   */
  const projectMenu = (project, anchor, at, fold) => {
    const items = [
      ...agents(project),
      fold,
      { label: 'Copy the path', note: project.path, run: () => copy(project.path) },
      { label: 'Remove', note: 'Its files stay.', run: () => remove(project) },
    ];
    openMenu(anchor, project.name, items, at);
  };

  return { remove, projectMenu };
}
