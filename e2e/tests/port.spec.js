/** Another program binds the server's port after its end, while the workspace stays open. */

import { readFileSync } from 'node:fs';
import { expect, test } from '../support/liminal.js';
import { replay, startSquatter } from '../support/squatter.js';
import { addProject, enter, newSession, send, sessionPage } from '../support/workspace.js';

const DRAFT = 'a draft that only our server may see';

test('a program on the port of a killed server gets nothing, the tab continues', async ({ page, liminal }) => {
  // A page that meets another program retries after five seconds.
  test.setTimeout(120_000);
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await newSession(page, 'app');
  await send(page, 'say before', 'before');
  await liminal.kill();
  const squatter = await startSquatter(liminal.origin);

  const status = page.locator('#connection');
  await expect(status).toContainText('Another program answers');
  await expect(page.getByRole('alert').filter({ hasText: 'Nothing is sent to it' })).toBeVisible();
  const field = sessionPage(page).locator('textarea');
  await field.fill(DRAFT);
  await field.press('Enter');
  await expect(field).toHaveValue(DRAFT);
  // A new frame would be loaded from the squatter, and so would be an icon or a script.
  await page.getByRole('button', { name: 'New session in app', exact: true }).click();
  await page.keyboard.press('Escape');
  // It has accepted a connection of each kind: one that greets, one with a forged challenge, and a silent one.
  const connections = () => squatter.received.filter(({ method }) => method === 'WS').length;
  await expect.poll(connections, { timeout: 45_000 }).toBeGreaterThan(3);
  await expect(status).toContainText('Another program answers');
  expect(page.url()).toBe(`${liminal.origin}/`);
  await squatter.stop();

  const token = readFileSync(`${liminal.home}/.liminal-builder/token`, 'utf8').trim();
  const all = JSON.stringify(squatter.received);
  for (const secret of [token, DRAFT, 'before', 'session:', 'project:', '"cookie"', '"authorization"', '/uploads']) {
    expect(all).not.toContain(secret);
  }
  // Neither frames nor files: only the questions who answers.
  const asked = new Set(squatter.received.map(({ method, url }) => `${method} ${url?.split('?')[0]}`));
  expect([...asked].sort()).toEqual(['GET /identity', 'WS /ws']);

  await liminal.start();
  expect(await replay(liminal.origin, squatter.received)).toEqual([]);
  await expect(status).toContainText('Server connected');
  await expect(page.getByRole('alert').filter({ hasText: 'Nothing is sent to it' })).toBeHidden();
  await expect(field).toHaveValue(DRAFT);
  await send(page, 'say after', 'after');
  await page.reload();
  await expect(status).toContainText('Server connected');
  await expect(sessionPage(page).locator('.conversation')).toContainText('after');
});

test('a sign-in sent to another program does not reveal the token', async ({ page, liminal }) => {
  await page.goto(liminal.origin);
  const field = page.getByLabel('Access token');
  await expect(field).toBeVisible();
  await liminal.kill();
  const squatter = await startSquatter(liminal.origin);
  const token = readFileSync(`${liminal.home}/.liminal-builder/token`, 'utf8').trim();
  await field.fill(token);
  await field.press('Enter');
  await expect(page.getByRole('alert')).toContainText('Another program answers at this address');
  await squatter.stop();
  expect(squatter.received.some(({ method, url }) => method === 'POST' && url === '/login')).toBe(true);
  expect(JSON.stringify(squatter.received)).not.toContain(token);
  await liminal.start();
  expect(await replay(liminal.origin, squatter.received)).toEqual([]);
  await field.press('Enter');
  await expect(page.getByRole('heading', { name: 'Start with a project' })).toBeVisible();
});

test('a service worker of another program is removed when the server is back', async ({ page, liminal }) => {
  await enter(page, liminal);
  await liminal.kill();
  const squatter = await startSquatter(liminal.origin);
  // Nothing prevents a user who loads the address from the squatter.
  await page.goto(liminal.origin);
  await expect(page.getByText('squatter')).toBeVisible();
  await page.evaluate(async () => void (await navigator.serviceWorker.ready));
  await squatter.stop();
  await liminal.start();
  await page.goto(liminal.origin);
  await expect(page.getByText('squatter')).toBeHidden();
  await expect.poll(() => page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length)).toBe(0);
  await enter(page, liminal);
});
