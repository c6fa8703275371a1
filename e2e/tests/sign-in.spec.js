import { expect, test } from '../support/liminal.js';
import { openSession } from '../support/session.js';
import { addProject, begin, enter, ready, sessionPage, tabsOf, violations } from '../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** @param {Page} page @param {import('../support/liminal.js').Liminal} liminal */
async function choose(page, liminal) {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await page.getByRole('button', { name: 'New session in app' }).click();
  await page.getByRole('menuitem', { name: 'Claude Code' }).click();
}

test('an agent that wants a sign-in offers its own ways, and the session starts after one of them', async ({
  page,
  liminal,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  liminal.agentStarts('auth', 'three-ways');
  await choose(page, liminal);
  const ways = page.getByRole('region', { name: 'Sign in to Claude Code' });
  await expect(page.getByRole('heading', { name: 'Claude Code wants you to sign in first' })).toBeVisible();
  await expect(ways.getByRole('button', { name: 'Log in' })).toBeFocused();
  await expect(ways.locator('code')).toHaveText('scripted-agent login');
  await ways.getByRole('button', { name: 'Copy the command' }).click();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe('scripted-agent login');
  expect(await violations(page)).toEqual([]);

  await ways.getByRole('button', { name: 'Use a key' }).click();
  await expect(ways.getByRole('alert')).toContainText('Not signed in');
  await expect(ways.getByRole('alert')).toContainText('there is no key');
  await ways.getByRole('button', { name: 'Log in' }).click();
  await expect(tabsOf(page)).toHaveCount(1);
  await ready(page);
});

test('a prompt that wants a sign-in offers it where the turn failed, and is sent again after it', async ({
  page,
  liminal,
}) => {
  liminal.agentStarts('late-auth', 'three-ways');
  const { frame } = await openSession(page, liminal);
  await begin(page, 'say welcome');
  const ways = frame.getByRole('region', { name: 'Sign in to Claude Code' });
  await expect(ways.locator('code')).toHaveText('scripted-agent login');
  await ways.getByRole('button', { name: 'Use a key' }).click();
  await expect(ways.getByRole('alert')).toContainText('there is no key');
  await ways.getByRole('button', { name: 'Log in' }).click();
  await expect(ways.getByRole('status')).toHaveText('Signed in.');
  await expect(frame.getByRole('button', { name: 'Send again' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(sessionPage(page).locator('.row-assistant')).toContainText('welcome');
  await expect(ways).toHaveCount(0);
});

test('a turn that failed for another reason offers no sign-in', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await send('fail -32603 the disk is full');
  await expect(frame.getByRole('button', { name: 'Send again' })).toBeVisible();
  await expect(frame.getByRole('region', { name: /Sign in/ })).toHaveCount(0);
});
