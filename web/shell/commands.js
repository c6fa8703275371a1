/** The choices of the palette: the most relevant sessions, actions, projects, then all other sessions. */

import { markOf } from './attention.js';

/**
 * @typedef {import('./palette.js').Choice} Choice
 * @typedef {import('./workspace.js').Workspace} Workspace
 * @typedef {{ label: string, keys?: string, run: () => void }} Command
 */

/** Number of sessions listed before the actions. */
const FIRST = 8;
/** Sort order of sessions by mark, lowest first. */
const RANK = { waiting: 0, failed: 1, finished: 2, running: 3, idle: 4 };

/**
 * @param {Workspace} workspace
 * @param {ReadonlySet<string>} unseen
 * @param {Command[]} commands
 * @param {{ open: (sessionId: string) => void, focusProject: (projectId: string) => void }} ways
 * @returns {Choice[]}
 */
export function paletteChoices({ projects, sessions, agents }, unseen, commands, { open, focusProject }) {
  const badges = new Map(agents.map(({ cliType, badge }) => [cliType, badge]));
  const names = new Map(projects?.map(({ id, name }) => [id, name]));
  const all = [...sessions.values()].flat().map((session) => ({ session, mark: markOf(session, unseen) }));
  all.sort((a, b) => RANK[a.mark] - RANK[b.mark] || (a.session.lastActiveAt > b.session.lastActiveAt ? -1 : 1));
  const found = all.map(({ session, mark }) => ({
    label: session.title,
    note: names.get(session.projectId),
    badge: badges.get(session.cliType),
    mark,
    run: () => open(session.id),
  }));
  return [
    ...found.slice(0, FIRST),
    ...commands.map((command) => ({ ...command, note: 'action' })),
    ...(projects ?? []).map(({ id, name, path }) => ({ label: name, note: path, run: () => focusProject(id) })),
    ...found.slice(FIRST),
  ];
}
