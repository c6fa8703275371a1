import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { expect, test } from '../support/liminal.js';
import {
  addProject,
  begin,
  enter,
  newSession,
  projectHead,
  send,
  sessionPage,
  sessionRow,
  sessionRows,
  sessionTitles,
  tab,
  tabsOf,
  violations,
} from '../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** A project `app` with one session for each text, which is its first message. */
/** @param {Page} page @param {import('../support/liminal.js').Liminal} liminal @param {...string} texts */
async function withSessions(page, liminal, ...texts) {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  for (const text of texts) {
    await newSession(page, 'app');
    await send(page, `say ${text}`, text);
  }
}

test('TC-2.1a: sessions show title, age and agent', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two');
  await newSession(page, 'app', 'Codex');
  await send(page, 'say three', 'three');
  await expect(sessionRows(page)).toHaveCount(3);
  const row = sessionRow(page, 'say three');
  await expect(row.locator('time')).toHaveText('now');
  await row.hover();
  await expect(row.getByRole('button').first()).toHaveAttribute('title', /^say three\n.*\d{4}/);
  await expect(row.locator('.badge')).toHaveText('CX');
  await expect(row.getByRole('button', { name: /say three.*Codex/ })).toBeVisible();
  await expect(sessionRow(page, 'say one').locator('.badge')).toHaveText('CC');
});

test('TC-2.1a: ages are updated', async ({ page, liminal }) => {
  await page.clock.install();
  await withSessions(page, liminal, 'one');
  await expect(sessionRow(page, 'one').locator('time')).toHaveText('now');
  await page.clock.runFor('03:00');
  await expect(sessionRow(page, 'one').locator('time')).toHaveText(/^[23]m$/);
});

test('TC-2.1b: the session with the latest activity is first', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two', 'three');
  await expect(sessionTitles(page)).toHaveText(['say three', 'say two', 'say one']);
  await sessionRow(page, 'say one').getByRole('button').first().click();
  await send(page, 'say again', 'again');
  await expect(sessionTitles(page)).toHaveText(['say one', 'say three', 'say two']);
});

test('TC-2.1c: a project without sessions says so and offers to create one', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  const empty = page.getByRole('listitem').filter({ hasText: 'No sessions yet' });
  await empty.getByRole('button', { name: 'New session' }).click();
  await expect(page.getByRole('menu', { name: 'New session in app' })).toBeVisible();
});

test('TC-2.2a: a new session opens in a tab and appears in every sidebar', async ({ page, context, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  const other = await context.newPage();
  await enter(other, liminal);
  await page.bringToFront();
  await newSession(page, 'app');
  await expect(tabsOf(page)).toHaveCount(1);
  await expect(sessionTitles(page)).toHaveText(['New Session']);
  await expect(sessionRow(page, 'New Session').getByRole('button').first()).toHaveAttribute('aria-current', 'true');
  await expect(sessionPage(page).locator('textarea')).toBeFocused();
  await expect(sessionTitles(other)).toHaveText(['New Session']);
  await expect(tabsOf(other)).toHaveCount(0);
});

test("TC-2.2b: the picker offers the catalog's agents, a missing one disabled", async ({ page, liminal }) => {
  await liminal.stop();
  liminal.env = { CODEX_ACP_CMD: '/nowhere/codex-acp' };
  await liminal.start();
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await page.getByRole('button', { name: 'New session in app' }).click();
  const items = page.getByRole('menuitem');
  await expect(items.first()).toHaveText(/Claude Code/);
  await expect(items.first()).toBeFocused();
  const codex = items.filter({ hasText: 'Codex' });
  await expect(codex).toHaveAttribute('aria-disabled', 'true');
  await expect(codex).toContainText('Its command was not found');
  await codex.click({ force: true });
  await expect(page.getByRole('menu')).toBeVisible();
  await expect(sessionRows(page)).toHaveCount(0);
  expect(await violations(page)).toEqual([]);
});

test('TC-2.2c: cancelling the picker creates nothing and returns the focus', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  const opener = page.getByRole('button', { name: 'New session in app' });
  const menu = page.getByRole('menu');
  for (const cancel of [
    () => page.keyboard.press('Escape'),
    () => page.mouse.click(900, 800),
    () => opener.click({ position: { x: 5, y: 5 } }),
  ]) {
    await opener.click();
    await expect(menu).toBeVisible();
    await cancel();
    await expect(menu).toHaveCount(0);
  }
  await opener.focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('ArrowDown');
  await expect(page.getByRole('menuitem').nth(1)).toBeFocused();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await expect(opener).toBeFocused();
  await expect(sessionRows(page)).toHaveCount(0);
  await expect(tabsOf(page)).toHaveCount(0);
  expect(liminal.agentLog()).toEqual([]);
});

