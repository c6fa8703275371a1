import { expect, test } from '../support/liminal.js';
import { addProvenSocket } from '../support/page-socket.js';
import {
  addProject,
  enter,
  newSession,
  send,
  sessionPage,
  sessionRow,
  tab,
  tabsOf,
  tabTitles,
  violations,
} from '../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** Opens a tab for each name, in that order; the last one is in view. */
/** @param {Page} page @param {import('../support/liminal.js').Liminal} liminal @param {...string} names */
async function withTabs(page, liminal, ...names) {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  for (const name of names) {
    await newSession(page, 'app');
    await send(page, `say ${name}`, name);
    await expect(tab(page, `say ${name}`)).toBeVisible();
  }
}

/** @param {Page} page @param {string} title */
const isActive = (page, title) => expect(tab(page, title).getByRole('tab')).toHaveAttribute('aria-selected', 'true');

test('TC-4.1a: opening a session opens a tab with its title and shows it', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A');
  await tab(page, 'say A').locator('.tab-close').click();
  await expect(tabsOf(page)).toHaveCount(0);
  await sessionRow(page, 'say A').getByRole('button').first().click();
  await expect(tabTitles(page)).toHaveText(['say A']);
  await expect(sessionPage(page).locator('[data-entry-id]').filter({ hasText: 'say A' }).first()).toBeVisible();
  expect(await violations(page)).toEqual([]);
});

test('TC-4.1b: a second session opens a second tab, which is in view', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B');
  await expect(tabTitles(page)).toHaveText(['say A', 'say B']);
  await isActive(page, 'say B');
});

test('the next session opens in a preloaded page', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'one');
  const spare = page.locator('.spare iframe');
  await expect(spare).toHaveCount(1);
  await spare.evaluate((frame) => frame.setAttribute('data-ahead', ''));
  await newSession(page, 'app');
  await expect(page.locator('.panel.in-view iframe[data-ahead]')).toHaveCount(1);
  await send(page, 'say two', 'two');
  await expect(spare).toHaveCount(1);
});

test('TC-4.2a: a tab keeps its scroll position while it is hidden', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A');
  const lines = Array.from({ length: 80 }, (_, at) => `say line ${at}.\ntool t${at} read Read ${at}`);
  await send(page, lines.join('\n'), 'Read 79');
  await newSession(page, 'app');
  await send(page, 'say B', 'B');
  await tab(page, 'say A').click();
  const scroller = sessionPage(page).locator('#scroller');
  await scroller.hover();
  await page.mouse.wheel(0, -900);
  const top = () => scroller.evaluate((one) => Math.round(one.scrollTop));
  const end = () => scroller.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight);
  await expect.poll(end).toBeGreaterThan(300);
  // The scroll position is stable.
  let before = -1;
  await expect
    .poll(async () => {
      const same = before === (await top());
      before = await top();
      return same;
    })
    .toBe(true);
  await tab(page, 'say B').click();
  await expect(sessionPage(page).locator('.row-assistant')).toHaveText(/B/);
  await tab(page, 'say A').click();
  await expect.poll(top).toBe(before);
});

/**
 * The row at the upper edge, and its distance from it.
 * @param {import('@playwright/test').Page} page
 * @returns {Promise<[string, number]>}
 */
function reading(page) {
  return sessionPage(page)
    .locator('#scroller')
    .evaluate((one) => {
      const edge = one.getBoundingClientRect().top;
      const first = [...one.querySelectorAll('[data-entry-id]')].find(
        (entry) => entry.getBoundingClientRect().bottom > edge,
      );
      const top = first?.getBoundingClientRect().top ?? 0;
      return [first?.getAttribute('data-entry-id') ?? '', Math.round(top - edge)];
    });
}

/** The scroll position, once it is stored. @param {import('@playwright/test').Page} page */
async function keptPlace(page) {
  const kept = () =>
    page.evaluate(() => {
      const [place] = Object.values(JSON.parse(sessionStorage.getItem('liminal:places') ?? '{}'));
      return place ? [place.entryId, Math.round(place.offset)] : null;
    });
  await expect(async () => expect(await kept()).toEqual(await reading(page))).toPass();
  return reading(page);
}

