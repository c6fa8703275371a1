import { createServer } from 'node:http';
import { askForPort } from '../support/intruder.js';
import { expect, test } from '../support/liminal.js';
import { addProject, enter, newSession, send, sessionPage } from '../support/workspace.js';

test("a session's page is sandboxed: no origin, no storage, no cookie", async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await newSession(page, 'app');
  await expect(page.locator('.panel iframe')).toHaveAttribute('sandbox', 'allow-scripts');
  const frame = page.frames().find((other) => other.url().includes('/portlet.html'));
  const rights = await frame?.evaluate(() => {
    /** @param {() => unknown} what */
    const can = (what) => {
      try {
        what();
        return true;
      } catch {
        return false;
      }
    };
    return {
      origin: self.origin,
      storage: can(() => localStorage.length),
      cookie: can(() => document.cookie),
      shell: can(() => parent.document.title),
    };
  });
  expect(rights).toEqual({ origin: 'null', storage: false, cookie: false, shell: false });
});

test("only a session's own frame gets a port", async ({ page, context, liminal }) => {
  const elsewhere = createServer((_, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<title>elsewhere</title>');
  });
  await new Promise((resolve) => elsewhere.listen(0, '127.0.0.1', () => resolve(undefined)));
  const address = elsewhere.address();
  const other = typeof address === 'object' ? `http://127.0.0.1:${address?.port}/` : '';

  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await newSession(page, 'app');
  await send(page, 'say hello', 'hello');

  await page.evaluate(() => document.body.append(document.createElement('iframe')));
  const sibling = page.frames().at(-1);
  const portlet = page.frames().find((frame) => frame.url().includes('/portlet.html'));
  if (!sibling || !portlet) throw new Error('the sibling frame or the session frame is missing');
  expect(await sibling.evaluate(askForPort)).toEqual({ asked: true, ports: 0 });

  await portlet.evaluate(() => document.body.append(document.createElement('iframe')));
  await expect.poll(() => portlet.childFrames().length).toBe(1);
  expect(await portlet.childFrames()[0].evaluate(askForPort)).toEqual({ asked: true, ports: 0 });

  // The session's page requests a second port and gets none: each page gets one port.
  expect(await portlet.evaluate(askForPort)).toEqual({ asked: true, ports: 0 });

  const opening = context.waitForEvent('page');
  await page.evaluate(() => void window.open('about:blank'));
  const popup = await opening;
  expect((await popup.mainFrame().evaluate(askForPort)).ports).toBe(0);

  // A page of another origin that opened the workspace in a new window.
  const attacker = await context.newPage();
  await attacker.goto(other);
  const opened = context.waitForEvent('page');
  await attacker.evaluate((url) => void Object.assign(window, { workspace: window.open(url) }), liminal.origin);
  const workspace = await opened;
  await expect(workspace.locator('#connection')).toContainText('Server connected');
  expect((await attacker.evaluate(askForPort)).ports).toBe(0);

  await expect(sessionPage(page).locator('[data-entry-id]').filter({ hasText: 'spoofed' })).toHaveCount(0);
  expect(liminal.agentLog().filter((line) => line.includes('spoofed'))).toEqual([]);
  elsewhere.closeAllConnections();
  elsewhere.close();
});
