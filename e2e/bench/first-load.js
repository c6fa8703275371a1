/**
 * Loads the pages given, in turn, each time with an empty cache, and prints as JSON what each load
 * cost: kilobytes on the wire and milliseconds to the first paint.
 */

import { chromium } from '@playwright/test';
import { LAUNCH } from '../support/browser.js';

const runs = Number(process.argv.at(-1));
const urls = process.argv.slice(2, -1);

const browser = await chromium.launch(LAUNCH);
const pages = await Promise.all(urls.map(prepare));
for (let run = 0; run < runs; run += 1) {
  for (const page of pages) await measure(page);
}
await browser.close();
process.stdout.write(JSON.stringify(pages.map(({ kb, paintMs }) => ({ kb, paintMs }))));

/** Signs in once, so that what is measured is the page and not the login. @param {string} url */
async function prepare(url) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForLoadState('networkidle');
  const storageState = await context.storageState();
  await context.close();
  return {
    url: new URL('/', url).href,
    storageState,
    kb: /** @type {number[]} */ ([]),
    paintMs: /** @type {number[]} */ ([]),
  };
}

/** @param {Awaited<ReturnType<typeof prepare>>} measured */
async function measure({ url, storageState, kb, paintMs }) {
  const context = await browser.newContext({ storageState });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  let bytes = 0;
  session.on('Network.loadingFinished', (event) => {
    bytes += event.encodedDataLength;
  });
  await session.send('Network.enable');
  await page.goto(url);
  await page.waitForLoadState('networkidle');
  const paint = await page.evaluate(
    () =>
      new Promise((resolve) => {
        new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime)).observe({
          type: 'paint',
          buffered: true,
        });
      }),
  );
  kb.push(bytes / 1024);
  paintMs.push(Number(paint));
  await context.close();
}
