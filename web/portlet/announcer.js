/** Screen reader announcements: a turn has started or ended, or the agent needs an answer. Each is announced once. */

/** @param {HTMLElement} place */
export function startAnnouncer(place) {
  let working = false;
  /** @type {Set<string>} */
  const announced = new Set();
  let known = false;

  return {
    /**
     * @param {import('../types/wire.js').SessionInfo} info
     * @param {import('../types/wire.js').ChatEntry | undefined} last
     * @param {string} agent
     */
    update: (info, last, agent) => {
      const announcements = [];
      for (const { permissionId, title } of info.permissions) {
        if (!announced.has(permissionId)) announcements.push(`${agent} asks: ${title}`);
        announced.add(permissionId);
      }
      for (const { questionId, message } of info.questions) {
        if (!announced.has(questionId)) announcements.push(`${agent} asks: ${message}`);
        announced.add(questionId);
      }
      const now = Boolean(info.turn);
      if (known && now && !working) announcements.push(`${agent} is working`);
      if (known && !now && working) announcements.push(ending(last, agent));
      working = now;
      known = true;
      if (announcements.length > 0) place.textContent = announcements.join('. ');
    },
  };
}

/** @param {import('../types/wire.js').ChatEntry | undefined} last @param {string} agent */
function ending(last, agent) {
  if (last?.type !== 'turn' || last.outcome === 'ended') return `${agent} has finished`;
  if (last.outcome === 'cancelled') return `${agent} was stopped`;
  return `${agent} did not finish: ${last.message ?? last.outcome}`;
}
