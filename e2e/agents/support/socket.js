/** A client of the browser API, for details that the page does not show. */

import { WebSocket } from 'ws';

/** @param {import('../../support/liminal.js').Liminal} liminal */
export async function connect(liminal) {
  const token = decodeURIComponent(new URL(liminal.url).hash.slice('#token='.length));
  const socket = new WebSocket(`${liminal.origin.replace('http', 'ws')}/ws`, {
    headers: { authorization: `Bearer ${token}` },
  });
  /** @type {any[]} */
  const received = [];
  /** @type {Set<() => void>} */
  const waiting = new Set();
  socket.on('message', (data) => {
    received.push(...[JSON.parse(String(data))].flat());
    for (const look of [...waiting]) look();
  });
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject));
  /**
   * The first message that matches, received before or after the call.
   * @param {(message: any) => boolean} fits
   * @returns {Promise<any>}
   */
  const first = (fits) =>
    new Promise((resolve) => {
      const look = () => {
        const found = received.find(fits);
        if (!found) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  let lastId = 0;
  return {
    received,
    first,
    /** @param {object} message */
    request: async (message) => {
      lastId += 1;
      const requestId = `t${lastId}`;
      socket.send(JSON.stringify({ ...message, requestId }));
      const answer = await first((one) => one.requestId === requestId);
      if (answer.type === 'error') throw new Error(answer.message);
      return answer;
    },
    close: () => socket.close(),
  };
}

/** All entries of the only session. @param {import('../../support/liminal.js').Liminal} liminal */
export async function entriesOf(liminal) {
  const socket = await connect(liminal);
  const { projects } = await socket.request({ type: 'project:list' });
  const { sessions } = await socket.request({ type: 'session:list', projectId: projects[0].id });
  const { entries } = await socket.request({ type: 'session:open', sessionId: sessions[0].id });
  socket.close();
  return entries;
}