test('TC-2.2f: a session that cannot be created is explained and can be retried', async ({ page, liminal }) => {
  liminal.agentStarts('refuse-new');
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await page.getByRole('button', { name: 'New session in app' }).click();
  await page.getByRole('menuitem', { name: 'Claude Code' }).click();
  await expect(page.getByRole('alert').filter({ hasText: 'Could not create session' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Retry' })).toBeFocused();
  await expect(tabsOf(page)).toHaveCount(0);
  await expect(sessionRows(page)).toHaveCount(0);
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Close' }).click();
  await expect(page.getByRole('heading', { name: 'No session open' })).toBeVisible();
});

/** The text of each row in view, without durations. @param {Page} page */
const conversation = async (page) => {
  const rows = await sessionPage(page).locator('.row:not(.row-turn)').allInnerTexts();
  return rows.map((text) => text.replaceAll(/for \d+ s/g, '').trim());
};

test('TC-2.3a: an existing session opens with its whole history', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'first');
  await send(page, 'think hm\nsay so\ntool t1 read Look at it\ntool-done t1 fine\nsay and this', 'and this');
  await send(page, 'say the end', 'the end');
  await expect(sessionPage(page).locator('.row-turn')).toHaveCount(3);
  const before = await conversation(page);
  expect(before).toHaveLength(9);
  await tab(page, 'say first').locator('.tab-close').click();
  await expect(tabsOf(page)).toHaveCount(0);
  await sessionRow(page, 'say first').getByRole('button').first().click();
  await expect(sessionPage(page).locator('.row-turn')).toHaveCount(3);
  expect(await conversation(page)).toEqual(before);
  for (const text of ['first', 'Look at it', 'the end']) {
    await expect(sessionPage(page).locator('.row').getByText(text, { exact: true }).first()).toBeInViewport();
  }
});

test('TC-2.5b: after a restart a session reloads its history from the agent', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'first');
  await send(page, 'say second', 'second');
  await expect(sessionPage(page).locator('.row-turn')).toHaveCount(2);
  await liminal.stop();
  const [id] = readdirSync(`${liminal.home}/.agent/memory`);
  const asked = () => liminal.agentLog().filter((line) => /^session\/(load|resume)/.test(line));
  expect(asked()).toEqual([]);
  // The session was continued in another client: only the agent knows about it.
  const memory = `${liminal.home}/.agent/memory/${id}`;
  for (const [kind, text] of [
    ['user_message_chunk', 'and elsewhere?'],
    ['agent_message_chunk', 'There too.'],
  ]) {
    appendFileSync(memory, `${JSON.stringify({ sessionUpdate: kind, content: { type: 'text', text } })}\n`);
  }
  const later = Date.now() / 1000 + 3600;
  utimesSync(memory, later, later);
  await liminal.start();
  await page.evaluate(() => localStorage.removeItem('liminal:tabs'));
  await page.reload();
  await expect(tabsOf(page)).toHaveCount(0);
  await sessionRow(page, 'say first').getByRole('button').first().click();
  await expect(sessionPage(page).locator('.row-user')).toHaveText([/say first/, /say second/, /and elsewhere\?/]);
  await expect(sessionPage(page).locator('.row-assistant')).toHaveText([/first/, /second/, /There too\./]);
  expect(asked()).toEqual([`session/load "${id}" ""`]);
});

