/** A hundred projects with five hundred sessions each: time to the first visible row, and smoothness of scrolling. */

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../support/liminal.js';
import { NAIVE_SIDEBAR } from './naive.js';
import { forget, meter, nextPaint, probe } from './probe.js';
import { signedInContext } from './signed-in.js';
import { fillSidebar } from './store.js';

const PROJECTS = 100;
const SESSIONS = 500;
const STEP = 400;

/** @param {import('@playwright/test').Browser} browser @param {(name: string, value: number) => void} add */
export async function startSidebar(browser, add) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'liminal-bench-')));
  fillSidebar(home, PROJECTS, SESSIONS);
  const server = await startServer(home);

  /** @param {string} name @param {string} path @param {string} row @param {string} scroller */
  const measure = async (name, path, row, scroller) => {
    const context = await signedInContext(browser, server.url, { viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.addInitScript(`window.watch = ${JSON.stringify(row)}; (${probe})()`);
    await page.route(/\/naive-sidebar$/, (route) => route.fulfill({ body: NAIVE_SIDEBAR, contentType: 'text/html' }));
    const gauge = await meter(browser, page);
    const painted = nextPaint(page);
    await page.goto(server.origin + path);
    const at = await painted;
    add(`${name}_visible`, at - (await page.evaluate(() => performance.timeOrigin)));
    add(
      `${name}_paint`,
      await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime),
    );
    // The list is complete when it has reached its full height.
    await page.waitForFunction(
      ([selector, least]) => Number(document.querySelector(String(selector))?.scrollHeight) > Number(least),
      [scroller, PROJECTS * SESSIONS * 15],
      { timeout: 60_000 },
    );
    await page.waitForTimeout(500);
    add(`${name}_longest`, await gauge.longestMs());
    add(`${name}_blocking`, await gauge.blockingMs());
    add(`${name}_heap`, await gauge.heapMb());
    await forget(page);
    const { frame, dropped } = await page.evaluate(scroll, { selector: scroller, step: STEP });
    add(`${name}_frame`, frame);
    add(`${name}_dropped`, dropped);
    add(`${name}_scroll_longest`, await gauge.longestMs());
    await context.close();
  };
  return {
    run: async () => {
      await measure('sidebar', '/', '.session-row', '#projects');
      await measure('naive_sidebar', '/naive-sidebar', 'li', 'main');
    },
    stop: async () => {
      await server.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/**
 * The mean duration of a frame during scrolling, and the percentage of dropped frames. Runs in the page.
 * @param {{ selector: string, step: number }} how
 */
export async function scroll({ selector, step }) {
  const frames = 120;
  const place = document.querySelector(selector);
  if (!place) throw new Error(`nothing to scroll: ${selector}`);
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const begin = Number(await frame());
  let end = begin;
  let dropped = 0;
  for (let at = 0; at < frames; at += 1) {
    place.scrollTop += step;
    const now = Number(await frame());
    dropped += Math.max(0, Math.round((now - end) / (1000 / 60)) - 1);
    end = now;
  }
  return { frame: (end - begin) / frames, dropped: (dropped / (frames + dropped)) * 100 };
}
