import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import {
  addProject,
  begin,
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

/** Two sessions: `busy`, and `quiet`, which is in view. Agents need approval before they act. */
/** @param {Page} page @param {import('../support/liminal.js').Liminal} liminal */
async function withTwo(page, liminal) {
  await liminal.stop();
  liminal.env = { LIMINAL_PERMISSIONS: 'ask' };
  await liminal.start();
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await newSession(page, 'app');
  await send(page, 'say busy', 'busy');
  await newSession(page, 'app');
  await send(page, 'say quiet', 'quiet');
}

/** Sends a message in `busy` that completes once `quiet` is in view. */
/** @param {Page} page @param {import('../support/liminal.js').Liminal} liminal @param {string} text */
async function inTheBackground(page, liminal, text) {
  const left = join(mkdtempSync(join(liminal.home, 'left-')), 'now');
  await tab(page, 'say busy').getByRole('tab').click();
  await begin(page, `until ${left}\n${text}`);
  await expect(sessionRow(page, 'say busy').locator('.state-mark')).toHaveAttribute('data-mark', 'running');
  await tab(page, 'say quiet').getByRole('tab').click();
  await expect(tab(page, 'say quiet').getByRole('tab')).toHaveAttribute('aria-selected', 'true');
  writeFileSync(left, '');
}

/** @param {Page} page */
const icon = (page) => page.locator('link[rel="icon"]').getAttribute('href');

test('a session that finishes out of view stays marked until it is opened', async ({ page, liminal }) => {
  await withTwo(page, liminal);
  await expect(page).toHaveTitle('say quiet – Liminal Builder');
  expect(await icon(page)).toBe('/favicon.svg');
  await inTheBackground(page, liminal, 'say done');
  const mark = sessionRow(page, 'say busy').locator('.state-mark');
  await expect(mark).toHaveAttribute('data-mark', 'finished');
  await expect(page).toHaveTitle('(1 finished) say quiet – Liminal Builder');
  expect(await icon(page)).toContain('data:image/svg+xml');
  await expect(sessionRow(page, 'say busy').getByRole('button', { name: /not seen yet/ })).toBeVisible();
  await page.reload();
  await expect(mark).toHaveAttribute('data-mark', 'finished');
  await tab(page, 'say busy').getByRole('tab').click();
  await expect(mark).toHaveAttribute('data-mark', 'idle');
  await expect(page).toHaveTitle('say busy – Liminal Builder');
  expect(await icon(page)).toBe('/favicon.svg');
});

test('pending work is counted in one place and shown with the sidebar hidden', async ({ page, liminal }) => {
  await withTwo(page, liminal);
  const top = async () => (await page.getByRole('searchbox', { name: 'Filter sessions' }).boundingBox())?.y;
  const menu = page.locator('#menu');
  await expect(page.getByRole('button', { name: 'Inbox: No pending requests' })).toBeVisible();
  const before = await top();
  await inTheBackground(page, liminal, 'say done');
  await expect(page).toHaveTitle('(1 finished) say quiet – Liminal Builder');
  await expect(page.locator('#waiting-button')).toHaveText(/1 finished$/);
  expect(await top()).toBe(before);
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(menu).toHaveAccessibleName('Open sidebar: 1 finished');
  await expect(menu.locator('.menu-badge')).toHaveText('1');
  await expect(menu.locator('.menu-badge')).toHaveAttribute('data-mark', 'finished');
  expect(await violations(page)).toEqual([]);
  await page.setViewportSize({ width: 1440, height: 900 });
  await tab(page, 'say busy').getByRole('tab').click();
  await expect(page.locator('#waiting-button')).toHaveText('No pending requests');
  expect(await top()).toBe(before);
  await expect(menu).toHaveAttribute('aria-label', 'Open sidebar');
  await expect(menu.locator('.menu-badge')).toBeHidden();
  await page.keyboard.press('Alt+a');
  await expect(page.getByRole('dialog', { name: 'Inbox' })).toContainText('No pending requests.');
});

test('a session that fails out of view is marked as failed', async ({ page, liminal }) => {
  await withTwo(page, liminal);
  await inTheBackground(page, liminal, 'fail 1 no luck');
  await expect(sessionRow(page, 'say busy').locator('.state-mark')).toHaveAttribute('data-mark', 'failed');
  await expect(page).toHaveTitle('(1 failed) say quiet – Liminal Builder');
  await expect(page.getByRole('button', { name: 'Inbox: 1 failed' })).toBeVisible();
});

test('permission requests of all sessions are listed, answered by keyboard', async ({ page, liminal }) => {
  await withTwo(page, liminal);
  await inTheBackground(page, liminal, 'permission p1 Delete the build folder');
  await expect(page).toHaveTitle('(1 waiting) say quiet – Liminal Builder');
  await expect(page.getByRole('button', { name: 'Inbox: 1 waiting' })).toBeVisible();
  // The list includes sessions without a tab.
  await tab(page, 'say busy').locator('.tab-close').click();
  await page.reload();
  await expect(tabTitles(page)).toHaveText(['say quiet']);
  await sessionPage(page).locator('textarea').click();
  await page.keyboard.press('Alt+a');
  const list = page.getByRole('dialog', { name: 'Inbox' });
  await expect(list.getByText('Delete the build folder')).toBeVisible();
  await expect(list.getByRole('button', { name: /say busy/ })).toBeFocused();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('2');
  await expect(list.getByText('Delete the build folder')).toHaveCount(0);
  await page.keyboard.press('Escape');
  await expect(list).toBeHidden();
  await sessionRow(page, 'say busy').getByRole('button').first().click();
  await expect(
    sessionPage(page)
      .locator('[data-entry-id]')
      .filter({ hasText: /yes|once|selected/i })
      .last(),
  ).toBeVisible();
});

test('notifications need consent and show only sessions out of view', async ({ page, context, liminal }) => {
  await page.addInitScript(() => {
    /** @type {string[]} */
    const shown = [];
    Object.assign(window, { shown });
    // @ts-expect-error: only the part that the page uses
    window.Notification = class {
      static permission = 'granted';
      static requestPermission = async () => 'granted';
      close() {}
      /** @param {string} title */
      constructor(title) {
        shown.push(title);
        Object.assign(window, { last: this });
      }
    };
  });
  await context.grantPermissions(['notifications']);
  await withTwo(page, liminal);
  const shown = () => page.evaluate(() => /** @type {any} */ (window).shown);
  await inTheBackground(page, liminal, 'say unasked');
  await expect(page).toHaveTitle(/1 finished/);
  expect(await shown()).toEqual([]);
  await page.getByRole('button', { name: 'Notifications' }).click();
  const choice = page.getByRole('menuitemcheckbox', { name: 'Desktop notification' });
  await expect(choice).toHaveAttribute('aria-checked', 'false');
  expect(await violations(page)).toEqual([]);
  await choice.click();
  await inTheBackground(page, liminal, 'say asked');
  await expect.poll(shown).toEqual(['say busy finished']);
  await send(page, 'say in view', 'in view');
  expect(await shown()).toEqual(['say busy finished']);
  await page.evaluate(() => /** @type {any} */ (window).last.onclick());
  await expect(tab(page, 'say busy').getByRole('tab')).toHaveAttribute('aria-selected', 'true');
  await page.reload();
  await expect(page.locator('#connection')).toContainText('Server connected');
  await page.getByRole('button', { name: 'Notifications' }).click();
  await expect(choice).toHaveAttribute('aria-checked', 'true');
  expect(await violations(page)).toEqual([]);
});

test('the palette finds sessions, projects and actions', async ({ page, liminal }) => {
  await withTwo(page, liminal);
  await page.keyboard.press('Control+k');
  const field = page.getByRole('combobox', { name: 'Find a session, a project or an action' });
  await expect(field).toBeFocused();
  await field.fill('busy');
  await expect(page.getByRole('option')).toHaveText([/say busy/]);
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Enter');
  await expect(tab(page, 'say busy').getByRole('tab')).toHaveAttribute('aria-selected', 'true');
  await expect(sessionPage(page).locator('textarea')).toBeFocused();
  await page.keyboard.press('Control+k');
  await field.fill('archive');
  await page.keyboard.press('Enter');
  await expect(tabTitles(page)).toHaveText(['say quiet']);
  await expect(sessionPage(page).locator('textarea')).toBeFocused();
  await page.keyboard.press('Control+k');
  // The palette lists only actions that are available now, with their shortcuts.
  await field.fill('the tab');
  await expect(page.getByRole('option')).toHaveText([/Close the tab.*Alt\+W/]);
  await field.fill('in view');
  await expect(page.getByRole('option')).toHaveCount(3);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Alt+w');
  await expect(tabsOf(page)).toHaveCount(0);
  await page.keyboard.press('Control+k');
  await field.fill('in view');
  await expect(page.getByText('Nothing found.')).toBeVisible();
  await field.fill('no such thing at all');
  await expect(page.getByText('Nothing found.')).toBeVisible();
  await page.keyboard.press('Control+k');
  await expect(field).toBeHidden();
});

test('every shortcut works in the shell and in a session', async ({ page, liminal }) => {
  await withTwo(page, liminal);
  const active = (/** @type {string} */ title) =>
    expect(tab(page, title).getByRole('tab')).toHaveAttribute('aria-selected', 'true');
  await expect(sessionPage(page).locator('textarea')).toBeFocused();
  await page.keyboard.press('Alt+1');
  await active('say busy');
  await expect(sessionPage(page).locator('textarea')).toBeFocused();
  await page.keyboard.press('Control+Alt+ArrowRight');
  await active('say quiet');
  await page.keyboard.press('Alt+PageDown');
  await active('say busy');
  await page.keyboard.press('Alt+9');
  await active('say quiet');
  await page.keyboard.press('Alt+Shift+PageUp');
  await expect(tabTitles(page)).toHaveText(['say quiet', 'say busy']);
  await page.keyboard.press('Alt+l');
  await expect(page.locator('#sidebar')).toBeHidden();
  await page.reload();
  await expect(page.locator('#connection')).toContainText('Server connected');
  await expect(page.locator('#sidebar')).toBeHidden();
  await page.getByRole('button', { name: 'Open sidebar' }).click();
  await expect(page.locator('#sidebar')).toBeVisible();
  await page.keyboard.press('Alt+k');
  await expect(page.getByRole('searchbox', { name: 'Filter sessions' })).toBeFocused();
  await page.keyboard.press('Alt+i');
  await expect(sessionPage(page).locator('textarea')).toBeFocused();
  await page.keyboard.press('Alt+n');
  await expect(page.getByRole('combobox', { name: 'New session in app: with which agent?' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(tabsOf(page)).toHaveCount(3);
  await expect(sessionPage(page).locator('textarea')).toBeFocused();
  await page.keyboard.press('Alt+w');
  await expect(tabsOf(page)).toHaveCount(2);
  // The focus is still moving into the neighbouring page; a user would not be faster.
  await expect(sessionPage(page).locator('textarea')).toBeFocused();
  await page.getByRole('button', { name: 'Notifications' }).focus();
  await expect(page.getByRole('button', { name: 'Notifications' })).toBeFocused();
  await expect(sessionPage(page).locator('textarea')).not.toBeFocused();
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await expect(help).toContainText('Ctrl+K');
  await expect(help.getByRole('heading', { level: 3 })).toHaveText([
    'Everywhere',
    'In a conversation',
    'In the sidebar and the tabs',
  ]);
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await expect(help).toBeHidden();
});

for (const width of [1440, 390]) {
  test(`axe finds no violations with sessions, ${width} pixels wide`, async ({ page, liminal }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await withTwo(page, liminal);
    await inTheBackground(page, liminal, 'permission p1 Delete it');
    await expect(page).toHaveTitle(/1 waiting/);
    await page.setViewportSize({ width, height: 844 });
    expect(await violations(page)).toEqual([]);
    if (width === 390) await page.getByRole('button', { name: 'Open sidebar' }).click();
    await expect(sessionRow(page, 'say busy')).toBeVisible();
    expect(await violations(page)).toEqual([]);
    await sessionRow(page, 'say busy').click({ button: 'right' });
    await expect(page.getByRole('menu')).toBeVisible();
    expect(await violations(page)).toEqual([]);
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await expect(page.getByRole('textbox', { name: 'New title' })).toBeFocused();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /Inbox/ }).click();
    await expect(page.locator('.waiting-question')).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });
}
