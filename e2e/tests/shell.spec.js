import { createHash } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { expect, test } from '../support/liminal.js';
import { openSession, parts } from '../support/session.js';
import { addProject, enter, projectHead, projectHeads, violations } from '../support/workspace.js';

test('a killed server is reported quietly, missed changes appear later', async ({ page, context, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('before'));
  await liminal.kill();
  const status = page.locator('#connection');
  await expect(status.getByText('Reconnecting…')).toBeVisible();
  await expect(projectHeads(page)).toHaveText(['before']);

  await page.getByRole('button', { name: 'Add project' }).first().click();
  const field = page.getByRole('combobox', { name: 'Folder' });
  await field.fill('~/before');
  await field.press('Enter');
  await expect(page.getByRole('alert')).toContainText('The server is not reachable right now');
  await expect(field).toHaveValue('~/before');
  await page.keyboard.press('Escape');

  await liminal.start();
  const other = await context.newPage();
  await enter(other, liminal);
  await addProject(other, liminal.folder('meanwhile'));
  await expect(status.getByText('Server connected')).toBeVisible();
  await expect(projectHeads(page)).toHaveText(['before', 'meanwhile']);
});

test('data directory that is moved away is reported in every window until it is back', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { said, answers } = parts(frame);
  const [dir, away] = [`${liminal.home}/.liminal-builder`, `${liminal.home}/away`];
  const notice = page.locator('.notice');
  renameSync(dir, away);
  await expect(notice).toContainText('Nothing can be saved: the data directory');
  await expect(notice).toContainText('was moved or removed');
  await send('say lost');
  await expect(frame.getByText('was moved or removed')).toBeVisible();
  await expect(answers).toHaveCount(0);
  renameSync(away, dir);
  await expect(notice).toHaveCount(0);
  await expect(said).toHaveCount(1);
  await frame.getByRole('button', { name: 'Retry' }).click();
  await expect(answers).toContainText('lost');
});

test('the first lists arrive without a request, later ones on request', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('first'));
  /** @type {string[]} */
  const asked = [];
  page.on('websocket', (socket) => {
    socket.on('framesent', ({ payload }) => asked.push(JSON.parse(String(payload)).type));
  });
  await page.reload();
  await expect(projectHeads(page)).toHaveText(['first']);
  await page.getByRole('button', { name: 'Archived sessions' }).click();
  // Requested later than any list would have been.
  await expect.poll(() => asked).toContain('session:list');
  expect(asked.filter((type) => type.endsWith(':list'))).toEqual(['session:list']);
});

test('a page recovers if the server restarts while it loads', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('first'));
  let restarted = false;
  const once = { times: 1 };
  const greeted = page.waitForEvent('websocket').then((socket) => socket.waitForEvent('framereceived'));
  await page.route(
    '**/shell/main.js',
    async (route) => {
      // The page has connected, but its script does not run yet.
      await greeted;
      await liminal.kill();
      await liminal.start();
      restarted = true;
      await route.continue();
    },
    once,
  );
  await page.reload();
  await expect(page.locator('#connection').getByText('Server connected')).toBeVisible();
  await expect(projectHeads(page)).toHaveText(['first']);
  expect(restarted).toBe(true);
  await addProject(page, liminal.folder('second'));
});

test('reconnecting backs off when the server closes each connection', async ({ page, liminal }) => {
  await enter(page, liminal);
  await liminal.stop();
  const attempts = await hangUpOnEveryone(liminal.origin, 4000);
  expect(attempts).toBeGreaterThan(0);
  expect(attempts).toBeLessThan(8);
  await expect(page.locator('#connection')).toContainText('Reconnecting…');
});

test('the page asks for the token when the server no longer knows the browser', async ({ page, liminal }) => {
  await enter(page, liminal);
  await liminal.stop();
  writeFileSync(`${liminal.home}/.liminal-builder/token`, 'another-token-altogether\n');
  await liminal.start();
  await expect(page.getByLabel('Access token')).toBeVisible();
});

test('the page reports a file that was set aside', async ({ page, liminal }) => {
  await liminal.stop();
  writeFileSync(`${liminal.home}/.liminal-builder/projects.json`, '{ torn');
  await liminal.start();
  await enter(page, liminal);
  await expect(page.locator('.notice')).toContainText('could not be understood');
  await page.locator('.notice').getByRole('button', { name: 'Dismiss' }).click();
  await expect(page.locator('.notice')).toHaveCount(0);
});

test('the sidebar is resized by mouse and keyboard, within limits', async ({ page, liminal }) => {
  await enter(page, liminal);
  const divider = page.getByRole('separator', { name: 'Sidebar width' });
  const width = async () => (await page.locator('#sidebar').boundingBox())?.width;
  expect(await width()).toBe(280);
  await page.mouse.move(280, 400);
  await page.mouse.down();
  await page.mouse.move(350, 400, { steps: 5 });
  await page.mouse.up();
  expect(await width()).toBe(350);
  await divider.press('ArrowLeft');
  expect(await width()).toBe(334);
  await divider.press('End');
  expect(await width()).toBe(480);
  await divider.press('ArrowRight');
  expect(await width()).toBe(480);
  await divider.press('Home');
  expect(await width()).toBe(200);
  await page.reload();
  await expect(divider).toHaveAttribute('aria-valuenow', '200');
  expect(await width()).toBe(200);
  await divider.dblclick();
  expect(await width()).toBe(280);
});

