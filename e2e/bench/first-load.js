/**
 * Loads the workspace and a bare page in turn, each time with an empty cache, and prints as JSON what each load cost:
 * kilobytes and requests on the wire, milliseconds to the first paint and until the page is connected. `LIMINAL` and `BENCH` name
 * the programs, the argument how often.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from '@playwright/test';
import { LAUNCH } from '../support/browser.js';
import { startServer } from '../support/liminal.js';
import { nextPaint, probe } from './probe.js';

const runs = Number(process.argv[2] ?? 5);
/** @type {Record<string, number[]>} */
const measured = {};

const home = realpathSync(mkdtempSync(join(tmpdir(), 'liminal-bench-')));
const server = await startServer(home);
const bare = spawn(process.env.BENCH ?? '', ['page'], { stdio: ['ignore', 'pipe', 'inherit'] });
const bareUrl = await new Promise((resolve) => {
  createInterface({ input: bare.stdout }).once('line', (line) => resolve(line.split('ready: ')[1]));
});
const browser = await chromium.launch(LAUNCH);
const storageState = await signIn();
try {
  for (let run = 0; run < runs; run += 1) {
    await measure('', `${server.origin}/`, '.connection-dot.up');
    await measure('bare_', bareUrl, '');
  }
} finally {
  await browser.close();
  await server.stop();
  bare.kill();
  rmSync(home, { recursive: true, force: true });
}
process.stdout.write(JSON.stringify(measured));

/** Once, so that what is measured is the page and not the login. */
async function signIn() {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(server.url);
  await page.locator('.connection-dot.up').waitFor();
  const state = await context.storageState();
  await context.close();
  return state;
}

/** @param {string} whose @param {string} url @param {string} ready  what is there when one can begin */
async function measure(whose, url, ready) {
  const context = await browser.newContext({ storageState });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  let [bytes, requests] = [0, 0];
  session.on('Network.loadingFinished', (event) => {
    bytes += event.encodedDataLength;
    requests += 1;
  });
  await session.send('Network.enable');
  if (ready) await page.addInitScript(`window.watch = ${JSON.stringify(ready)}; (${probe})()`);
  const connected = ready ? nextPaint(page) : null;
  await page.goto(url);
  await page.waitForLoadState('networkidle');
  const [origin, paint] = await page.evaluate(
    () =>
      /** @type {Promise<[number, number]>} */ (
        new Promise((resolve) => {
          new PerformanceObserver((list) => resolve([performance.timeOrigin, list.getEntries()[0].startTime])).observe({
            type: 'paint',
            buffered: true,
          });
        })
      ),
  );
  add(`${whose}kb`, bytes / 1024);
  add(`${whose}requests`, requests);
  add(`${whose}paint`, paint);
  if (connected) add(`${whose}interactive`, (await connected) - origin);
  await context.close();
}

/** @param {string} name @param {number} value */
function add(name, value) {
  measured[name] ??= [];
  measured[name].push(value);
}
