import { expect, test } from '../support/liminal.js';
import { enter } from '../support/workspace.js';

test('the printed URL opens the workspace, no token stays in the address bar', async ({ page, liminal }) => {
  await enter(page, liminal);
  expect(page.url()).toBe(`${liminal.origin}/`);
  await page.goto(liminal.origin);
  await expect(page.getByRole('heading', { name: 'Start with a project' })).toBeVisible();
});

test('an unknown browser is asked for the token', async ({ page, liminal }) => {
  await page.goto(liminal.origin);
  const field = page.getByLabel('Access token');
  await expect(field).toBeFocused();
  await page.getByRole('button', { name: 'Open workspace' }).click();
  await expect(page.getByRole('alert')).toHaveText('Paste the token first.');
  await field.fill('not-the-token');
  await field.press('Enter');
  await expect(page.getByRole('alert')).toHaveText('That is not the token. `liminal token` prints it.');
  await field.fill(new URLSearchParams(new URL(liminal.url).hash.slice(1)).get('token') ?? '');
  await field.press('Enter');
  await expect(page.getByRole('heading', { name: 'Start with a project' })).toBeVisible();
});

test("the printed URL pasted into the login page's address bar works", async ({ page, liminal }) => {
  await page.goto(liminal.origin);
  await expect(page.getByLabel('Access token')).toBeVisible();
  await page.goto(liminal.url);
  await expect(page.getByRole('heading', { name: 'Start with a project' })).toBeVisible();
});

test('an outdated token in the URL is explained', async ({ page, liminal }) => {
  await page.goto(`${liminal.origin}/#token=0123456789abcdef`);
  await expect(page.getByRole('alert')).toHaveText('That is not the token. `liminal token` prints it.');
  expect(page.url()).toBe(`${liminal.origin}/`);
});

test('there is no cookie, and scripts of the page cannot read the key', async ({ page, liminal }) => {
  await enter(page, liminal);
  expect(await page.context().cookies()).toEqual([]);
  const exported = await page.evaluate(async () => {
    const opening = indexedDB.open('liminal', 1);
    await new Promise((resolve) => {
      opening.onsuccess = resolve;
    });
    const reading = opening.result.transaction('identity').objectStore('identity').get('browser');
    await new Promise((resolve) => {
      reading.onsuccess = resolve;
    });
    return crypto.subtle.exportKey('jwk', reading.result.privateKey).catch((error) => error.name);
  });
  expect(exported).toBe('InvalidAccessError');
});

test('a browser that reports no paint still starts', async ({ page, liminal }) => {
  await page.addInitScript(() => {
    window.requestAnimationFrame = () => 0;
  });
  await page.goto(liminal.origin);
  await expect(page.getByLabel('Access token')).toBeVisible();
  await page.goto(liminal.url);
  await expect(page.getByRole('heading', { name: 'Start with a project' })).toBeVisible();
});

test('a known browser that follows a link from another site needs no token', async ({ page, liminal }) => {
  await enter(page, liminal);
  await page.goto('data:text/html,<title>elsewhere</title>');
  await page.evaluate((origin) => {
    const link = document.createElement('a');
    link.href = `${origin}/`;
    link.textContent = 'workspace';
    document.body.append(link);
  }, liminal.origin);
  await page.getByRole('link', { name: 'workspace' }).click();
  await expect(page.getByRole('heading', { name: 'Start with a project' })).toBeVisible();
});
