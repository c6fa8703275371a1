/** The actions on a session in the sidebar. Archiving and deleting can be undone. */

import { openMenu } from './menu.js';

/**
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 *
 * @typedef {object} Dependencies
 * @property {import('./socket.js').Socket} socket
 * @property {import('./toasts.js').Toasts} toasts
 * @property {(error: unknown) => void} showError
 * @property {(sessionIds: string[]) => () => void} tabsOf  returns a function that restores their current tabs
 * @property {(sessionId: string) => void} beginRename
 * @property {(sessionId: string) => void} open
 * @property {(sessionId: string) => void} showTraffic
 */

/** @param {Dependencies} needs */
export function sessionActions({ socket, toasts, showError, tabsOf, beginRename, open, showTraffic }) {
  /** @param {SessionListItem} session */
  const archive = async ({ id, title }) => {
    const restoreTabs = tabsOf([id]);
    try {
      await socket.request({ type: 'session:archive', sessionId: id });
      const undo = () => complainOnError(socket.request({ type: 'session:unarchive', sessionId: id }), restoreTabs);
      toasts.show(`Archived “${title}”.`, { label: 'Undo', run: undo, undoes: true });
    } catch (error) {
      showError(error);
    }
  };

  /** @param {SessionListItem} session */
  const remove = async ({ id, title }) => {
    const restoreTabs = tabsOf([id]);
    try {
      await socket.request({ type: 'session:delete', sessionId: id });
      const undo = () => complainOnError(socket.request({ type: 'session:restore', sessionId: id }), restoreTabs);
      toasts.show(`Deleted “${title}”.`, { label: 'Undo', run: undo, undoes: true });
    } catch (error) {
      showError(error);
    }
  };

  /** @param {SessionListItem} session */
  const unarchive = ({ id }) => complainOnError(socket.request({ type: 'session:unarchive', sessionId: id }), () => {});

  /** @param {Promise<unknown>} request @param {() => void} then */
  const complainOnError = (request, then) => request.then(then, showError);

  return {
    archive,
    remove,
    unarchive,
    /** @param {SessionListItem} session @param {string} title */
    rename: ({ id }, title) =>
      complainOnError(socket.request({ type: 'session:rename', sessionId: id, title }), () => {}),
    /** Opens a session; an archived one is unarchived first. @param {SessionListItem} session */
    open: (session) => {
      if (!session.archived) return open(session.id);
      const { id } = session;
      return complainOnError(socket.request({ type: 'session:unarchive', sessionId: id }), () => open(id));
    },
    /** @param {SessionListItem} session @param {HTMLElement} anchor @param {{ x: number, y: number }} [at] */
    menu: (session, anchor, at) => {
      const archiveItem = session.archived
        ? { label: 'Unarchive', run: () => unarchive(session) }
        : { label: 'Archive', note: 'Del', run: () => archive(session) };
      openMenu(
        anchor,
        `Actions for ${session.title}`,
        [
          { label: 'Rename', note: 'F2', run: () => beginRename(session.id) },
          archiveItem,
          { label: 'Delete', run: () => remove(session) },
          ...(session.archived ? [] : [{ label: 'Traffic', run: () => showTraffic(session.id) }]),
        ],
        at,
      );
    },
  };
}
