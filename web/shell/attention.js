/**
 * What needs the person: which sessions wait, failed, or finished while nobody looked. Pure.
 *
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 * @typedef {import('./workspace.js').Workspace} Workspace
 *
 * @typedef {'running' | 'waiting' | 'failed' | 'finished' | 'idle'} Mark
 * @typedef {{ waiting: number, failed: number, finished: number }} Counts  of sessions that need somebody
 * @typedef {{ session: SessionListItem, mark: 'waiting' | 'failed' | 'finished' }} Turned  a session that came to need somebody
 */

import { find } from './workspace.js';

/** What each mark is called, for those who do not see it. */
export const MARK_WORDS = {
  running: 'running',
  waiting: 'waiting for you',
  failed: 'failed',
  finished: 'finished, not seen yet',
  idle: '',
};

/**
 * @param {SessionListItem} session
 * @param {ReadonlySet<string>} unseen  ids of those that ended while nobody looked
 * @returns {Mark}
 */
export function markOf({ id, state }, unseen) {
  return state === 'idle' && unseen.has(id) ? 'finished' : state;
}

/**
 * The sessions that this message made need somebody.
 * @param {Workspace} before
 * @param {Workspace} after
 * @param {ServerMessage} message
 * @returns {Turned[]}
 */
export function turned(before, after, message) {
  if (message.type === 'session:state') return [message.sessionId].flatMap((id) => turnOf(before, find(after, id)));
  // After a reconnect the lists tell what happened meanwhile.
  if (message.type !== 'session:list' || message.archived || !before.sessions.has(message.projectId)) return [];
  return (after.sessions.get(message.projectId) ?? []).flatMap((session) => turnOf(before, session));
}

/**
 * @param {Workspace} before
 * @param {SessionListItem | undefined} session
 * @returns {Turned[]}
 */
function turnOf(before, session) {
  const was = session && find(before, session.id);
  if (!was || was.state === session.state) return [];
  if (session.state === 'waiting' || session.state === 'failed') return [{ session, mark: session.state }];
  const ended = session.state === 'idle' && (was.state === 'running' || was.state === 'waiting');
  return ended ? [{ session, mark: 'finished' }] : [];
}

/**
 * Everything that needs somebody, what waits first, then what failed, then what finished; each with the newest first.
 * @param {Workspace} workspace
 * @param {ReadonlySet<string>} unseen
 * @returns {{ waiting: SessionListItem[], failed: SessionListItem[], finished: SessionListItem[] }}
 */
export function needed({ sessions }, unseen) {
  /** @type {{ waiting: SessionListItem[], failed: SessionListItem[], finished: SessionListItem[] }} */
  const found = { waiting: [], failed: [], finished: [] };
  for (const list of sessions.values()) {
    for (const session of list) {
      // Nearly all are idle and seen, and there may be many.
      if (session.state === 'idle' && !unseen.has(session.id)) continue;
      const mark = markOf(session, unseen);
      if (mark === 'waiting' || mark === 'finished') found[mark].push(session);
      else if (mark === 'failed' && unseen.has(session.id)) found.failed.push(session);
    }
  }
  return found;
}

/**
 * What needs somebody, in few words: everywhere the same ones. Empty if nothing does.
 * @param {Counts} counts
 */
export function inWords({ waiting, failed, finished }) {
  const news = [waiting && `${waiting} waiting`, failed && `${failed} failed`, finished && `${finished} finished`];
  return news.filter(Boolean).join(', ');
}

/**
 * Where there is only room for one number: the most urgent kind.
 * @param {Counts} counts
 * @returns {{ mark: Mark, number: number }}
 */
export function mostUrgent({ waiting, failed, finished }) {
  if (waiting > 0) return { mark: 'waiting', number: waiting };
  if (failed > 0) return { mark: 'failed', number: failed };
  return { mark: finished > 0 ? 'finished' : 'idle', number: finished };
}

/**
 * The title of the window: what needs somebody, then what is in view.
 * @param {Counts} counts
 * @param {string | undefined} inView
 */
export function windowTitle(counts, inView) {
  const said = inWords(counts);
  const name = inView ? `${inView} – Liminal Builder` : 'Liminal Builder';
  return said ? `(${said}) ${name}` : name;
}