test('a reload keeps the scroll position of a conversation', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A');
  const lines = Array.from({ length: 60 }, (_, at) => `say line ${at}.\ntool t${at} read Read ${at}`);
  await send(page, lines.join('\n'), 'Read 59');
  await sessionPage(page).locator('#scroller').hover();
  await page.mouse.wheel(0, -1500);
  const read = await keptPlace(page);
  await page.reload();
  await expect(tabTitles(page)).toHaveText(['say A']);
  await expect.poll(() => reading(page)).toEqual(read);
  await page.evaluate(() => sessionStorage.setItem('liminal:places', '{"nonsense": [1, {'));
  await page.reload();
  await expect(sessionPage(page).getByText('Read 59')).toBeVisible();
});

test('a reload keeps a scroll position far above the first loaded entries', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A');
  const lines = Array.from({ length: 400 }, (_, at) => `say line ${at}.\ntool t${at} read Read ${at}`);
  await send(page, lines.join('\n'), 'Read 399');
  await sessionPage(page).locator('#scroller').hover();
  await expect
    .poll(async () => {
      await page.mouse.wheel(0, -8000);
      return Number((await reading(page))[0].slice(1));
    })
    .toBeLessThan(300);
  const read = await keptPlace(page);
  await page.reload();
  await expect.poll(() => reading(page)).toEqual(read);
  // A conversation scrolled to its end is at its end after the next reload.
  await sessionPage(page)
    .getByRole('button', { name: /latest/i })
    .click();
  await expect(sessionPage(page).getByText('Read 399')).toBeVisible();
  await expect.poll(() => page.evaluate(() => sessionStorage.getItem('liminal:places'))).toBe('{}');
  await page.reload();
  await expect(sessionPage(page).getByText('Read 399')).toBeVisible();
});

test('TC-4.2b: a switched tab is painted within six frames and is not reloaded', {
  tag: '@alone',
}, async ({ page, liminal }) => {
  let histories = 0;
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      if (String(payload).includes('"session:history"')) histories += 1;
    }),
  );
  await withTabs(page, liminal, 'A', 'B');
  await sessionPage(page).locator('textarea').fill('only here');
  // A reload of the page would remove this marker.
  const frames = page.locator('.panel iframe');
  const pages = [frames.nth(0), frames.nth(1)].map((frame) => frame.contentFrame());
  for (const inner of pages) await inner.locator('html').evaluate((html) => html.setAttribute('data-loaded', 'once'));
  for (const inner of pages) {
    await inner.locator('.answer').evaluate((answer) => {
      const sights = /** @type {number[]} */ ([]);
      Object.assign(window, { sights });
      new IntersectionObserver((entries) => {
        for (const { time, isIntersecting } of entries) if (isIntersecting) sights.push(performance.timeOrigin + time);
      }).observe(answer);
    });
  }
  await page.evaluate(() => {
    const frames = /** @type {number[]} */ ([]);
    Object.assign(window, { frames });
    const count = () => {
      frames.push(performance.timeOrigin + performance.now());
      requestAnimationFrame(count);
    };
    count();
  });
  const before = histories;
  for (const [name, inner] of [0, 1, 0, 1, 0, 1].map((at) => /** @type {const} */ (['AB'[at], pages[at]]))) {
    const clicked = await tab(page, `say ${name}`)
      .getByRole('tab')
      .evaluate((one) => {
        const now = performance.timeOrigin + performance.now();
        /** @type {HTMLElement} */ (one).click();
        return now;
      });
    await expect(inner.locator('.answer')).toBeInViewport();
    await expect(sessionPage(page).locator('.answer')).toHaveText(new RegExp(`^${name}`));
    const sight = () =>
      inner
        .locator('html')
        .evaluate(
          (_, since) => /** @type {any} */ (window).sights.find((/** @type {number} */ at) => at > since),
          clicked,
        );
    await expect.poll(sight).toBeTruthy();
    const seen = await sight();
    // A blocked page paints no frame at all. Generous, because the machine may be busy.
    expect(seen - clicked).toBeLessThan(500);
    const passed = await page.evaluate(
      ([from, to]) =>
        /** @type {any} */ (window).frames.filter((/** @type {number} */ at) => at > from && at < to).length,
      [clicked, seen],
    );
    // A tenth of a second at sixty frames per second.
    expect(passed).toBeLessThanOrEqual(6);
  }
  expect(histories).toBe(before);
  for (const inner of pages) await expect(inner.locator('html')).toHaveAttribute('data-loaded', 'once');
  await expect(sessionPage(page).locator('textarea')).toHaveValue('only here');
});

