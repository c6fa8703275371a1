/** What a user does in the workspace, as steps for tests. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from './liminal.js';

/** @typedef {import('@playwright/test').Page} Page */

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Opens the workspace by its printed URL. @param {Page} page @param {{ url: string }} liminal */
export async function enter(page, liminal) {
  // From the workspace itself, only the fragment would change and the page would not load again.
  await page.goto('about:blank');
  await page.goto(liminal.url);
  await expect(page.locator('#connection')).toContainText('Server connected');
}

/** @param {Page} page @param {string} path */
export async function addProject(page, path) {
  await page.getByRole('button', { name: 'Add project' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Add project' });
  await dialog.getByRole('combobox', { name: 'Folder' }).fill(path);
  await dialog.getByRole('button', { name: 'Add project' }).click();
  await expect(dialog).toBeHidden();
}

/** @param {Page} page */
export function projectHeads(page) {
  return page.getByRole('navigation', { name: 'Projects' }).locator('.project-head');
}

/** @param {Page} page @param {string} name */
export function projectHead(page, name) {
  return page.getByRole('navigation', { name: 'Projects' }).getByRole('button', { name, exact: true });
}

/**
 * Starts a session from the sidebar and waits until it is in view.
 * @param {Page} page
 * @param {string} project
 * @param {'Claude Code' | 'Codex'} [agent]
 */
export async function newSession(page, project, agent = 'Claude Code') {
  const tabs = await tabsOf(page).count();
  await page.getByRole('button', { name: `New session in ${project}`, exact: true }).click();
  await page.getByRole('menuitem', { name: agent }).click();
  await expect(tabsOf(page)).toHaveCount(tabs + 1);
  await ready(page);
}

/** Waits until the page in view has its session and the focus. @param {Page} page */
export async function ready(page) {
  const field = sessionPage(page).locator('textarea');
  await expect.poll(() => field.evaluate((element) => element.ownerDocument.activeElement === element)).toBe(true);
}

/** The page of the active tab. @param {Page} page */
export function sessionPage(page) {
  return page.frameLocator('.panel.in-view iframe');
}

/** Sends a message in the active tab and waits until the agent has said a text. */
/** @param {Page} page @param {string} text @param {string} [until]  the text to wait for */
export async function send(page, text, until) {
  await begin(page, text);
  // The message itself may contain that text, too.
  const entries = sessionPage(page).locator('[data-entry-id]:not(.row-user)');
  if (until) await expect(entries.filter({ hasText: until }).last()).toBeVisible();
}

/** Sends a message once Send is enabled, and does not wait for the agent. @param {Page} page @param {string} text */
export async function begin(page, text) {
  const field = sessionPage(page).locator('textarea');
  await field.fill(text);
  await expect(sessionPage(page).getByRole('button', { name: 'Send', exact: true })).toBeEnabled();
  await field.press('Enter');
}

/** @param {Page} page */
export function tabsOf(page) {
  return page.getByRole('tablist', { name: 'Open sessions' }).getByRole('tab', { includeHidden: true });
}

/** @param {Page} page @param {string} title */
export function tab(page, title) {
  return page.locator('.tab-place').filter({ has: page.locator('.tab-title', { hasText: title }) });
}

/** @param {Page} page @returns titles from left to right */
export function tabTitles(page) {
  return page.locator('.tab-title');
}

/** The rows of sessions in the sidebar. @param {Page} page */
export function sessionRows(page) {
  return page.getByRole('navigation', { name: 'Projects' }).locator('.session-row');
}

/** @param {Page} page @param {string} title */
export function sessionRow(page, title) {
  return sessionRows(page).filter({ has: page.locator('.session-title', { hasText: title }) });
}

/** @param {Page} page */
export function sessionTitles(page) {
  return sessionRows(page).locator('.session-title');
}

/**
 * The violations that axe finds, in both colour schemes, in the window and in the active session.
 * @param {Page} page
 */
export async function violations(page) {
  const inView = page.locator('.panel.in-view iframe');
  const session = (await inView.count()) > 0 ? await (await inView.elementHandle())?.contentFrame() : null;
  const before = await page.evaluate(colourScheme);
  const found = [];
  for (const wanted of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme: wanted });
    for (const part of [page, ...(session ? [session] : [])]) {
      await expect.poll(() => part.evaluate(colourScheme)).toBe(wanted);
      await part.evaluate(AXE);
      found.push(...(await part.evaluate(findViolations)));
    }
  }
  await page.emulateMedia({ colorScheme: before });
  return found;
}

/** Runs in the page. */
function colourScheme() {
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** Runs in the page, after its animations have ended. */
async function findViolations() {
  await new Promise(requestAnimationFrame);
  const finite = document.getAnimations().filter(({ effect }) => effect?.getComputedTiming().endTime !== Infinity);
  await Promise.allSettled(finite.map(({ finished }) => finished));
  const { violations: found } = await /** @type {any} */ (window).axe.run({ exclude: ['iframe'] }, { preload: false });
  return found.map((/** @type {any} */ { id, nodes }) => [
    matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
    id,
    nodes.map((/** @type {any} */ { html, failureSummary }) => `${html}: ${failureSummary}`),
  ]);
}
