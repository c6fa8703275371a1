/**
 * The real binary, one per test, with its own home directory.
 *
 * @typedef {object} Liminal
 * @property {string} url  the printed URL, with the token
 * @property {string} origin
 * @property {string} home
 * @property {(name: string) => string} folder  creates a folder in the home and returns its path
 * @property {() => Promise<void>} stop
 * @property {() => Promise<void>} kill  ends the server with SIGKILL
 * @property {() => Promise<void>} start  starts it again, on the same port and data
 * @property {() => void} pause  suspends the process (SIGSTOP)
 * @property {() => void} resume
 * @property {Record<string, string>} env  added to the environment of the next start
 * @property {string} agent  this test's own program of the scripted agent, which Claude Code and Codex run
 * @property {(...words: string[]) => void} agentStarts  sets the scripted agent's behaviours from its next start on
 * @property {() => string[]} agentLog  the requests to the agent, one line each
 * @property {() => number[]} agentProcesses  process ids of the agents that run
 */

import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test as base, expect } from '@playwright/test';

const AGENT = process.env.AGENT ?? new URL('../../target/debug/scripted-agent', import.meta.url).pathname;
const BINARY = process.env.LIMINAL ?? new URL('../../target/release/liminal', import.meta.url).pathname;

export { expect };

/**
 * @typedef {import('@playwright/test').PlaywrightTestArgs & import('@playwright/test').PlaywrightTestOptions} TestArgs
 * @typedef {import('@playwright/test').PlaywrightWorkerArgs & import('@playwright/test').PlaywrightWorkerOptions} WorkerArgs
 * @type {import('@playwright/test').Fixtures<{ liminal: Liminal }, {}, TestArgs, WorkerArgs>}
 */
const fixtures = {
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixtures it needs from this pattern
  liminal: async ({}, use) => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), 'liminal-e2e-')));
    const server = await startServer(home);
    await use(server);
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  },
  /** A page on which any error in our code fails the test. */
  page: async ({ page }, use) => {
    /** @type {string[]} */
    const errors = [];
    page.on('pageerror', (error) => errors.push(error.message));
    page.on('console', (message) => {
      // The browser itself logs a refused login, an unreachable server, and a header of another program it ignores.
      const ofBrowser = /Failed to load resource|WebSocket connection|Clear-Site-Data header/;
      if (message.type() === 'error' && !ofBrowser.test(message.text())) {
        errors.push(message.text());
      }
    });
    await use(page);
    expect(errors).toEqual([]);
  },
};

export const test = base.extend(fixtures);

/**
 * Starts a server that the caller has to stop.
 * @param {string} home
 * @param {Record<string, string>} [env]  added to the default environment
 */
export async function startServer(home, env = {}) {
  let port = '0';
  /** @type {import('node:child_process').ChildProcess} */
  let child;
  const agent = join(home, '.agent', 'scripted-agent.sh');
  const log = join(home, '.agent', 'log');
  mkdirSync(join(home, '.agent', 'memory'), { recursive: true });
  /** @param {string[]} words */
  const agentStarts = (...words) => {
    const run = `SCRIPTED_AGENT='${words.join(' ')}' SCRIPTED_AGENT_MEMORY=${home}/.agent/memory SCRIPTED_AGENT_LOG=${log}`;
    // Replaced atomically, because an agent may be starting from the old file.
    writeFileSync(`${agent}.new`, `#!/bin/sh\n${run} exec ${AGENT} "$@"\n`);
    chmodSync(`${agent}.new`, 0o755);
    renameSync(`${agent}.new`, agent);
  };
  agentStarts();
  const server = {
    url: '',
    origin: '',
    home,
    env,
    agent,
    agentStarts,
    agentLog: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
    agentProcesses: () => processesWith(log),
    /** @param {string} name */
    folder: (name) => {
      mkdirSync(join(home, name), { recursive: true });
      return join(home, name);
    },
    start: async () => {
      child = spawn(BINARY, ['--port', port, '--no-open'], {
        env: {
          HOME: home,
          PATH: process.env.PATH,
          LIMINAL_GATEWAY_PORT: 'off',
          LIMINAL_WARM_START: 'false',
          CLAUDE_ACP_CMD: agent,
          CODEX_ACP_CMD: agent,
          ...server.env,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      server.url = await readyLine(child);
      server.origin = new URL(server.url).origin;
      port = new URL(server.url).port;
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    pause: () => {
      child.kill('SIGSTOP');
      untilStopped(child.pid ?? 0);
    },
    resume: () => void child.kill('SIGCONT'),
  };
  /** @param {NodeJS.Signals} signal */
  const end = async (signal) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    // A suspended process handles the signal only when it continues.
    child.kill('SIGCONT');
    await ended;
  };
  await server.start();
  return server;
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<string>}
 */
function readyLine(child) {
  return new Promise((resolve, reject) => {
    let stderr = '';
    child.stderr?.on('data', (data) => {
      stderr += data;
    });
    child.once('exit', () => reject(new Error(`liminal ended before it was ready: ${stderr}`)));
    if (!child.stdout) return;
    createInterface(child.stdout).once('line', (line) => {
      const url = line.split('Liminal Builder is ready: ')[1];
      if (url) resolve(url);
      else reject(new Error(`not a ready line: ${line}`));
    });
  });
}

/**
 * Waits until every thread of a process has stopped. SIGSTOP stops a process only when one of its threads runs again: on
 * a busy machine another thread may still answer a request.
 * @param {number} pid
 */
function untilStopped(pid) {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return;
  const runs = (/** @type {string} */ task) => {
    try {
      const stat = readFileSync(`${tasks}/${task}/stat`, 'utf8');
      return stat[stat.lastIndexOf(')') + 2] !== 'T';
    } catch {
      return false; // The thread has ended.
    }
  };
  for (let waited = 0; readdirSync(tasks).some(runs); waited += 1) {
    if (waited > 10_000) throw new Error(`process ${pid} does not stop`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  }
}

/** Running processes of the agent that log to this file. @param {string} log @returns {number[]} */
function processesWith(log) {
  const numbers = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  return numbers.map(Number).filter((pid) => {
    try {
      const runs = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0] === AGENT;
      return runs && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`SCRIPTED_AGENT_LOG=${log}`);
    } catch {
      return false; // The process ended in the meantime.
    }
  });
}
