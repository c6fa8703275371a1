/** What a person does in the workspace, as steps for tests. */

import { expect } from './liminal.js';

/** @typedef {import('@playwright/test').Page} Page */

/** Opens the workspace with the printed address. @param {Page} page @param {{ url: string }} liminal */
export async function enter(page, liminal) {
  await page.goto(liminal.url);
  await expect(page.locator('#connection')).toContainText('Connected');
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
