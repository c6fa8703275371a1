/**
 * Starts the program that answers in our server's place, and replays what it received.
 *
 * @typedef {{ method: string, url: string, headers: Record<string, string>, body: string, number: number }} Received
 */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';

const PROGRAM = new URL('./squatter-process.js', import.meta.url).pathname;
/** How long a connection without an answer is watched. */
const SILENCE_MS = 1000;

/** @param {string} origin  whose port is free */
export async function startSquatter(origin) {
  const child = spawn(process.execPath, [PROGRAM, new URL(origin).port], { stdio: ['ignore', 'pipe', 'inherit'] });
  /** @type {Received[]} */
  const received = [];
  await new Promise((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const said = JSON.parse(line);
      if (said === 'ready') resolve(undefined);
      else received.push(said);
    });
  });
  return {
    received,
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/**
 * Sends everything the squatter received to the server, as the squatter received it. Returns what the server gave for
 * it: the HTTP answers that contain anything but public files, and the messages on WebSockets.
 * @param {string} origin @param {Received[]} received
 */
export async function replay(origin, received) {
  /** @type {unknown[]} */
  const gained = [];
  for (const { method, url, headers, body } of received) {
    if (method === 'FRAME' || method === 'WS') continue;
    const { host, connection, 'content-length': length, ...rest } = headers;
    const answer = await fetch(`${origin}${url}`, {
      method,
      headers: rest,
      body: body || undefined,
      redirect: 'manual',
    });
    const path = url.split('?')[0];
    const isPublic =
      ['/', '/identity', '/portlet.html', '/favicon.svg', '/health'].includes(path) || path.endsWith('.js');
    if (answer.ok && !isPublic) gained.push([method, url, answer.status]);
    if (answer.headers.has('set-cookie')) gained.push([method, url, 'set-cookie']);
  }
  for (const { url, headers, number } of received.filter(({ method }) => method === 'WS')) {
    const frames = received.filter((one) => one.method === 'FRAME' && one.number === number).map(({ body }) => body);
    gained.push(...(await replaySocket(`${origin.replace('http', 'ws')}${url}`, headers, frames)));
  }
  return gained;
}

/** @param {string} url @param {Record<string, string>} headers @param {string[]} frames @returns {Promise<string[]>} */
function replaySocket(url, headers, frames) {
  const { origin, cookie, authorization } = headers;
  const own = Object.fromEntries(Object.entries({ cookie, authorization }).filter(([, value]) => value !== undefined));
  const socket = new WebSocket(url, { origin, headers: own });
  /** @type {string[]} */
  const messages = [];
  return new Promise((resolve) => {
    const end = () => {
      socket.terminate();
      resolve(messages);
    };
    socket.on('open', () => {
      for (const frame of frames) socket.send(frame);
      socket.send(JSON.stringify({ type: 'project:list', requestId: 'stolen' }));
      setTimeout(end, SILENCE_MS);
    });
    socket.on('message', (data) => {
      // Without a proof the server says nothing else.
      if (JSON.parse(String(data)).type !== 'challenge') messages.push(String(data));
    });
    socket.on('close', end);
    socket.on('error', end);
  });
}
