/** Says once, to who listens rather than looks, that a turn began, ended, or waits for an answer. */

/** @param {HTMLElement} place */
export function startAnnouncer(place) {
  let working = false;
  /** @type {Set<string>} */
  const asked = new Set();
  let known = false;

  return {
    /**
     * @param {import('../types/wire.js').SessionInfo} info
     * @param {import('../types/wire.js').ChatEntry | undefined} last
     * @param {string} agent
     */
    hear: (info, last, agent) => {
      const said = [];
      for (const { permissionId, title } of info.permissions) {
        if (!asked.has(permissionId)) said.push(`${agent} asks: ${title}`);
        asked.add(permissionId);
      }
      for (const { questionId, message } of info.questions) {
        if (!asked.has(questionId)) said.push(`${agent} asks: ${message}`);
        asked.add(questionId);
      }
      const now = Boolean(info.turn);
      if (known && now && !working) said.push(`${agent} is working`);
      if (known && !now && working) said.push(ending(last, agent));
      working = now;
      known = true;
      if (said.length > 0) place.textContent = said.join('. ');
    },
  };
}

/** @param {import('../types/wire.js').ChatEntry | undefined} last @param {string} agent */
function ending(last, agent) {
  if (last?.type !== 'turn' || last.outcome === 'ended') return `${agent} has finished`;
  if (last.outcome === 'cancelled') return `${agent} was stopped`;
  return `${agent} did not finish: ${last.message ?? last.outcome}`;
}