test('TC-2.4a: archiving by menu or key hides a session, undo brings it back', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two', 'three');
  await sessionRow(page, 'say two').hover();
  await page.getByRole('button', { name: 'Actions for say two' }).click();
  await page.getByRole('menuitem', { name: 'Archive' }).click();
  await expect(sessionTitles(page)).toHaveText(['say three', 'say one']);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(sessionTitles(page)).toHaveText(['say three', 'say two', 'say one']);
  const two = sessionRow(page, 'say two').getByRole('button').first();
  await two.focus();
  await page.keyboard.press('Delete');
  await expect(sessionTitles(page)).toHaveText(['say three', 'say one']);
  await expect(sessionRow(page, 'say one').getByRole('button').first()).toBeFocused();
});

test('TC-2.4b: archiving closes the tab, undo restores it in its place', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two', 'three');
  await tab(page, 'say two').getByRole('tab').click();
  await sessionRow(page, 'say two').getByRole('button').first().focus();
  await page.keyboard.press('Delete');
  await expect(page.locator('.tab-title')).toHaveText(['say one', 'say three']);
  await expect(page.locator('.panel iframe')).toHaveCount(2);
  await page.keyboard.press('Control+z');
  await expect(page.locator('.tab-title')).toHaveText(['say one', 'say two', 'say three']);
  await expect(tab(page, 'say two').getByRole('tab')).toHaveAttribute('aria-selected', 'true');
});

for (const width of [1440, 390]) {
  test(`toasts leave the message input uncovered, ${width} pixels wide`, async ({ page, liminal }) => {
    await withSessions(page, liminal, 'one', 'two', 'three', 'four', 'five');
    for (const name of ['one', 'two', 'three', 'four']) {
      await sessionRow(page, `say ${name}`).getByRole('button').first().focus();
      await page.keyboard.press('Delete');
      await expect(page.locator('.toast').last()).toContainText(`say ${name}`);
    }
    await page.setViewportSize({ width, height: 844 });
    const toasts = page.locator('.toast:visible');
    await expect(toasts).toHaveCount(3);
    await expect(toasts.last()).toContainText('say four');
    const main = await page.locator('#main').boundingBox();
    const field = await sessionPage(page).locator('textarea').boundingBox();
    const last = await toasts.last().boundingBox();
    if (!main || !field || !last) throw new Error('an element is not laid out');
    expect(last.y + last.height).toBeLessThan(field.y);
    expect(Math.abs(last.x + last.width / 2 - (main.x + main.width / 2))).toBeLessThan(2);
    // The oldest toast is no longer shown, but its action can still be undone.
    for (const left of [3, 2, 1, 0]) {
      await page.keyboard.press('Control+z');
      await expect(page.locator('.toast')).toHaveCount(left);
    }
    await expect(page.locator('.tab-title')).toHaveCount(5);
  });
}

test('archived sessions are one click away and can be restored', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two');
  await sessionRow(page, 'say one').getByRole('button').first().focus();
  await page.keyboard.press('Delete');
  await expect(sessionTitles(page)).toHaveText(['say two']);
  const toggle = page.getByRole('button', { name: 'Archived sessions' });
  await toggle.click();
  await expect(toggle).toHaveAttribute('aria-pressed', 'true');
  await expect(sessionTitles(page)).toHaveText(['say one']);
  expect(await violations(page)).toEqual([]);
  await sessionRow(page, 'say one').getByRole('button').first().click();
  await expect(tab(page, 'say one').getByRole('tab')).toHaveAttribute('aria-selected', 'true');
  await expect(page.getByText('Nothing is archived.')).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Archived sessions' })).toBeVisible();
  await page.getByRole('button', { name: 'Back to sessions' }).click();
  await expect(page.getByRole('heading', { name: 'Archived sessions' })).toBeHidden();
  await expect(toggle).toBeFocused();
  await expect(sessionTitles(page)).toHaveText(['say two', 'say one']);
});

test('TC-2.4c: sessions created outside are not listed', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'ours');
  // A session of the same agent in the same folder that this server did not create.
  const folders = `${liminal.home}/.agent/folders`;
  const [ours] = readdirSync(folders);
  copyFileSync(`${folders}/${ours}`, `${folders}/made-in-a-terminal`);
  writeFileSync(`${liminal.home}/.agent/memory/made-in-a-terminal`, '');
  await expect(sessionTitles(page)).toHaveText(['say ours']);
  await liminal.stop();
  await liminal.start();
  await expect(page.locator('#connection')).toContainText('Server connected');
  await page.reload();
  await expect(sessionTitles(page)).toHaveText(['say ours']);
});

