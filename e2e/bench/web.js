/**
 * Measures the workspace in Chromium and the plain baseline pages alternately, and prints the results as JSON: lists of
 * numbers by name. `LIMINAL` and `AGENT` name the programs, the first argument the number of runs; the second, `quick`,
 * skips the longest measurements.
 */

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from '@playwright/test';
import { LAUNCH } from '../support/browser.js';
import { startServer } from '../support/liminal.js';
import { NAIVE, NAIVE_TABS, PACKAGES } from './naive.js';
import { forget, meter, nextPaint, probe } from './probe.js';
import { reconnect } from './reconnect.js';
import { scroll, startSidebar } from './sidebar.js';
import { signedInContext } from './signed-in.js';
import { fill } from './store.js';

const RUNS = Number(process.argv[2] ?? 3);
const QUICK = process.argv[3] === 'quick';
const TABS = 30;
const STREAMS = 10;
const CHUNKS = 2500;
const PER_SECOND = 500;
const TAB_ENTRIES = 200;

/** @type {Record<string, number[]>} */
const measured = {};
/** @param {string} name @param {number} value */
const add = (name, value) => {
  measured[name] ??= [];
  measured[name].push(value);
};

const home = realpathSync(mkdtempSync(join(tmpdir(), 'liminal-bench-')));
// The sessions that stream grow from run to run; those for the tabs do not.
const ids = fill(home, [2000, 20_000, 20_000, ...Array(STREAMS + TABS).fill(TAB_ENTRIES)]);
const [two, twenty, another, ...others] = ids;
const [streams, small] = [others.slice(0, STREAMS), others.slice(STREAMS)];
const server = await startServer(home);
// The plain page does not come from the server's address, so the browser would not let it connect.
const args = [...LAUNCH.args, '--disable-features=LocalNetworkAccessChecks'];
const browser = await chromium.launch({ ...LAUNCH, args });
const sidebar = await startSidebar(browser, add);
try {
  for (let run = 0; run < RUNS; run += 1) {
    for (const [name, id, last] of [
      ['2000', two, 'e2000'],
      ['20000', twenty, 'e20000'],
    ]) {
      await open(name, id, last);
      if (!QUICK || id === two) await openNaive(name, id, last);
    }
    await stream('stream', [streams[0]], `prose ${CHUNKS} 20 ${PER_SECOND}`);
    await streamNaive('stream', [streams[0]], `prose ${CHUNKS} 20 ${PER_SECOND}`);
    await switching();
    await sidebar.run();
    await restart();
    if (QUICK) continue;
    await stream('ten', streams, `prose ${CHUNKS / 5} 20 ${PER_SECOND / 5}`);
    await streamNaive('ten', streams, `prose ${CHUNKS / 5} 20 ${PER_SECOND / 5}`);
    await tabs();
    await tabsNaive();
  }
} finally {
  await browser.close();
  await sidebar.stop();
  await server.stop();
  rmSync(home, { recursive: true, force: true });
}
process.stdout.write(JSON.stringify(measured));

/**
 * Opens a new window.
 * @param {string[]} order  its tabs
 * @param {string | null} active
 * @param {string} [watch]  the entry whose paint is measured
 */
