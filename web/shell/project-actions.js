/** What one can do with a project. Removing it can be undone. */

import { openMenu } from './menu.js';
import { RequestError } from './socket.js';

/**
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('./menu.js').MenuItem} MenuItem
 *
 * @typedef {object} Needs
 * @property {import('./socket.js').Socket} socket
 * @property {import('./toasts.js').Toasts} toasts
 * @property {(error: unknown) => void} complain
 * @property {(text: string) => void} copy
 * @property {(project: Project) => MenuItem[]} agents  an item for each, which starts a session
 * @property {(projectId: string) => () => void} tabsIn  how to bring the tabs of its sessions back to where they are now
 * @property {(projectId: string) => void} restored
 */

/** @param {Needs} needs */
export function projectActions({ socket, toasts, complain, copy, agents, tabsIn, restored }) {
  /** @param {Project} project */
  const remove = async ({ id, name }) => {
    const bringBack = tabsIn(id);
    try {
      await socket.request({ type: 'project:remove', projectId: id });
      const undo = { label: 'Undo', run: () => restore(id, bringBack), undoes: true };
      toasts.show(`Removed ${name}. Its files stay where they are.`, undo);
    } catch (error) {
      // Another window was faster: it is gone, which is what was wanted.
      if (!(error instanceof RequestError && error.code === 'PROJECT_NOT_FOUND')) complain(error);
    }
  };

  /** @param {string} id @param {() => void} bringBack  its tabs */
  const restore = async (id, bringBack) => {
    try {
      await socket.request({ type: 'project:restore', projectId: id });
      bringBack();
      restored(id);
    } catch (error) {
      complain(error);
    }
  };

  /**
   * Everything, in a menu.
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
