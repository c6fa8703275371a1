/** Which agents are offered first, which under "More agents…", and what is said beside each. Pure. */

/** @typedef {import('./workspace.js').Agent} Agent */

/** @type {Record<Agent['readiness'], number>} */
const RANK = { ready: 0, 'needs-login': 1, broken: 2, 'not-installed': 3 };

/**
 * Those one can start come first; the long list is folded away.
 * @param {Agent[]} agents
 * @returns {{ first: Agent[], more: Agent[] }}
 */
export function offered(agents) {
  const folded = (/** @type {Agent} */ { more, readiness }) => more === true && readiness === 'not-installed';
  const first = agents.filter((agent) => !folded(agent));
  return { first: first.toSorted((a, b) => RANK[a.readiness] - RANK[b.readiness]), more: agents.filter(folded) };
}

/** Whether it has to be brought here first, and can be. @param {Agent} agent */
export function isMissing({ readiness, install, cannotInstall }) {
  return readiness === 'not-installed' && (install !== undefined || cannotInstall !== undefined);
}

/** @param {Agent} agent @returns {string | undefined} */
export function noteOf(agent) {
  const { readiness, node, installing } = agent;
  if (installing) return 'Installing…';
  if (readiness === 'not-installed') return isMissing(agent) ? 'Not installed' : 'Its command was not found';
  const state = { ready: undefined, 'needs-login': 'Needs a sign-in', broken: 'Did not start last time' }[readiness];
  return state ?? node;
}