test('a session that cannot be loaded says why, and Retry loads it', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'kept');
  await liminal.stop();
  const folder = `${liminal.home}/.liminal-builder/sessions`;
  const [transcript] = readdirSync(folder);
  renameSync(`${folder}/${transcript}`, `${folder}/aside`);
  mkdirSync(`${folder}/${transcript}`);
  await liminal.start();
  await page.reload();
  const problem = page.getByText(/^Could not load session/);
  await expect(problem).toBeVisible();
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  await expect(problem).toBeVisible();
  rmdirSync(`${folder}/${transcript}`);
  renameSync(`${folder}/aside`, `${folder}/${transcript}`);
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  await expect(problem).toBeHidden();
  await expect(sessionPage(page).locator('.row-assistant')).toContainText('kept');
});

test('TC-2.5a: after a restart the sessions are listed, except the archived one', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two', 'three');
  await sessionRow(page, 'say two').getByRole('button').first().focus();
  await page.keyboard.press('Delete');
  await expect(sessionRows(page)).toHaveCount(2);
  await liminal.stop();
  await liminal.start();
  await page.reload();
  await expect(sessionTitles(page)).toHaveText(['say three', 'say one']);
});

test('a session is renamed by F2, double click or menu, in every window', async ({ page, context, liminal }) => {
  await withSessions(page, liminal, 'one');
  const other = await context.newPage();
  await enter(other, liminal);
  await page.bringToFront();
  const field = page.getByRole('textbox', { name: 'New title' });
  await sessionRow(page, 'say one').getByRole('button').first().focus();
  await page.keyboard.press('F2');
  await expect(field).toBeFocused();
  await field.fill('Fix auth bug');
  await field.press('Enter');
  await expect(sessionTitles(page)).toHaveText(['Fix auth bug']);
  await expect(page.locator('.tab-title')).toHaveText(['Fix auth bug']);
  await expect(sessionTitles(other)).toHaveText(['Fix auth bug']);
  await expect(sessionRow(page, 'Fix auth bug').getByRole('button').first()).toBeFocused();

  await sessionRow(page, 'Fix auth bug').getByRole('button').first().dblclick();
  await expect(field).toBeFocused();
  await field.fill('nothing of this');
  await field.press('Escape');
  await expect(sessionTitles(page)).toHaveText(['Fix auth bug']);

  await page.getByRole('button', { name: 'Actions for Fix auth bug' }).click();
  await page.getByRole('menuitem', { name: 'Rename' }).click();
  await field.fill('   ');
  await field.press('Enter');
  await expect(field).toHaveCount(0);
  await expect(sessionTitles(page)).toHaveText(['Fix auth bug']);
});

test('a session is renamed in place, also if collapsed or filtered out', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two');
  const field = page.getByRole('textbox', { name: 'New title of say two' });
  const begin = async () => {
    await tab(page, 'say two').click({ button: 'right' });
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await expect(field).toBeFocused();
  };
  await projectHead(page, 'app').click();
  await begin();
  // No other element covers the field.
  const covered = await field.evaluate((one) => {
    const { right, top, height } = one.getBoundingClientRect();
    return document.elementFromPoint(right - 4, top + height / 2) !== one;
  });
  expect(covered).toBe(false);
  await page.keyboard.press('Escape');
  await page.getByRole('searchbox', { name: 'Filter sessions' }).fill('one');
  await begin();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Archived sessions' }).click();
  await begin();
});

test('deleting a session closes its tab, undo restores both', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two');
  await sessionRow(page, 'say one').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await expect(sessionTitles(page)).toHaveText(['say two']);
  await expect(page.locator('.tab-title')).toHaveText(['say two']);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(sessionTitles(page)).toHaveText(['say two', 'say one']);
  await expect(page.locator('.tab-title')).toHaveText(['say one', 'say two']);
  await tab(page, 'say one').getByRole('tab').click();
  await expect(sessionPage(page).locator('[data-entry-id]').filter({ hasText: 'say one' }).first()).toBeVisible();
});

