/**
 * Loads the workspace and a bare page alternately, each with an empty cache, and prints the cost of each load as JSON:
 * kilobytes and requests on the wire, milliseconds to the first paint, and, with a session left open, milliseconds
 * until the user can type. `LIMINAL` and `BENCH` name the programs, the argument the number of runs.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from '@playwright/test';
import { LAUNCH } from '../support/browser.js';
import { startServer } from '../support/liminal.js';
import { meter, nextPaint, probe } from './probe.js';
import { signedInContext } from './signed-in.js';
import { fill } from './store.js';

const runs = Number(process.argv[2] ?? 5);
/** @type {Record<string, number[]>} */
const measured = {};

const home = realpathSync(mkdtempSync(join(tmpdir(), 'liminal-bench-')));
const [session] = fill(home, [200]);
const server = await startServer(home);
const bare = spawn(process.env.BENCH ?? '', ['page'], { stdio: ['ignore', 'pipe', 'inherit'] });
const bareUrl = await new Promise((resolve) => {
  createInterface({ input: bare.stdout }).once('line', (line) => resolve(line.split('ready: ')[1]));
});
const browser = await chromium.launch(LAUNCH);
try {
  for (let run = 0; run < runs; run += 1) {
    await load('', `${server.origin}/`);
    await load('bare_', bareUrl);
    await type('', `${server.origin}/`, 'textarea[placeholder="Message Claude Code"]');
    await type('bare_', bareUrl, 'textarea');
  }
} finally {
  await browser.close();
  await server.stop();
  bare.kill();
  rmSync(home, { recursive: true, force: true });
}
process.stdout.write(JSON.stringify(measured));

/** @param {string} whose @param {string} url */
async function load(whose, url) {
  const context = await signedInContext(browser, server.url);
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  let [bytes, requests] = [0, 0];
  session.on('Network.loadingFinished', (event) => {
    bytes += event.encodedDataLength;
    requests += 1;
  });
  await session.send('Network.enable');
  await page.goto(url);
  await page.waitForLoadState('networkidle');
  const paint = await page.evaluate(
    () =>
      /** @type {Promise<number>} */ (
        new Promise((resolve) => {
          const first = new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime));
          first.observe({ type: 'paint', buffered: true });
        })
      ),
  );
  add(`${whose}kb`, bytes / 1024);
  add(`${whose}requests`, requests);
  add(`${whose}paint`, paint);
  await context.close();
}

/** @param {string} whose @param {string} url @param {string} field */
async function type(whose, url, field) {
  const context = await signedInContext(browser, server.url, { viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const gauge = await meter(browser, page);
  const tabs = JSON.stringify({ openTabs: [session], activeTab: session, tabOrder: [session] });
  await page.addInitScript(`if (window === top) localStorage.setItem('liminal:tabs', ${JSON.stringify(tabs)})`);
  await page.addInitScript(`window.watch = ${JSON.stringify(field)}; (${probe})()`);
  const there = nextPaint(page);
  await page.goto(url);
  const at = await there;
  add(`${whose}interactive`, at - (await page.evaluate(() => performance.timeOrigin)));
  await page.waitForLoadState('networkidle');
  add(`${whose}longest`, await gauge.longestMs());
  add(`${whose}heap`, await gauge.heapMb());
  await context.close();
}

/** @param {string} name @param {number} value */
function add(name, value) {
  measured[name] ??= [];
  measured[name].push(value);
}