test("a chosen theme replaces the system's and survives a reload", async ({ page, liminal }) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await enter(page, liminal);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  expect(dark).toBe('rgb(26, 27, 38)');
  await page.emulateMedia({ colorScheme: 'light' });
  const light = await ground();
  expect(light).not.toBe(dark);
  await page.getByRole('button', { name: 'Theme: as the system' }).click();
  expect(await ground()).toBe(dark);
  await page.reload();
  expect(await ground()).toBe(dark);
  await page.getByRole('button', { name: 'Theme: dark' }).click();
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await ground()).toBe(light);
  await page.getByRole('button', { name: 'Theme: light' }).click();
  expect(await ground()).toBe(dark);
});

test('at 390 pixels the sidebar is a drawer that opens and closes', async ({ page, liminal }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await enter(page, liminal);
  const sidebar = page.locator('#sidebar');
  await expect(sidebar).toBeHidden();
  await page.getByRole('button', { name: 'Add project' }).click();
  const field = page.getByRole('combobox', { name: 'Folder' });
  liminal.folder('app');
  await field.fill('~/app');
  await field.press('Enter');
  await expect(page.getByRole('dialog')).toBeHidden();
  await expect(page.getByRole('heading', { name: 'No session open' })).toBeVisible();

  const menu = page.getByRole('button', { name: 'Open sidebar' });
  await expect(menu).toBeFocused();
  await menu.click();
  await expect(sidebar).toBeVisible();
  await expect(projectHead(page, 'app')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(sidebar).toBeHidden();
  await expect(menu).toBeFocused();
  await menu.click();
  await page.mouse.click(380, 400);
  await expect(sidebar).toBeHidden();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
});

test('the arrow keys move through the projects', async ({ page, liminal }) => {
  await enter(page, liminal);
  for (const name of ['one', 'two', 'three']) await addProject(page, liminal.folder(name));
  await projectHead(page, 'one').focus();
  await page.keyboard.press('ArrowDown');
  await expect(projectHead(page, 'two')).toBeFocused();
  await page.keyboard.press('End');
  await expect(projectHead(page, 'three')).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await expect(projectHead(page, 'three')).toBeFocused();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowUp');
  await expect(projectHead(page, 'one')).toBeFocused();
});

test('animations stop for users who prefer reduced motion', async ({ page, liminal }) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  const durations = await page.evaluate(() =>
    [...document.querySelectorAll('*')].map((element) => getComputedStyle(element).transitionDuration),
  );
  expect(durations.filter((duration) => !/^(0s(, )?)+$/.test(duration))).toEqual([]);
});

for (const width of [1440, 390]) {
  test(`axe finds no violations, ${width} pixels wide`, async ({ page, liminal }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 844 });
    await page.goto(liminal.origin);
    await expect(page.getByLabel('Access token')).toBeVisible();
    expect(await violations(page)).toEqual([]);

    await enter(page, liminal);
    expect(await violations(page)).toEqual([]);
    liminal.folder('code/app');
    await page.getByRole('button', { name: 'Add project' }).last().click();
    const field = page.getByRole('combobox', { name: 'Folder' });
    await field.fill('~/code/');
    await expect(page.getByRole('option')).toHaveCount(1);
    await field.press('ArrowDown');
    expect(await violations(page)).toEqual([]);
    await field.fill('~/code/missing');
    await field.press('Enter');
    await expect(page.getByRole('alert')).not.toHaveText('');
    expect(await violations(page)).toEqual([]);
    await field.fill('~/code/app');
    await field.press('Enter');
    await expect(page.getByRole('dialog')).toBeHidden();
    if (width === 390) await page.getByRole('button', { name: 'Open sidebar' }).click();
    await expect(projectHead(page, 'app')).toBeVisible();
    expect(await violations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Remove app' }).click();
    await expect(page.getByRole('button', { name: 'Undo' })).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });
}

test('axe finds no violations while errors are shown', async ({ page, liminal }) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await liminal.stop();
  writeFileSync(`${liminal.home}/.liminal-builder/projects.json`, '{ torn');
  await liminal.start();
  await enter(page, liminal);
  await expect(page.locator('.notice')).toBeVisible();
  await addProject(page, liminal.folder('work/api'));
  await addProject(page, liminal.folder('play/api'));
  expect(await violations(page)).toEqual([]);
  await liminal.kill();
  await expect(page.getByRole('button', { name: 'Retry now' })).toBeVisible();
  expect(await violations(page)).toEqual([]);
});

/**
 * Listens in the server's place for a while: completes each WebSocket handshake and hangs up.
 * @param {string} origin
 * @param {number} ms
 * @returns {Promise<number>} the number of connections
 */
async function hangUpOnEveryone(origin, ms) {
  let attempts = 0;
  const server = createServer();
  server.on('upgrade', (request, socket) => {
    attempts += 1;
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash('sha1').update(key).digest('base64');
    socket.end(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
  });
  await new Promise((resolve) => server.listen(Number(new URL(origin).port), '127.0.0.1', () => resolve(undefined)));
  await new Promise((resolve) => setTimeout(resolve, ms));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  return attempts;
}