test('TC-1.3b: removing a project closes the tabs of its sessions, in every window', async ({
  page,
  context,
  liminal,
}) => {
  await withSessions(page, liminal, 'one', 'two');
  await addProject(page, liminal.folder('lib'));
  await newSession(page, 'lib');
  await expect(tabsOf(page)).toHaveCount(3);
  const other = await context.newPage();
  await enter(other, liminal);
  await expect(tabsOf(other)).toHaveCount(3);
  await projectHead(page, 'app').focus();
  await page.keyboard.press('Delete');
  for (const window of [page, other]) {
    await expect(window.locator('.tab-title')).toHaveText(['New Session']);
    await expect(sessionTitles(window)).toHaveText(['New Session']);
  }
});

test('undoing the removal of a project restores its tabs in their places', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two');
  await addProject(page, liminal.folder('lib'));
  await newSession(page, 'lib');
  await send(page, 'say other', 'other');
  await tab(page, 'say other').getByRole('tab').press('Control+Shift+ArrowLeft');
  await tab(page, 'say two').getByRole('tab').click();
  await expect(page.locator('.tab-title')).toHaveText(['say one', 'say other', 'say two']);
  await projectHead(page, 'app').focus();
  await page.keyboard.press('Delete');
  await expect(page.locator('.tab-title')).toHaveText(['say other']);
  await page.keyboard.press('Control+z');
  await expect(page.locator('.tab-title')).toHaveText(['say one', 'say other', 'say two']);
  await expect(tab(page, 'say two').getByRole('tab')).toHaveAttribute('aria-selected', 'true');
  await expect(sessionPage(page).locator('[data-entry-id]').filter({ hasText: 'say two' }).first()).toBeVisible();
  await expect(projectHead(page, 'app')).toBeFocused();
});

test('the filter finds titles in all projects, also in collapsed ones', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'fix the login', 'write docs');
  await addProject(page, liminal.folder('lib'));
  await newSession(page, 'lib');
  await send(page, 'say login again', 'login again');
  await projectHead(page, 'app').click();
  await expect(sessionRows(page)).toHaveCount(1);
  const filter = page.getByRole('searchbox', { name: 'Filter sessions' });
  await filter.fill('LOGIN');
  await expect(sessionTitles(page)).toHaveText(['say fix the login', 'say login again']);
  await expect(page.locator('#filter-count')).toHaveText('2 sessions found');
  await filter.fill('login fix');
  await expect(sessionTitles(page)).toHaveText(['say fix the login']);
  await filter.press('Enter');
  await expect(tab(page, 'say fix the login').getByRole('tab')).toHaveAttribute('aria-selected', 'true');
  await filter.fill('no such thing');
  await expect(page.getByText('No matching sessions.')).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await filter.press('Escape');
  await expect(filter).toHaveValue('');
  await expect(projectHead(page, 'app')).toBeVisible();
});

test('the arrow keys move through projects and sessions, Tab leaves the list', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one', 'two');
  await projectHead(page, 'app').focus();
  await page.keyboard.press('ArrowDown');
  await expect(sessionRow(page, 'say two').getByRole('button').first()).toBeFocused();
  await page.keyboard.press('End');
  await expect(sessionRow(page, 'say one').getByRole('button').first()).toBeFocused();
  await page.keyboard.press('ArrowLeft');
  await expect(projectHead(page, 'app')).toBeFocused();
  await page.keyboard.press('End');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('list', { name: 'Agents' }).getByRole('button')).toBeFocused();
  await page.keyboard.press('Shift+Tab');
  await expect(sessionRow(page, 'say one').getByRole('button').first()).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(tab(page, 'say one').getByRole('tab')).toHaveAttribute('aria-selected', 'true');
});

test('a running session is marked by colour, shape and text', async ({ page, liminal }) => {
  await withSessions(page, liminal, 'one');
  await begin(page, 'hang');
  const row = sessionRow(page, 'say one');
  await expect(row.locator('.state-mark')).toHaveAttribute('data-mark', 'running');
  await expect(row.getByRole('button', { name: /running/ })).toBeVisible();
  await expect(tab(page, 'say one').locator('.state-mark')).toHaveAttribute('data-mark', 'running');
});
