/**
 * The cost of a page: when an entry was first painted, long tasks, and the processor time and script memory of all its
 * processes.
 */

/** Runs in every frame before anything else. */
export function probe() {
  const seen = /** @type {any} */ (window);
  seen.longest = 0;
  seen.blocking = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      seen.longest = Math.max(seen.longest, duration);
      seen.blocking += duration - 50;
    }
  }).observe({ type: 'longtask' });
  /**
   * The time at which the selected element is painted, in milliseconds of the wall clock. An element inserted while a
   * frame is being made is painted with that frame, otherwise with the next; a timer set then runs after the paint.
   * @param {string} selector
   */
  const painted = (selector) =>
    new Promise((resolve) => {
      let inFrame = false;
      const frame = () => {
        inFrame = true;
        setTimeout(() => {
          inFrame = false;
        });
        frames = requestAnimationFrame(frame);
      };
      let frames = requestAnimationFrame(frame);
      const after = () => setTimeout(() => resolve(performance.timeOrigin + performance.now()));
      const observer = new MutationObserver(() => {
        if (!document.querySelector(selector)) return;
        observer.disconnect();
        cancelAnimationFrame(frames);
        if (inFrame) after();
        else requestAnimationFrame(after);
      });
      observer.observe(document, { childList: true, subtree: true, attributes: true });
    });
  if (seen.watch) {
    painted(seen.watch).then((at) => {
      seen.paintedAt = at;
      console.debug('painted', at);
    });
  }
}

/**
 * The time of the watched entry's next paint, in any frame. The page reports it: polling would run a script in the page
 * while it is busy with the measured work.
 * @param {import('@playwright/test').Page} page
 */
export async function nextPaint(page) {
  const report = await page.waitForEvent('console', {
    predicate: (message) => message.text().startsWith('painted '),
    timeout: 60_000,
  });
  return Number(report.text().split(' ')[1]);
}

/** Resets the long-task measurements of all frames. @param {import('@playwright/test').Page} page */
export async function forget(page) {
  for (const frame of page.frames()) {
    await frame.evaluate(() => Object.assign(window, { longest: 0, blocking: 0 })).catch(() => {});
  }
}

/** @param {import('@playwright/test').Browser} browser @param {import('@playwright/test').Page} page */
export async function meter(browser, page) {
  const whole = await browser.newBrowserCDPSession();
  /** Sums over all pages, of which only one is open at a time. */
  const computed = async () => {
    const { processInfo } = await whole.send('SystemInfo.getProcessInfo');
    return new Map(
      processInfo.filter(({ type }) => type === 'renderer').map(({ id, cpuTime }) => [id, cpuTime * 1000]),
    );
  };
  /** @param {'longest' | 'blocking'} what */
  const inFrames = (what) =>
    Promise.all(
      page
        .frames()
        .map((frame) => frame.evaluate((name) => /** @type {any} */ (window)[name] ?? 0, what).catch(() => 0)),
    );
  let before = await computed();
  return {
    /** Measures from now on. */
    reset: async () => {
      before = await computed();
    },
    processorMs: async () => {
      const now = await computed();
      return [...now].reduce((sum, [id, ms]) => sum + ms - (before.get(id) ?? 0), 0);
    },
    /** The frames of sessions share one process, whose memory each of them would report. */
    heapMb: async () => {
      const own = (await heapOf(page)) ?? 0;
      const framed = await Promise.all(page.frames().slice(1).map(heapOf));
      return own + Math.max(0, ...framed.map((heap) => heap ?? 0));
    },
    longestMs: async () => Math.max(0, ...(await inFrames('longest'))),
    /** The time of long tasks beyond 50 ms each. */
    blockingMs: async () => (await inFrames('blocking')).reduce((sum, one) => sum + one, 0),
  };
}

/**
 * Null for a frame in its page's process.
 * @param {import('@playwright/test').Page | import('@playwright/test').Frame} target
 */
async function heapOf(target) {
  const context = 'context' in target ? target.context() : target.page().context();
  const session = await context.newCDPSession(target).catch(() => null);
  if (!session) return null;
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize / 1024 / 1024;
}
