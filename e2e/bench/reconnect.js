/** Kills the server under an open session and starts it again; measures from its open port to an up-to-date page. */

const DOWN_MS = 1500;

/**
 * @param {import('@playwright/test').Page} page  with a session in view
 * @param {Awaited<ReturnType<typeof import('../support/liminal.js').startServer>>} server
 */
export async function reconnect(page, server) {
  const resynced = new Promise((resolve) => {
    page.on('websocket', (socket) =>
      socket.on('framereceived', ({ payload }) => {
        if (/"type":"session:(history|resumed)"/.test(String(payload))) resolve(Date.now());
      }),
    );
  });
  await server.kill();
  await page.waitForTimeout(DOWN_MS);
  await server.start();
  const ready = Date.now();
  return Number(await resynced) - ready;
}
