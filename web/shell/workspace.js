/**
 * The client's copy of the server's projects, session lists and agents: a pure fold over the server's messages.
 *
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('../types/wire.js').AgentSummary} AgentSummary
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 *
 * @typedef {AgentSummary & { reason?: string }} Agent  reason: why the agent is not connected
 * @typedef {Map<string, SessionListItem[]>} Lists  by project id; most recently active session first
 *
 * @typedef {object} Workspace
 * @property {Project[] | null} projects  in order of addition; null until the first list arrives
 * @property {Lists} sessions  sessions of the projects whose list has arrived
 * @property {Lists} archived  the same for archived sessions, which are requested only when shown
 * @property {Agent[]} agents
 * @property {string[]} notices
 * @property {string} bootId
 * @property {string} version  current version of the server
 * @property {boolean} stale  whether the server's version has changed since this page was loaded
 */

/** @type {Workspace} */
export const EMPTY = {
  projects: null,
  sessions: new Map(),
  archived: new Map(),
  agents: [],
  notices: [],
  bootId: '',
  version: '',
  stale: false,
};

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
    case 'notices':
      return { ...workspace, notices: message.notices };
    case 'project:list': {
      const ids = new Set(message.projects.map(({ id }) => id));
      return { ...onlyProjects(workspace, (id) => ids.has(id)), projects: inOrder(message.projects) };
    }
    case 'project:added': {
      const others = (workspace.projects ?? []).filter(({ id }) => id !== message.project.id);
      return { ...workspace, projects: inOrder([...others, message.project]) };
    }
    case 'project:removed': {
      const left = (workspace.projects ?? []).filter(({ id }) => id !== message.projectId);
      return { ...onlyProjects(workspace, (id) => id !== message.projectId), projects: left };
    }
    case 'agent:list': {
      const reasons = new Map(workspace.agents.map(({ cliType, reason }) => [cliType, reason]));
      const agents = message.agents.map((agent) => ({ ...agent, reason: reasons.get(agent.cliType) }));
      return { ...workspace, agents };
    }
    case 'agent:status': {
      const { cliType, status, reason } = message;
      const changed = (/** @type {Agent} */ agent) =>
        agent.cliType === cliType ? { ...agent, status, reason } : agent;
      return { ...workspace, agents: workspace.agents.map(changed) };
    }
    default:
      return applyToSessions(workspace, message);
  }
}

/**
 * @param {Workspace} workspace
 * @param {ServerMessage} message
 * @returns {Workspace}
 */
function applyToSessions(workspace, message) {
  const { sessions, archived } = workspace;
  switch (message.type) {
    case 'session:list': {
      const known = message.archived ? 'archived' : 'sessions';
      const list = new Map(workspace[known]).set(message.projectId, newestFirst(message.sessions));
      return { ...workspace, [known]: list };
    }
    case 'session:created':
      return { ...workspace, sessions: withItem(sessions, message.session) };
    case 'session:unarchived': {
      const without = change(archived, message.sessionId, () => null);
      return { ...workspace, sessions: withItem(sessions, message.session), archived: without };
    }
    case 'session:archived': {
      const item = find(workspace, message.sessionId);
      const gone = change(sessions, message.sessionId, () => null);
      return {
        ...workspace,
        sessions: gone,
        archived: item ? withItem(archived, { ...item, archived: true }) : archived,
      };
    }
    case 'session:deleted': {
      const gone = () => null;
      return {
        ...workspace,
        sessions: change(sessions, message.sessionId, gone),
        archived: change(archived, message.sessionId, gone),
      };
    }
    case 'session:title-updated': {
      const titled = (/** @type {SessionListItem} */ item) => ({ ...item, title: message.title });
      return {
        ...workspace,
        sessions: change(sessions, message.sessionId, titled),
        archived: change(archived, message.sessionId, titled),
      };
    }
    case 'session:state': {
      const { state, lastActiveAt } = message;
      const changed = change(sessions, message.sessionId, (item) => ({ ...item, state, lastActiveAt }));
      return changed === sessions ? workspace : { ...workspace, sessions: changed };
    }
    default:
      return workspace; // A response to a request, or a message type of a newer server.
  }
}

/**
 * The session with this id, unless it is archived, deleted or unknown.
 * @param {Workspace} workspace
 * @param {string} id
 */
export function find({ sessions }, id) {
  for (const list of sessions.values()) {
    const item = byId(list).get(id);
    if (item) return item;
  }
  return undefined;
}

/** Whether the list of every project has arrived, so that a session in no list does not exist. */
/** @param {Workspace} workspace */
export function complete({ projects, sessions }) {
  return projects?.every(({ id }) => sessions.has(id)) === true;
}

/** @type {WeakMap<SessionListItem[], Map<string, SessionListItem>>} */
const indexes = new WeakMap();

/** @param {SessionListItem[]} list */
function byId(list) {
  let index = indexes.get(list);
  if (!index) {
    index = new Map(list.map((item) => [item.id, item]));
    indexes.set(list, index);
  }
  return index;
}

/**
 * @param {Lists} lists
 * @param {SessionListItem} item
 */
function withItem(lists, item) {
  const list = lists.get(item.projectId);
  // The project's list has not arrived yet and will contain the item.
  if (!list) return lists;
  const others = list.filter(({ id }) => id !== item.id);
  return new Map(lists).set(item.projectId, newestFirst([...others, item]));
}

/**
 * @param {Lists} lists
 * @param {string} id
 * @param {(item: SessionListItem) => SessionListItem | null} edit  returns null to remove the item
 */
function change(lists, id, edit) {
  for (const [projectId, list] of lists) {
    const item = byId(list).get(id);
    if (!item) continue;
    const edited = edit(item);
    const others = list.filter((other) => other !== item);
    return new Map(lists).set(projectId, edited ? newestFirst([...others, edited]) : others);
  }
  return lists;
}

/**
 * @param {Workspace} workspace
 * @param {(projectId: string) => boolean} stays
 */
function onlyProjects(workspace, stays) {
  const left = (/** @type {Lists} */ lists) => new Map([...lists].filter(([id]) => stays(id)));
  return { ...workspace, sessions: left(workspace.sessions), archived: left(workspace.archived) };
}

/** @param {SessionListItem[]} sessions */
function newestFirst(sessions) {
  return sessions.toSorted((a, b) => (a.lastActiveAt > b.lastActiveAt ? -1 : a.lastActiveAt < b.lastActiveAt ? 1 : 0));
}

/** @param {Project[]} projects */
function inOrder(projects) {
  return projects.toSorted((a, b) => (a.addedAt < b.addedAt ? -1 : 1));
}

/**
 * The parent folders of the projects that share their name with another project.
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