async function window_(order = [], active = null, watch) {
  const context = await signedInContext(browser, server.url, { viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript(
    `window.watch = ${JSON.stringify(watch ? `[data-entry-id="${watch}"]` : null)}; (${probe})()`,
  );
  if (order.length > 0) {
    const stored = JSON.stringify({ openTabs: order, activeTab: active, tabOrder: order });
    await page.addInitScript(`if (window === top) localStorage.setItem('liminal:tabs', ${JSON.stringify(stored)})`);
  }
  for (const [path, body] of Object.entries({ naive: NAIVE, 'naive-tabs': NAIVE_TABS })) {
    await page.route(new RegExp(`/${path}\\?`), (route) => route.fulfill({ body, contentType: 'text/html' }));
  }
  for (const [path, file] of Object.entries(PACKAGES)) {
    const place = new URL(`../../node_modules/${file}`, import.meta.url).pathname;
    await page.route(new RegExp(`/${path}$`), (route) =>
      route.fulfill({ path: place, contentType: 'text/javascript' }),
    );
  }
  return { context, page, meter: await meter(browser, page) };
}

/** @param {string[]} sessions */
function query(sessions) {
  return sessions.map((id) => `session=${encodeURIComponent(id)}`).join('&');
}

/** The active session's frame. @param {import('@playwright/test').Page} page */
async function inView(page) {
  const element = await page.locator('.panel.in-view iframe').elementHandle();
  const frame = await element?.contentFrame();
  if (!frame) throw new Error('no session is in view');
  return frame;
}

/**
 * The time at which the watched entry was painted in this frame.
 * @param {import('@playwright/test').Frame | import('@playwright/test').Page} frame
 */
async function paintedAt(frame) {
  await frame.waitForFunction(() => /** @type {any} */ (window).paintedAt, undefined, { timeout: 60_000 });
  return frame.evaluate(() => /** @type {any} */ (window).paintedAt);
}

/** @param {string} name @param {string} id @param {string} last */
async function open(name, id, last) {
  const { context, page, meter } = await window_([], null, last);
  await page.goto(server.origin);
  const row = page
    .locator('.session-row, .session')
    .filter({ hasText: titleOf(id) })
    .first();
  await row.waitFor();
  // The state a moment after the workspace was opened, with the next page preloaded.
  await page.locator('.spare iframe').waitFor({ state: 'attached' });
  await page.waitForTimeout(1000);
  await forget(page);
  await meter.reset();
  const painted = nextPaint(page);
  const clicked = await row.evaluate((element) => {
    const button = /** @type {HTMLElement} */ (element.querySelector('button') ?? element);
    const at = performance.timeOrigin + performance.now();
    button.click();
    return at;
  });
  add(`open_${name}_visible`, (await painted) - clicked);
  add(`open_${name}_processor`, await meter.processorMs());
  add(`open_${name}_longest`, await meter.longestMs());
  add(`open_${name}_blocking`, await meter.blockingMs());
  add(`open_${name}_heap`, await meter.heapMb());
  if (id === twenty) {
    await scrolled('scroll', await inView(page), meter, '#scroller');
  }
  await context.close();
}

/** @param {string} name @param {string} id @param {string} last */
async function openNaive(name, id, last) {
  const { context, page, meter } = await window_([], null, last);
  const painted = nextPaint(page);
  await page.goto(`${server.origin}/naive?${query([id])}`);
  const shown = await painted;
  add(`naive_open_${name}_visible`, shown - (await page.evaluate(() => performance.timeOrigin)));
  add(`naive_open_${name}_processor`, await meter.processorMs());
  add(`naive_open_${name}_longest`, await meter.longestMs());
  add(`naive_open_${name}_blocking`, await meter.blockingMs());
  add(`naive_open_${name}_heap`, await meter.heapMb());
  if (id === twenty) {
    await scrolled('naive_scroll', page.mainFrame(), meter, 'section');
  }
  await context.close();
}

/** Scrolls upwards through a long session. */
/** @param {string} name @param {import('@playwright/test').Frame} frame_ @param {Awaited<ReturnType<typeof meter>>} gauge @param {string} selector */
async function scrolled(name, frame_, gauge, selector) {
  await forget(frame_.page());
  const { frame, dropped } = await frame_.evaluate(scroll, { selector, step: -400 });
  add(`${name}_frame`, frame);
  add(`${name}_dropped`, dropped);
  add(`${name}_longest`, await gauge.longestMs());
  add(`${name}_blocking`, await gauge.blockingMs());
  add(`${name}_heap`, await gauge.heapMb());
}

/** @param {string} id */
function titleOf(id) {
  return new RegExp(`Session ${id.split('-').at(-1)}(?!\\d)`);
}

/** Waits for the end of the turn and measures the processor time of each third. */
/** @param {string} name @param {Awaited<ReturnType<typeof meter>>} gauge @param {number} seconds @param {import('@playwright/test').Frame} frame */
async function watch(name, gauge, seconds, frame) {
  const dropped = await countFrames(frame);
  const marks = [await gauge.processorMs()];
  for (let third = 0; third < 3; third += 1) {
    await new Promise((resolve) => setTimeout(resolve, (seconds * 1000) / 3));
    marks.push(await gauge.processorMs());
  }
  add(`${name}_dropped`, await dropped());
  await new Promise((resolve) => setTimeout(resolve, 500));
  add(`${name}_processor`, (await gauge.processorMs()) - marks[0]);
  add(`${name}_growth`, (marks[3] - marks[2]) / (marks[1] - marks[0]));
  add(`${name}_longest`, await gauge.longestMs());
  add(`${name}_blocking`, await gauge.blockingMs());
  add(`${name}_heap`, await gauge.heapMb());
}

/** @param {string} name @param {string[]} sessions @param {string} prompt */
async function stream(name, sessions, prompt) {
  const { context, page, meter } = await window_(sessions, sessions[0]);
  await page.goto(server.origin);
  for (const [at] of sessions.entries()) {
    await page.locator('.tab').nth(at).click();
    const frame = await inView(page);
    await frame.locator('textarea').fill(prompt);
    await frame.locator('.button.primary:enabled').waitFor();
  }
  for (const [at] of sessions.entries()) {
    await page.locator('.tab').nth(at).click();
    await (await inView(page)).locator('textarea').press('Enter');
  }
  await forget(page);
  await watch(name, meter, CHUNKS / PER_SECOND, await inView(page));
  await idle(page);
  await context.close();
}

/** @param {string} name @param {string[]} sessions @param {string} prompt */
async function streamNaive(name, sessions, prompt) {
  const { context, page, meter } = await window_();
  await page.goto(`${server.origin}/naive?${query(sessions)}`);
  await page.waitForFunction(
    (count) => document.querySelectorAll('section > article').length >= count,
    sessions.length,
  );
  await page.evaluate((text) => /** @type {any} */ (window).send(text), prompt);
  await forget(page);
  await watch(`naive_${name}`, meter, CHUNKS / PER_SECOND, page.mainFrame());
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await context.close();
}

/**
 * The percentage of dropped frames in a visible frame, counted until the result is requested.
 * @param {import('@playwright/test').Frame} frame
 */
async function countFrames(frame) {
  await frame.evaluate(() => {
    const counted = { first: performance.now(), frames: 0 };
    const count = () => {
      counted.frames += 1;
      requestAnimationFrame(count);
    };
    requestAnimationFrame(count);
    Object.assign(window, { counted });
  });
  return () =>
    frame.evaluate(() => {
      const { first, frames } = /** @type {any} */ (window).counted;
      const due = (performance.now() - first) / (1000 / 60);
      return Math.max(0, (1 - frames / due) * 100);
    });
}

/** Waits until no turn runs. @param {import('@playwright/test').Page} page */
async function idle(page) {
  await page.waitForFunction(() => !document.querySelector('[data-mark="running"]'), undefined, { timeout: 60_000 });
}

/** The baseline reconnects by loading the page again. */
async function restart() {
  const { context, page } = await window_([small[0]], small[0], `e${TAB_ENTRIES}`);
  await page.goto(server.origin);
  await paintedAt(await inView(page));
  add('reconnect', await reconnect(page, server));
  const begin = Date.now();
  await page.reload();
  add('naive_reconnect', (await paintedAt(await inView(page))) - begin);
  await context.close();
}

async function tabs() {
  const { context, page, meter } = await window_(small, small[0], `e${TAB_ENTRIES}`);
  const painted = nextPaint(page);
  await page.goto(server.origin);
  const shown = await painted;
  add('tabs_visible', shown - (await page.evaluate(() => performance.timeOrigin)));
  add('tabs_processor', await meter.processorMs());
  add('tabs_longest', await meter.longestMs());
  add('tabs_blocking', await meter.blockingMs());
  add('tabs_heap', await meter.heapMb());
  // Shows each tab once.
  for (let at = 0; at < TABS; at += 1) {
    await page
      .locator('.tab')
      .nth(at)
      .evaluate((element) => /** @type {HTMLElement} */ (element).click());
    await paintedAt(await inView(page));
  }
  add('tabs_seen_heap', await meter.heapMb());
  await context.close();
}

/** Switches between two long sessions, as often as there are small ones. */
async function switching() {
  const { context, page, meter } = await window_([twenty, another], twenty, 'e20000');
  await page.goto(server.origin);
  for (const at of [1, 0]) {
    await page.locator('.tab').nth(at).click();
    await paintedAt(await inView(page));
  }
  await page.waitForTimeout(500);
  await forget(page);
  const times = await page.evaluate(async (count) => {
    const found = [];
    const both = [...document.querySelectorAll('.tab')];
    for (let at = 0; at < count; at += 1) {
      found.push(await frame(() => /** @type {HTMLElement} */ (both[(at + 1) % 2]).click()));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return found.toSorted((a, b) => a - b);

    /** The time from the start of a frame to its paint. @param {() => void} change */
    function frame(change) {
      return new Promise((resolve) => {
        requestAnimationFrame(() => {
          const start = performance.now();
          change();
          setTimeout(() => resolve(performance.now() - start));
        });
      });
    }
  }, TABS);
  add('switch', times[Math.floor(times.length / 2)]);
  add('switch_longest', await meter.longestMs());
  add('switch_blocking', await meter.blockingMs());
  add('switch_heap', await meter.heapMb());
  await context.close();
}

async function tabsNaive() {
  const { context, page, meter } = await window_([], null, `e${TAB_ENTRIES}`);
  await page.goto(`${server.origin}/naive-tabs?${query(small)}`);
  await page.waitForFunction((count) => document.querySelectorAll('iframe').length === count, TABS);
  const [first, ...others] = page.frames().slice(1);
  const shown = await paintedAt(first);
  add('naive_tabs_visible', shown - (await page.evaluate(() => performance.timeOrigin)));
  for (const frame of others) await frame.waitForFunction(() => document.querySelector('article'));
  add('naive_tabs_processor', await meter.processorMs());
  add('naive_tabs_longest', await meter.longestMs());
  add('naive_tabs_blocking', await meter.blockingMs());
  const heap = await meter.heapMb();
  add('naive_tabs_heap', heap);
  add('naive_tabs_seen_heap', heap);
  await forget(page);
  const times = await page.evaluate(async () => {
    const found = [];
    const frames = [...document.querySelectorAll('iframe')];
    for (const frame of frames) {
      const took = await new Promise((resolve) => {
        requestAnimationFrame(() => {
          const start = performance.now();
          for (const other of frames) other.style.display = other === frame ? '' : 'none';
          setTimeout(() => resolve(performance.now() - start));
        });
      });
      found.push(took);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return found.toSorted((a, b) => a - b);
  });
  add('naive_switch', times[Math.floor(times.length / 2)]);
  add('naive_switch_longest', await meter.longestMs());
  add('naive_switch_blocking', await meter.blockingMs());
  await context.close();
}
