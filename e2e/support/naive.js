/**
 * A local server without access checks, as many are written. An attack that succeeds here must fail against ours; an
 * attack that fails here proves nothing.
 *
 * @typedef {object} Naive
 * @property {string} origin
 * @property {string[]} taken  the requests that hostile pages made it accept
 * @property {() => void} stop
 */

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

/** Its page gives a port to any window that requests one, without checking which window it is. */
const PAGE = `<!doctype html><title>Naive</title><p id="secret">private</p><script>
  addEventListener('message', ({ data, source }) => {
    if (data?.type === 'portlet:ready') source.postMessage({ type: 'portlet:port' }, '*', [new MessageChannel().port2]);
  });
</script>`;

/** @returns {Promise<Naive>} */
export async function startNaive() {
  /**
   * The kind of a POST request: its fetch mode and its encoding.
   * @param {import('node:http').IncomingHttpHeaders} headers
   */
  const wayOf = (headers) => `${headers['sec-fetch-mode']} ${headers['content-type']?.split(';')[0]}`;
  /** @type {string[]} */
  const taken = [];
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    response.setHeader('access-control-allow-origin', headers.origin ?? '*');
    response.setHeader('access-control-allow-credentials', 'true');
    response.setHeader('access-control-allow-headers', 'content-type');
    request.resume();
    if (method === 'POST') taken.push(`POST ${url}`, `${wayOf(headers)} ${url}`);
    response.setHeader('content-type', 'text/html').end(PAGE);
  });
  server.on('upgrade', (request, socket) => {
    const accept = createHash('sha1').update(
      `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`,
    );
    socket.on('error', () => {});
    socket.on('data', () => taken.push(`socket ${request.url}`));
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept.digest('base64')}\r\n\r\n`,
    );
    const hello = 'hello';
    socket.write(Buffer.concat([Buffer.from([0x81, hello.length]), Buffer.from(hello)]));
  });
  const { origin, stop } = await listening(server);
  return { origin, taken, stop };
}

/** @param {import('node:http').Server} server  gets a free port on all addresses */
export async function listening(server) {
  await new Promise((resolve) => server.listen(0, '0.0.0.0', () => resolve(undefined)));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
