import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import { addProject, enter, newSession, send, sessionPage, sessionRow, tab } from '../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** Everything the window and the server say to each other, as it comes. @param {Page} page */
function listen(page) {
  /** @type {{ sent: any[], received: any[] }} */
  const heard = { sent: [], received: [] };
  page.on('websocket', (socket) => {
    socket.on('framesent', ({ payload }) => heard.sent.push(JSON.parse(String(payload))));
    socket.on('framereceived', ({ payload }) => heard.received.push(...[JSON.parse(String(payload))].flat()));
  });
  return heard;
}

/**
 * A session that is told to go on only when its tab has been out of view long enough, and one in view.
 * @param {Page} page
 * @param {import('../support/liminal.js').Liminal} liminal
 * @param {(told: string) => string} script
 */
async function behindAnother(page, liminal, script) {
  const heard = listen(page);
  await enter(page, liminal);
  const folder = liminal.folder('app');
  await addProject(page, folder);
  await newSession(page, 'app');
  await send(page, 'say A', 'A');
  const told = join(folder, 'go-on');
  await sessionPage(page).locator('textarea').fill(script(told));
  await sessionPage(page).locator('textarea').press('Enter');
  await expect(sessionPage(page).getByText('and now.', { exact: true })).toBeVisible();
  return {
    hide: async () => {
      await newSession(page, 'app');
      await send(page, 'say B', 'B');
      await expect.poll(() => heard.sent.filter(({ type }) => type === 'session:leave').length).toBe(1);
      const leave = heard.sent.find(({ type }) => type === 'session:leave');
      await expect.poll(() => heard.received.some(({ requestId }) => requestId === leave.requestId)).toBe(true);
      heard.received.length = 0;
      writeFileSync(told, '');
      await expect(sessionRow(page, 'say A').locator('.state-mark')).toHaveAttribute('data-mark', 'finished');
      return heard.received.filter(({ sessionId, type }) => sessionId === leave.sessionId && type !== 'session:state');
    },
  };
}

test('nothing is sent for a tab nobody looks at, and it goes on where it was', async ({ page, liminal }) => {
  const { hide } = await behindAnother(page, liminal, (told) =>
    ['say and now.', `until ${told}`, ...Array.from({ length: 30 }, (_, at) => `say  part ${at}`)].join('\n'),
  );
  expect(await hide()).toEqual([]);
  await tab(page, 'say A').click();
  const text = Array.from({ length: 30 }, (_, at) => `part ${at}`).join(' ');
  await expect(sessionPage(page).getByText(`and now. ${text}`, { exact: true })).toBeVisible();
  await send(page, 'say it goes on', 'it goes on');
});

test('a tab that missed more than is remembered shows all of it, and who had scrolled up stays there', {
  tag: '@alone',
}, async ({ page, liminal }) => {
  const lines = Array.from({ length: 120 }, (_, at) => `say line ${at}.\ntool t${at} read Read ${at}`);
  const { hide } = await behindAnother(page, liminal, (told) =>
    [...lines, 'say and now.', `until ${told}`, 'flood 3000 100', 'tool last read The last one'].join('\n'),
  );
  const scroller = sessionPage(page).locator('#scroller');
  await scroller.hover();
  await page.mouse.wheel(0, -1500);
  const row = () =>
    scroller.evaluate((one) => {
      const { top } = one.getBoundingClientRect();
      const rows = [...one.querySelectorAll('.row')];
      const first = rows.find((element) => element.getBoundingClientRect().bottom > top + 1);
      return `${first?.textContent?.slice(0, 19)} ${Math.round((first?.getBoundingClientRect().top ?? 0) - top)}`;
    });
  const end = () => scroller.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight);
  await expect.poll(end).toBeGreaterThan(300);
  const before = await row();
  expect(await hide()).toEqual([]);
  await tab(page, 'say A').click();
  await expect(sessionPage(page).getByRole('button', { name: '1 new entry, to the latest' })).toBeVisible();
  expect(await row()).toBe(before);
  await sessionPage(page).getByRole('button', { name: 'to the latest' }).click();
  await expect(sessionPage(page).getByText('The last one')).toBeVisible();
});