test('TC-4.3a, TC-4.3b, TC-2.3b: a session with a tab gets no second one', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B', 'C');
  await sessionRow(page, 'say A').getByRole('button').first().click();
  await isActive(page, 'say A');
  await expect(tabTitles(page)).toHaveText(['say A', 'say B', 'say C']);
  await expect(page.locator('.panel')).toHaveCount(3);
});

test('TC-4.4a: closing a tab keeps its session, also with the middle button', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B');
  await tab(page, 'say B').locator('.tab-close').click();
  await expect(tabTitles(page)).toHaveText(['say A']);
  await tab(page, 'say A').getByRole('tab').click({ button: 'middle' });
  await expect(tabsOf(page)).toHaveCount(0);
  await sessionRow(page, 'say B').getByRole('button').first().click();
  await expect(tabTitles(page)).toHaveText(['say B']);
});

test('TC-4.4b: closing the active tab shows the next one, or the one before', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B', 'C');
  await tab(page, 'say B').getByRole('tab').click();
  await tab(page, 'say B').locator('.tab-close').click();
  await isActive(page, 'say C');
  await page.keyboard.press('Alt+w');
  await isActive(page, 'say A');
});

test('TC-4.4c: after the last tab the main area says that no session is open', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A');
  await tab(page, 'say A').getByRole('tab').focus();
  await page.keyboard.press('Delete');
  await expect(page.getByRole('heading', { name: 'No session open' })).toBeVisible();
  await expect(page.getByRole('tablist', { includeHidden: true })).toBeHidden();
  await expect(page.locator('.panel')).toHaveCount(0);
});

test('TC-4.5a, TC-4.5b: a tab shows title and agent, "New Session" until titled', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await newSession(page, 'app', 'Codex');
  await expect(tabTitles(page)).toHaveText(['New Session']);
  await expect(tab(page, 'New Session').locator('.badge')).toHaveText('CX');
  await send(page, 'say Fix auth bug', 'Fix auth bug');
  await expect(tabTitles(page)).toHaveText(['say Fix auth bug']);
  await newSession(page, 'app', 'Claude Code');
  await expect(tabTitles(page)).toHaveText(['say Fix auth bug', 'New Session']);
  await expect(tab(page, 'New Session').locator('.badge')).toHaveText('CC');
  await send(page, 'say Read it', 'Read it');
  await expect(tabTitles(page)).toHaveText(['say Fix auth bug', 'say Read it']);
  for (const [title, badge, agent] of [
    ['say Fix auth bug', 'CX', 'Codex'],
    ['say Read it', 'CC', 'Claude Code'],
  ]) {
    await expect(tab(page, title).locator('.badge')).toHaveText(badge);
    await expect(page.getByRole('tab', { name: `${title} ${agent}`, exact: true })).toBeVisible();
  }
});

test('TC-4.6a, TC-4.6b: tabs are reordered by dragging, also over a restart', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B', 'C');
  await tab(page, 'say C').dragTo(tab(page, 'say B'), { targetPosition: { x: 5, y: 18 } });
  await expect(tabTitles(page)).toHaveText(['say A', 'say C', 'say B']);
  await tab(page, 'say A').dragTo(tab(page, 'say B'), { targetPosition: { x: 190, y: 18 } });
  await expect(tabTitles(page)).toHaveText(['say C', 'say B', 'say A']);
  await liminal.stop();
  await liminal.start();
  await page.goto(liminal.origin);
  await expect(tabTitles(page)).toHaveText(['say C', 'say B', 'say A']);
});

test('tabs are moved and switched with the keyboard', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B', 'C');
  await tab(page, 'say C').getByRole('tab').focus();
  await page.keyboard.press('Control+Shift+ArrowLeft');
  await expect(tabTitles(page)).toHaveText(['say A', 'say C', 'say B']);
  await expect(tab(page, 'say C').getByRole('tab')).toBeFocused();
  await page.keyboard.press('ArrowRight');
  await isActive(page, 'say B');
  await expect(tab(page, 'say B').getByRole('tab')).toBeFocused();
  await page.keyboard.press('ArrowRight');
  await isActive(page, 'say A');
});

