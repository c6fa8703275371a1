import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import { addProject, enter, newSession, send, sessionPage, sessionRow, tab } from '../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** Records every message between the window and the server. @param {Page} page */
function recordMessages(page) {
  /** @type {{ sent: any[], received: any[] }} */
  const messages = { sent: [], received: [] };
  page.on('websocket', (socket) => {
    socket.on('framesent', ({ payload }) => messages.sent.push(JSON.parse(String(payload))));
    socket.on('framereceived', ({ payload }) => messages.received.push(...[JSON.parse(String(payload))].flat()));
  });
  return messages;
}

/**
 * Two sessions: one whose agent waits until `hide` has moved its tab out of view, and one in view.
 * @param {Page} page
 * @param {import('../support/liminal.js').Liminal} liminal
 * @param {(file: string) => string} script  for the scripted agent, given the file it waits for
 */
async function behindAnother(page, liminal, script) {
  const messages = recordMessages(page);
  await enter(page, liminal);
  const folder = liminal.folder('app');
  await addProject(page, folder);
  await newSession(page, 'app');
  await send(page, 'say A', 'A');
  const file = join(folder, 'go-on');
  await sessionPage(page).locator('textarea').fill(script(file));
  await sessionPage(page).locator('textarea').press('Enter');
  await expect(sessionPage(page).getByText('and now.', { exact: true })).toBeVisible();
  return {
    hide: async () => {
      await newSession(page, 'app');
      await send(page, 'say B', 'B');
      await expect.poll(() => messages.sent.filter(({ type }) => type === 'session:leave').length).toBe(1);
      const leave = messages.sent.find(({ type }) => type === 'session:leave');
      await expect.poll(() => messages.received.some(({ requestId }) => requestId === leave.requestId)).toBe(true);
      messages.received.length = 0;
      writeFileSync(file, '');
      await expect(sessionRow(page, 'say A').locator('.state-mark')).toHaveAttribute('data-mark', 'finished');
      return messages.received.filter(
        ({ sessionId, type }) => sessionId === leave.sessionId && type !== 'session:state',
      );
    },
  };
}

test('a hidden tab receives no events and resumes where it was', async ({ page, liminal }) => {
  const { hide } = await behindAnother(page, liminal, (file) =>
    ['say and now.', `until ${file}`, ...Array.from({ length: 30 }, (_, at) => `say  part ${at}`)].join('\n'),
  );
  expect(await hide()).toEqual([]);
  await tab(page, 'say A').click();
  const text = Array.from({ length: 30 }, (_, at) => `part ${at}`).join(' ');
  await expect(sessionPage(page).getByText(`and now. ${text}`, { exact: true })).toBeVisible();
  await send(page, 'say it goes on', 'it goes on');
});

test('a hidden tab that missed too much reloads, keeping its scroll position', {
  tag: '@alone',
}, async ({ page, liminal }) => {
  const lines = Array.from({ length: 120 }, (_, at) => `say line ${at}.\ntool t${at} read Read ${at}`);
  const { hide } = await behindAnother(page, liminal, (file) =>
    [...lines, 'say and now.', `until ${file}`, 'flood 3000 100', 'tool last read The last one'].join('\n'),
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
