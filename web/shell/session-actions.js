/** What one can do with a session besides talking in it. Whatever takes it away can be undone. */

import { openMenu } from './menu.js';

/**
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 *
 * @typedef {object} Needs
 * @property {import('./socket.js').Socket} socket
 * @property {import('./toasts.js').Toasts} toasts
 * @property {(error: unknown) => void} complain
 * @property {(sessionIds: string[]) => () => void} tabsOf  how to bring their tabs back to where they are now
 * @property {(sessionId: string) => void} beginRename
 * @property {(sessionId: string) => void} open
 * @property {(sessionId: string) => void} showTraffic
 */

/** @param {Needs} needs */
export function sessionActions({ socket, toasts, complain, tabsOf, beginRename, open, showTraffic }) {
  /** @param {SessionListItem} session */
  const archive = async ({ id, title }) => {
    const bringBack = tabsOf([id]);
    try {
      await socket.request({ type: 'session:archive', sessionId: id });
      const undo = () => take(socket.request({ type: 'session:unarchive', sessionId: id }), bringBack);
      toasts.show(`Archived “${title}”.`, { label: 'Undo', run: undo, undoes: true });
    } catch (error) {
      complain(error);
    }
  };

  /** @param {SessionListItem} session */
  const remove = async ({ id, title }) => {
    const bringBack = tabsOf([id]);
    try {
      await socket.request({ type: 'session:delete', sessionId: id });
      const undo = () => take(socket.request({ type: 'session:restore', sessionId: id }), bringBack);
      toasts.show(`Deleted “${title}”.`, { label: 'Undo', run: undo, undoes: true });
    } catch (error) {
      complain(error);
    }
  };

  /** @param {SessionListItem} session */
  const unarchive = ({ id }) => take(socket.request({ type: 'session:unarchive', sessionId: id }), () => {});

  /** @param {Promise<unknown>} request @param {() => void} then */
  const take = (request, then) => request.then(then, complain);

  return {
    archive,
    remove,
    unarchive,
    /** @param {SessionListItem} session @param {string} title */
    rename: ({ id }, title) => take(socket.request({ type: 'session:rename', sessionId: id, title }), () => {}),
    /** An archived one comes back to be read. @param {SessionListItem} session */
    open: (session) => {
      if (!session.archived) return open(session.id);
      const { id } = session;
      return take(socket.request({ type: 'session:unarchive', sessionId: id }), () => open(id));
    },
    /** @param {SessionListItem} session @param {HTMLElement} anchor @param {{ x: number, y: number }} [at] */
    menu: (session, anchor, at) => {
      const away = session.archived
        ? { label: 'Unarchive', run: () => unarchive(session) }
        : { label: 'Archive', note: 'Del', run: () => archive(session) };
      openMenu(
        anchor,
        `Actions for ${session.title}`,
        [
          { label: 'Rename', note: 'F2', run: () => beginRename(session.id) },
          away,
          { label: 'Delete', run: () => remove(session) },
          ...(session.archived ? [] : [{ label: 'Traffic', run: () => showTraffic(session.id) }]),
        ],
        at,
      );
    },
  };
}