for (const [id, interrupt] of /** @type {const} */ ([
  ['TC-4.7a: after a restart of the server', true],
  ['TC-5.6a: after a refresh', false],
])) {
  test(`${id} the tabs and the active one are restored`, async ({ page, liminal }) => {
    await withTabs(page, liminal, 'A', 'B', 'C');
    await tab(page, 'say B').getByRole('tab').click();
    expect(await page.evaluate(() => Object.keys(JSON.parse(localStorage['liminal:tabs'])).toSorted().join())).toBe(
      'activeTab,openTabs,tabOrder',
    );
    if (interrupt) {
      await liminal.stop();
      await liminal.start();
    }
    await page.reload();
    await expect(tabTitles(page)).toHaveText(['say A', 'say B', 'say C']);
    await isActive(page, 'say B');
    await expect(sessionPage(page).locator('[data-entry-id]').filter({ hasText: 'say B' }).first()).toBeVisible();
    // The other frames are created when their tab is first shown.
    await expect(page.locator('.panel iframe')).toHaveCount(1);
    await tab(page, 'say C').getByRole('tab').click();
    await expect(sessionPage(page).locator('[data-entry-id]').filter({ hasText: 'say C' }).first()).toBeVisible();
    await expect(page.locator('.panel iframe')).toHaveCount(2);
  });
}

test('invalid data and deleted sessions in the stored tabs are ignored', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A');
  const id = await tab(page, 'say A').getAttribute('data-session-id');
  for (const nonsense of [
    '{',
    'null',
    '[1]',
    '"x"',
    JSON.stringify({ openTabs: 'x', activeTab: 3, tabOrder: null }),
    JSON.stringify({ openTabs: ['gone:1'], activeTab: 'gone:1', tabOrder: ['gone:1'] }),
  ]) {
    await page.evaluate((text) => localStorage.setItem('liminal:tabs', text), nonsense);
    await page.reload();
    await expect(sessionRow(page, 'say A')).toBeVisible();
    await expect(page.getByRole('heading', { name: 'No session open' })).toBeVisible();
  }
  const mixed = JSON.stringify({ openTabs: ['gone:1', id, 7], activeTab: 'gone:1', tabOrder: [] });
  await page.evaluate((text) => localStorage.setItem('liminal:tabs', text), mixed);
  await page.reload();
  await expect(tabTitles(page)).toHaveText(['say A']);
});

test('drafts survive a tab switch, a reload and a closed tab', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B');
  await sessionPage(page).locator('textarea').fill('half a thought');
  await tab(page, 'say A').getByRole('tab').click();
  await expect(sessionPage(page).locator('textarea')).toHaveValue('');
  await tab(page, 'say B').getByRole('tab').click();
  await expect(sessionPage(page).locator('textarea')).toHaveValue('half a thought');
  await page.reload();
  await expect(sessionPage(page).locator('textarea')).toHaveValue('half a thought');
  await page.keyboard.press('Alt+w');
  await expect(tabsOf(page)).toHaveCount(1);
  await sessionRow(page, 'say B').getByRole('button').first().click();
  await expect(sessionPage(page).locator('textarea')).toHaveValue('half a thought');
});

test('hidden pages cannot be reached by keyboard or screen readers', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B');
  const hidden = page.locator('.panel:not(.in-view)');
  await expect(hidden).toHaveAttribute('inert', '');
  expect(await hidden.locator('iframe').evaluate((frame) => getComputedStyle(frame).contentVisibility)).toBe('hidden');
});

