/**
 * What this window knows of the server, as a pure fold over its messages.
 *
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('../types/wire.js').AgentSummary} AgentSummary
 *
 * @typedef {object} Workspace
 * @property {Project[] | null} projects  in order of insertion; null until the first list
 * @property {AgentSummary[]} agents
 * @property {string[]} notices
 * @property {string} bootId
 * @property {string} version  of the server now
 * @property {boolean} stale  whether the server became another version than this page came from
 */

/** @type {Workspace} */
export const EMPTY = { projects: null, agents: [], notices: [], bootId: '', version: '', stale: false };

/**
 * @param {Workspace} workspace
 * @param {ServerMessage} message
 * @returns {Workspace}
 */
export function apply(workspace, message) {
  switch (message.type) {
    case 'hello': {
      const { agents, notices, bootId, version } = message;
      const stale = workspace.stale || (workspace.version !== '' && workspace.version !== version);
      return { ...workspace, agents, notices, bootId, version, stale };
    }
    case 'project:list':
      return { ...workspace, projects: inOrder(message.projects) };
    case 'project:added': {
      const others = (workspace.projects ?? []).filter(({ id }) => id !== message.project.id);
      return { ...workspace, projects: inOrder([...others, message.project]) };
    }
    case 'project:removed': {
      const left = (workspace.projects ?? []).filter(({ id }) => id !== message.projectId);
      return { ...workspace, projects: left };
    }
    default:
      return workspace; // An answer to somebody, or a message of a newer server.
  }
}

/** @param {Project[]} projects */
function inOrder(projects) {
  return projects.toSorted((a, b) => (a.addedAt < b.addedAt ? -1 : 1));
}

/**
 * Where a project is, for those whose name alone would be ambiguous.
 * @param {Project[]} projects
 * @returns {Map<string, string>}  project id to parent folder
 */
export function ambiguousPlaces(projects) {
  /** @type {Map<string, number>} */
  const count = new Map();
  for (const { name } of projects) count.set(name, (count.get(name) ?? 0) + 1);
  const shared = projects.filter(({ name }) => (count.get(name) ?? 0) > 1);
  return new Map(shared.map(({ id, path }) => [id, path.split('/').at(-2) || '/']));
}
