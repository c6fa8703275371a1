/**
 * Asks for the sessions of projects, a few lists at a time: with tens of thousands of sessions the first, which come
 * unasked, are shown while the others are still on their way, and the page stays quick meanwhile.
 *
 * @typedef {import('../types/wire.js').Project} Project
 */

const AT_ONCE = 4;
/** Longer than the first frame takes in a window that is painted. */
const FIRST_FRAME_MS = 300;

/** @param {import('./socket.js').Socket} socket @param {() => boolean} showsArchived */
export function startSessionLists(socket, showsArchived) {
  /** @type {{ projectId: string, archived: boolean }[]} */
  let waiting = [];
  let underWay = 0;
  /** Projects whose list has come over this connection. @type {Set<string>} */
  const come = new Set();

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
    /** Another connection: what came over the last one may have changed since. */
    begin: () => {
      waiting = [];
      come.clear();
    },
    /** @param {string} projectId @param {boolean} archived */
    came: (projectId, archived) => {
      if (!archived) come.add(projectId);
    },
    /** Those that have not come by themselves, after those have been shown. @param {Project[]} projects */
    askOthers: (projects) => {
      let asked = false;
      const go = () => {
        if (asked) return;
        asked = true;
        add(
          projects.filter(({ id }) => !come.has(id)),
          false,
        );
        if (showsArchived()) add(projects, true);
      };
      requestAnimationFrame(() => setTimeout(go));
      setTimeout(go, FIRST_FRAME_MS);
    },
    /** @param {Project[]} projects */
    askArchived: (projects) => add(projects, true),
  };
}