test('with forty tabs the active one is visible, and a list has them all', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await newSession(page, 'app');
  const project = await page.locator('.project').getAttribute('data-project-id');
  await page.evaluate(addProvenSocket);
  await page.evaluate(async (projectId) => {
    const socket = await /** @type {any} */ (window).provenSocket();
    for (let number = 0; number < 39; number += 1) {
      const created = new Promise((resolve) => {
        socket.onmessage = (/** @type {MessageEvent} */ { data }) =>
          JSON.parse(data).requestId === `c${number}` && resolve(undefined);
      });
      socket.send(
        JSON.stringify({ type: 'session:create', projectId, cliType: 'claude-code', requestId: `c${number}` }),
      );
      await created;
    }
    socket.close();
  }, project);
  await expect.poll(() => page.locator('.session-row').count()).toBeGreaterThan(20);
  const ids = await page.evaluate(async (projectId) => {
    const socket = await /** @type {any} */ (window).provenSocket();
    /** @type {Promise<string[]>} */
    const list = new Promise((resolve) => {
      socket.onmessage = (/** @type {MessageEvent} */ { data }) => {
        const message = JSON.parse(data);
        if (message.type === 'session:list') resolve(message.sessions.map((/** @type {any} */ { id }) => id));
      };
    });
    socket.send(JSON.stringify({ type: 'session:list', projectId }));
    return list;
  }, project);
  expect(ids.length).toBe(40);
  await page.evaluate((all) => {
    localStorage.setItem('liminal:tabs', JSON.stringify({ openTabs: all, activeTab: all.at(-1), tabOrder: all }));
  }, ids);
  await page.reload();
  await expect(tabsOf(page)).toHaveCount(40);
  await expect(tabsOf(page).last()).toBeInViewport();
  await expect(tabsOf(page).first()).not.toBeInViewport();
  const box = await tabsOf(page).last().boundingBox();
  expect(box?.width).toBeGreaterThan(80);
  await page.getByRole('button', { name: 'List of open tabs' }).click();
  const items = page.getByRole('dialog', { name: 'Find an open tab' }).getByRole('option');
  await expect(items).toHaveCount(40);
  // The list opens at the active tab.
  await expect(items.last()).toHaveAttribute('aria-current', 'true');
  await expect(items.last()).toHaveAttribute('aria-selected', 'true');
  await expect(items.last()).toBeInViewport();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await expect(page.getByRole('button', { name: 'List of open tabs' })).toBeFocused();
  await page.keyboard.press('Enter');
  await items.first().click();
  await expect(tabsOf(page).first()).toBeInViewport();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(1440);
  expect(await violations(page)).toEqual([]);
});

test('the tab list has a filter and shows titles beside long project names', async ({ page, liminal }) => {
  await enter(page, liminal);
  const name = 'a-folder-with-a-really-long-name-that-goes-on-and-on-and-on';
  await addProject(page, liminal.folder(name));
  for (const title of ['first', 'second', 'third']) {
    await newSession(page, name);
    await send(page, `say the ${title} of them`, title);
  }
  await page.getByRole('button', { name: 'List of open tabs' }).click();
  const label = page.getByRole('option').first().locator('.choice-label');
  expect(await label.evaluate((one) => one.scrollWidth <= one.clientWidth)).toBe(true);
  await page.keyboard.type('second');
  await expect(page.getByRole('option')).toHaveText([/say the second/]);
  await page.keyboard.press('Enter');
  await isActive(page, 'say the second');
  await expect(sessionPage(page).locator('textarea')).toBeFocused();
});

test('the active tab stays visible when the window is resized', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B', 'C', 'D');
  await expect(tabsOf(page).last()).toBeInViewport({ ratio: 1 });
  await page.setViewportSize({ width: 390, height: 800 });
  await expect(tabsOf(page).last()).toBeInViewport({ ratio: 0.99 });
  await expect(tabsOf(page).first()).not.toBeInViewport();
});

test('a tab has a menu, by right click and by keyboard', async ({ page, liminal }) => {
  await withTabs(page, liminal, 'A', 'B', 'C', 'D');
  const choose = (/** @type {string} */ name) => page.getByRole('menuitem', { name }).first().click();
  await tab(page, 'say B').click({ button: 'right' });
  await expect(page.getByRole('menu', { name: 'Actions for say B' })).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await choose('Close to the right');
  await expect(tabTitles(page)).toHaveText(['say A', 'say B']);
  await isActive(page, 'say B');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(tabTitles(page)).toHaveText(['say A', 'say B', 'say C', 'say D']);
  await isActive(page, 'say D');

  await tab(page, 'say C').getByRole('tab').focus();
  await page.keyboard.press('Shift+F10');
  await expect(page.getByRole('menuitem', { name: 'Close Del' })).toBeFocused();
  await choose('Close others');
  await expect(tabTitles(page)).toHaveText(['say C']);
  await isActive(page, 'say C');
  await tab(page, 'say C').click({ button: 'right' });
  await expect(page.getByRole('menuitem', { name: 'Close others' })).toHaveAttribute('aria-disabled', 'true');
  await choose('Rename');
  await expect(page.getByRole('textbox', { name: 'New title of say C' })).toBeFocused();
  await page.keyboard.press('Escape');
  await tab(page, 'say C').click({ button: 'right' });
  await choose('Archive');
  await expect(tabsOf(page)).toHaveCount(0);
  await expect(sessionRow(page, 'say C')).toHaveCount(0);
});
