/**
 * The sessions that need the user: those that wait for an answer, and those that failed or finished while not in view.
 * Pure.
 *
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 * @typedef {import('./workspace.js').Workspace} Workspace
 *
 * @typedef {'running' | 'waiting' | 'failed' | 'finished' | 'idle'} Mark
 * @typedef {{ waiting: number, failed: number, finished: number }} Counts  numbers of sessions that need the user
 *
 * A session that has just begun to need the user.
 * @typedef {{ session: SessionListItem, mark: 'waiting' | 'failed' | 'finished' }} NewlyNeeded
 */

import { find } from './workspace.js';

/** The text of each mark for tooltips and screen readers. */
export const MARK_WORDS = {
  running: 'running',
  waiting: 'needs your answer',
  failed: 'failed',
  finished: 'finished, not seen yet',
  idle: '',
};

/**
 * @param {SessionListItem} session
 * @param {ReadonlySet<string>} unseen  ids of sessions whose turn ended while they were not in view
 * @returns {Mark}
 */
export function markOf({ id, state }, unseen) {
  return state === 'idle' && unseen.has(id) ? 'finished' : state;
}

/**
 * The sessions that need the user since this message.
 * @param {Workspace} before
 * @param {Workspace} after
 * @param {ServerMessage} message
 * @returns {NewlyNeeded[]}
 */
export function newlyNeeded(before, after, message) {
  if (message.type === 'session:state')
    return [message.sessionId].flatMap((id) => newlyNeededOf(before, find(after, id)));
  // After a reconnect the new lists show what changed meanwhile.
  if (message.type !== 'session:list' || message.archived || !before.sessions.has(message.projectId)) return [];
  return (after.sessions.get(message.projectId) ?? []).flatMap((session) => newlyNeededOf(before, session));
}

/**
 * @param {Workspace} before
 * @param {SessionListItem | undefined} session
 * @returns {NewlyNeeded[]}
 */
function newlyNeededOf(before, session) {
  const was = session && find(before, session.id);
  if (!was || was.state === session.state) return [];
  if (session.state === 'waiting' || session.state === 'failed') return [{ session, mark: session.state }];
  const ended = session.state === 'idle' && (was.state === 'running' || was.state === 'waiting');
  return ended ? [{ session, mark: 'finished' }] : [];
}

/**
 * All sessions that need the user, by kind. Within each project the most recently active session comes first.
 * @param {Workspace} workspace
 * @param {ReadonlySet<string>} unseen
 * @returns {{ waiting: SessionListItem[], failed: SessionListItem[], finished: SessionListItem[] }}
 */
export function needed({ sessions }, unseen) {
  /** @type {{ waiting: SessionListItem[], failed: SessionListItem[], finished: SessionListItem[] }} */
  const found = { waiting: [], failed: [], finished: [] };
  for (const list of sessions.values()) {
    for (const session of list) {
      // Skip early: nearly all sessions are idle and seen, and there may be many.
      if (session.state === 'idle' && !unseen.has(session.id)) continue;
      const mark = markOf(session, unseen);
      if (mark === 'waiting' || mark === 'finished') found[mark].push(session);
      else if (mark === 'failed' && unseen.has(session.id)) found.failed.push(session);
    }
  }
  return found;
}

/**
 * The counts as a short text, such as `2 waiting, 1 failed`; empty if no session needs the user.
 * @param {Counts} counts
 */
export function countsText({ waiting, failed, finished }) {
  const parts = [waiting && `${waiting} waiting`, failed && `${failed} failed`, finished && `${finished} finished`];
  return parts.filter(Boolean).join(', ');
}

/**
 * The most urgent kind with its count, for places that can show only one number.
 * @param {Counts} counts
 * @returns {{ mark: Mark, number: number }}
 */
export function mostUrgent({ waiting, failed, finished }) {
  if (waiting > 0) return { mark: 'waiting', number: waiting };
  if (failed > 0) return { mark: 'failed', number: failed };
  return { mark: finished > 0 ? 'finished' : 'idle', number: finished };
}

/**
 * The window title: the counts, then the title of the session in view.
 * @param {Counts} counts
 * @param {string | undefined} inView
 */
export function windowTitle(counts, inView) {
  const summary = countsText(counts);
  const name = inView ? `${inView} – Liminal Builder` : 'Liminal Builder';
  return summary ? `(${summary}) ${name}` : name;
}
