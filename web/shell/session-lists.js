/**
 * Requests the session lists of projects, a few at a time, so that the page stays responsive with tens of thousands of
 * sessions. The server sends the first lists without a request; they are shown while the others are loading.
 *
 * @typedef {import('../types/wire.js').Project} Project
 */

/** Maximum concurrent requests. */
const CONCURRENT_MAX = 4;
/** Maximum wait for the first animation frame; a window that is not painted gets none. */
const FIRST_FRAME_MS = 300;

/** @param {import('./socket.js').Socket} socket @param {() => boolean} showsArchived */
export function startSessionLists(socket, showsArchived) {
  /** @type {{ projectId: string, archived: boolean }[]} */
  let waiting = [];
  let running = 0;
  /** Ids of projects whose list has arrived over this connection. @type {Set<string>} */
  const received = new Set();

  const next = () => {
    while (running < CONCURRENT_MAX && waiting.length > 0) {
      const [wanted] = waiting.splice(0, 1);
      running += 1;
      socket
        .request({ type: 'session:list', ...wanted })
        .catch(() => {})
        .finally(() => {
          running -= 1;
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
    /** Resets the state for a new connection, because earlier lists may be outdated. */
    begin: () => {
      waiting = [];
      received.clear();
    },
    /** @param {string} projectId @param {boolean} archived */
    listReceived: (projectId, archived) => {
      if (!archived) received.add(projectId);
    },
    /** Requests the lists the server has not sent by itself, after those are painted. @param {Project[]} projects */
    requestOthers: (projects) => {
      let asked = false;
      const go = () => {
        if (asked) return;
        asked = true;
        add(
          projects.filter(({ id }) => !received.has(id)),
          false,
        );
        if (showsArchived()) add(projects, true);
      };
      requestAnimationFrame(() => setTimeout(go));
      setTimeout(go, FIRST_FRAME_MS);
    },
    /** @param {Project[]} projects */
    requestArchived: (projects) => add(projects, true),
  };
}
