/**
 * Asks for the sessions of projects, a few lists at a time: with tens of thousands of sessions the first are shown
 * while the others are still on their way, and the page stays quick meanwhile.
 *
 * @typedef {import('../types/wire.js').Project} Project
 */

const AT_ONCE = 4;

/** @param {import('./socket.js').Socket} socket @param {() => boolean} showsArchived */
export function startSessionLists(socket, showsArchived) {
  /** @type {{ projectId: string, archived: boolean }[]} */
  let waiting = [];
  let underWay = 0;

  const next = () => {
    while (underWay < AT_ONCE && waiting.length > 0) {
      const [wanted] = waiting.splice(0, 1);
      underWay += 1;
      socket
        .request({ type: 'session:list', ...wanted })
        .catch(() => {})
        .finally(() => {
          underWay -= 1;
          next();
        });
    }
  };
  /** @param {Project[]} projects @param {boolean} archived */
  const add = (projects, archived) => {
    const ids = new Set(projects.map(({ id }) => id));
    const others = waiting.filter((one) => one.archived !== archived || !ids.has(one.projectId));
    waiting = [...others, ...[...ids].map((projectId) => ({ projectId, archived }))];
    next();
  };

  return {
    /** @param {Project[]} projects */
    ask: (projects) => {
      add(projects, false);
      if (showsArchived()) add(projects, true);
    },
    /** @param {Project[]} projects */
    askArchived: (projects) => add(projects, true),
  };
}
