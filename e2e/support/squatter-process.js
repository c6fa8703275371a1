/**
 * A program of another user that binds the port of our server after its end and answers every request. It accepts every
 * connection, pretends to be the server, and prints what it receives, one line of JSON each.
 *
 * Arguments: the port.
 */

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const PORT = Number(process.argv[2]);
const PAGE = `<!doctype html><title>Liminal Builder</title><p>squatter</p><script>
  navigator.serviceWorker?.register('/worker.js');
  const database = indexedDB.open('liminal');
</script>`;
const WORKER = `addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('fetch', (event) => {
  const page = new Response('<!doctype html><p>squatter</p>', { headers: { 'content-type': 'text/html' } });
  if (event.request.mode === 'navigate') event.respondWith(page);
});`;
/** What a server that is ours would say. */
const HELLO = {
  type: 'hello',
  bootId: 'squatter',
  version: '0.1.0',
  agents: [],
  permissions: 'allow',
  notices: [],
  pass: 'squatter',
};
const CHALLENGE = { type: 'challenge', nonce: 'ab'.repeat(16), signature: Buffer.alloc(64, 7).toString('base64url') };

const say = (/** @type {unknown} */ line) => void process.stdout.write(`${JSON.stringify(line)}\n`);

const server = createServer((request, response) => {
  let body = '';
  request.on('data', (data) => {
    body += data;
  });
  request.on('end', () => {
    const { method, url = '', headers } = request;
    say({ method, url, headers, body });
    // Not with the files of its own page, or the browser would clear the worker that the page installs.
    if (!['/', '/worker.js', '/favicon.ico'].includes(url)) response.setHeader('clear-site-data', '"*"');
    response.setHeader('set-cookie', 'squatter=1; Max-Age=1000');
    if (url.startsWith('/identity')) {
      const answer = { known: true, signInNonce: 'abc', signature: CHALLENGE.signature };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    } else if (url.startsWith('/worker.js')) response.setHeader('content-type', 'text/javascript').end(WORKER);
    else response.setHeader('content-type', 'text/html').end(PAGE);
  });
});

let sockets = 0;
server.on('upgrade', (request, socket) => {
  const { url, headers } = request;
  sockets += 1;
  const number = sockets;
  say({ method: 'WS', url, headers, number });
  const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  socket.on('error', () => {});
  let received = Buffer.alloc(0);
  socket.on('data', (data) => {
    received = Buffer.concat([received, data]);
    for (let frame = take(); frame !== null; frame = take()) {
      if (frame !== undefined) say({ method: 'FRAME', number, body: frame });
    }
  });
  /** Removes a frame from what was received; undefined for one without text, null if none is complete. */
  const take = () => {
    if (received.length < 6) return null;
    const length = received[1] & 0x7f;
    const head = length === 126 ? 8 : 6;
    const size = length === 126 ? received.readUInt16BE(2) : length;
    if (received.length < head + size) return null;
    const mask = received.subarray(head - 4, head);
    const text = received.subarray(head, head + size).map((byte, at) => byte ^ mask[at % 4]);
    const isText = (received[0] & 0xf) === 1;
    received = received.subarray(head + size);
    return isText ? Buffer.from(text).toString() : undefined;
  };
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  // In turns: the greeting at once, a challenge it cannot sign and then the greeting, and silence.
  const texts = [[HELLO], [CHALLENGE, HELLO], []][number % 3];
  for (const text of texts) {
    const bytes = Buffer.from(JSON.stringify(text));
    socket.write(Buffer.concat([Buffer.from([0x81, 126, bytes.length >> 8, bytes.length & 0xff]), bytes]));
  }
});
server.listen(PORT, '127.0.0.1', () => say('ready'));
