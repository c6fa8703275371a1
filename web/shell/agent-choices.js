/** The list of agents to choose from: its order, the agents under "More agents…", and the note beside each. Pure. */

/** @typedef {import('./workspace.js').Agent} Agent */

/** @type {Record<Agent['readiness'], number>} */
const RANK = { ready: 0, 'needs-login': 1, broken: 2, 'not-installed': 3 };

/**
 * Sorts agents by readiness. Registry agents that are not installed are returned separately in `more`.
 * @param {Agent[]} agents
 * @returns {{ first: Agent[], more: Agent[] }}
 */
export function offered(agents) {
  const isExtra = (/** @type {Agent} */ { more, readiness }) => more === true && readiness === 'not-installed';
  const first = agents.filter((agent) => !isExtra(agent));
  return { first: first.toSorted((a, b) => RANK[a.readiness] - RANK[b.readiness]), more: agents.filter(isExtra) };
}

/** Whether the agent is not installed and can be offered for installation. @param {Agent} agent */
export function isMissing({ readiness, install, cannotInstall }) {
  return readiness === 'not-installed' && (install !== undefined || cannotInstall !== undefined);
}

/**
 * The note beside an agent that is not ready or needs a newer Node.
 * @param {Agent} agent @returns {string | undefined}
 */
export function noteOf(agent) {
  const { readiness, node, installing } = agent;
  if (installing) return 'Installing…';
  if (readiness === 'not-installed') return isMissing(agent) ? 'Not installed' : 'Its command was not found';
  const state = { ready: undefined, 'needs-login': 'Needs a sign-in', broken: 'Failed to start' }[readiness];
  return state ?? node;
}
