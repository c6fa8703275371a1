/** A second ACP client for an adapter, as another editor would be. It continues sessions outside of the server. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * @param {string} command @param {Record<string, string | undefined>} env @param {string} folder
 */
export async function startAdapter(command, env, folder) {
  const [program, ...words] = command.split(' ');
  const child = spawn(program, words, { env, cwd: folder, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  /** @type {Map<number, (answer: any) => void>} */
  const waiting = new Map();
  let lastId = 0;
  /** @param {object} message */
  const say = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  createInterface(child.stdout).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.method === undefined) waiting.get(message.id)?.(message);
    else if (message.id !== undefined) say({ id: message.id, error: { code: -32601, message: 'not here' } });
  });
  /** @param {string} method @param {object} params @returns {Promise<any>} */
  const call = async (method, params) => {
    lastId += 1;
    const answered = new Promise((resolve) => waiting.set(lastId, resolve));
    say({ id: lastId, method, params });
    const { result, error } = await Promise.race([answered, ended.then(() => ({ error: 'it ended' }))]);
    if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  };
  await call('initialize', {
    protocolVersion: 1,
    clientInfo: { name: 'another-editor', version: '1.0.0' },
    clientCapabilities: {},
  });
  return {
    call,
    /** Closes the adapter's input, as an editor does, so that the agent can save the conversation. */
    stop: async () => {
      child.stdin.end();
      await ended;
    },
  };
}
