/**
 * The server side of a typical web UI for agents: a Node process that reads the agent's lines, appends them to the
 * conversation in memory and forwards each at once. It stores nothing else.
 *
 * `node bridge.js AGENT` prints its address. A client's message is the prompt; `done` is the last message of a turn.
 */

import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';

const agent = process.argv[2];
const server = createServer();
const sockets = new WebSocketServer({ server, path: '/ws' });

sockets.on('connection', (socket) => {
  const child = spawn(agent, { stdio: ['pipe', 'pipe', 'ignore'] });
  /** @type {{ type: string, content: string }[]} */
  const entries = [];
  socket.on('message', (data) => {
    entries.push({ type: 'user', content: String(data) });
    const params = { sessionId: 's', prompt: [{ type: 'text', text: String(data) }] };
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'session/prompt', params })}\n`);
  });
  socket.on('close', () => child.kill());
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.result) return socket.send('done');
    const update = message.params?.update;
    if (!update) return;
    if (update.sessionUpdate === 'agent_message_chunk') {
      const last = entries[entries.length - 1];
      if (last?.type === 'assistant') last.content += update.content.text;
      else entries.push({ type: 'assistant', content: update.content.text });
    }
    socket.send(JSON.stringify(update));
  });
});

server.listen(0, '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  process.stdout.write(`127.0.0.1:${address.port}\n`);
});
