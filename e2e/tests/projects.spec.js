import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { expect, test } from '../support/liminal.js';
import {
  addProject,
  enter,
  newSession,
  projectHead,
  projectHeads,
  send,
  sessionPage,
  sessionRow,
  sessionTitles,
  tabsOf,
  violations,
} from '../support/workspace.js';

/** Names of projects and titles of sessions, from top to bottom. @param {import('@playwright/test').Page} page */
const outline = (page) =>
  page.getByRole('navigation', { name: 'Projects' }).locator('.project-name, .session-title').allTextContents();

test('TC-1.1a: projects display on load in insertion order', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('zebra'));
  await addProject(page, liminal.folder('apple'));
  await expect(projectHeads(page)).toHaveText(['zebra', 'apple']);
  await page.reload();
  await expect(projectHeads(page)).toHaveText(['zebra', 'apple']);
  await expect(projectHead(page, 'zebra')).toHaveAttribute('title', `${liminal.home}/zebra`);
});

test('TC-1.1b: a first run shows an empty state that leads to adding a project', async ({ page, liminal }) => {
  await enter(page, liminal);
  const sidebar = page.getByRole('navigation', { name: 'Projects' });
  await expect(sidebar).toContainText('No projects yet. Add a folder you work in to begin.');
  await sidebar.getByRole('button', { name: 'Add project' }).click();
  await expect(page.getByRole('dialog', { name: 'Add project' })).toBeVisible();
});

test('TC-1.2a: a valid directory is added with its sessions, in every window', async ({ page, context, liminal }) => {
  await enter(page, liminal);
  const second = await context.newPage();
  await enter(second, liminal);
  await page.bringToFront();
  await addProject(page, liminal.folder('app'));
  await expect(projectHead(page, 'app')).toBeFocused();
  await expect(page.getByText('No sessions yet')).toBeVisible();
  await expect(projectHeads(second)).toHaveText(['app']);
  // A directory that was a project before has its sessions at once.
  for (const [project, text] of [
    ['app', 'one'],
    ['app', 'two'],
    ['lib', 'other'],
  ]) {
    if (project === 'lib') await addProject(page, liminal.folder('lib'));
    await newSession(page, project);
    await send(page, `say ${text}`, text);
  }
  await page.getByRole('button', { name: 'Remove app' }).click();
  for (const window of [page, second]) await expect.poll(() => outline(window)).toEqual(['lib', 'say other']);
  await addProject(page, '~/app');
  await expect(projectHead(page, 'app')).toBeFocused();
  for (const window of [page, second]) {
    await expect.poll(() => outline(window)).toEqual(['lib', 'say other', 'app', 'say two', 'say one']);
  }
});

test('TC-1.2b: an unusable path is explained inline and adds nothing', async ({ page, liminal }) => {
  writeFileSync(`${liminal.home}/file.txt`, '');
  await enter(page, liminal);
  await page.getByRole('button', { name: 'Add project' }).first().click();
  const field = page.getByRole('combobox', { name: 'Folder' });
  for (const [path, message] of [
    [`${liminal.home}/missing`, 'Directory does not exist'],
    [`${liminal.home}/file.txt`, 'That is not a directory'],
    ['code/app', 'Type an absolute path, such as /home/me/code or ~/code'],
    ['', 'Type the path of a directory'],
  ]) {
    await field.fill(path);
    await field.press('Enter');
    await expect(page.getByRole('alert')).toHaveText(message);
    await expect(field).toHaveAttribute('aria-invalid', 'true');
    await expect(field).toHaveValue(path);
    await field.fill(`${path}x`);
    await expect(page.getByRole('alert')).toHaveText('');
  }
  await expect(projectHeads(page)).toHaveCount(0);
});

test('TC-1.2c: cancelling by button, Escape or backdrop adds nothing', async ({ page, liminal }) => {
  liminal.folder('app');
  await enter(page, liminal);
  const opener = page.getByRole('button', { name: 'Add project' }).first();
  const dialog = page.getByRole('dialog', { name: 'Add project' });
  for (const cancel of [
    () => dialog.getByRole('button', { name: 'Cancel' }).click(),
    () => page.keyboard.press('Escape'),
    () => page.mouse.click(5, 700),
  ]) {
    await opener.click();
    await page.getByRole('combobox', { name: 'Folder' }).fill('~/app');
    await cancel();
    await expect(dialog).toBeHidden();
    await expect(opener).toBeFocused();
  }
  await expect(projectHeads(page)).toHaveCount(0);
  await opener.click();
  await expect(page.getByRole('combobox', { name: 'Folder' })).toHaveValue('');
});

test('TC-1.2d: a duplicate is refused, also through a symbolic link', async ({ page, liminal }) => {
  symlinkSync(liminal.folder('app'), `${liminal.home}/link`);
  await enter(page, liminal);
  await addProject(page, '~/app');
  await page.getByRole('button', { name: 'Add project' }).first().click();
  const field = page.getByRole('combobox', { name: 'Folder' });
  await field.fill('~/link');
  await field.press('Enter');
  await expect(page.getByRole('alert')).toHaveText('Project already added');
  await expect(projectHeads(page)).toHaveCount(1);
});

test('TC-1.3a: a removed project keeps files and sessions for when it is added again', async ({ page, liminal }) => {
  const path = liminal.folder('app');
  writeFileSync(`${path}/main.rs`, 'fn main() {}');
  await enter(page, liminal);
  await addProject(page, path);
  for (const text of ['one', 'two']) {
    await newSession(page, 'app');
    await send(page, `say ${text}`, text);
  }
  await page.getByRole('button', { name: 'Remove app' }).click();
  await expect(projectHeads(page)).toHaveCount(0);
  await expect(sessionTitles(page)).toHaveCount(0);
  expect(readFileSync(`${path}/main.rs`, 'utf8')).toBe('fn main() {}');
  // After a restart undo is no longer possible, but the sessions are still there.
  await liminal.stop();
  await liminal.start();
  await page.reload();
  await expect(page.getByText('No projects yet')).toBeVisible();
  await addProject(page, path);
  await expect.poll(() => outline(page)).toEqual(['app', 'say two', 'say one']);
  await expect(tabsOf(page)).toHaveCount(0);
  await sessionRow(page, 'say one').getByRole('button').first().click();
  await expect(sessionPage(page).locator('.row-user')).toContainText('say one');
  await expect(sessionPage(page).locator('.row-assistant')).toContainText('one');
});

test('a removal is undone in place, and the focus stays in the list', async ({ page, liminal }) => {
  await enter(page, liminal);
  for (const name of ['one', 'two', 'three']) await addProject(page, liminal.folder(name));
  await projectHead(page, 'two').focus();
  await page.keyboard.press('Delete');
  await expect(projectHeads(page)).toHaveText(['one', 'three']);
  await expect(projectHead(page, 'three')).toBeFocused();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(projectHeads(page)).toHaveText(['one', 'two', 'three']);
  await expect(projectHead(page, 'two')).toBeFocused();
});

test('TC-1.4a: collapsing hides the sessions, by mouse and by keyboard', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  for (const text of ['one', 'two']) {
    await newSession(page, 'app');
    await send(page, `say ${text}`, text);
  }
  await addProject(page, liminal.folder('lib'));
  await newSession(page, 'lib');
  const head = projectHead(page, 'app');
  const open = ['app', 'say two', 'say one', 'lib', 'New Session'];
  const closed = ['app', 'lib', 'New Session'];
  await expect.poll(() => outline(page)).toEqual(open);
  await expect(head).toHaveAttribute('aria-expanded', 'true');
  for (const [fold, unfold] of [
    [() => head.click(), () => head.press('ArrowRight')],
    [() => head.press('ArrowLeft'), () => head.press('Enter')],
  ]) {
    await fold();
    await expect.poll(() => outline(page)).toEqual(closed);
    await expect(head).toBeVisible();
    await expect(head).toHaveAttribute('aria-expanded', 'false');
    await unfold();
    await expect.poll(() => outline(page)).toEqual(open);
    for (const title of ['say one', 'say two']) await expect(sessionRow(page, title)).toBeVisible();
  }
});

test('TC-1.4b: a collapsed project stays collapsed after a restart', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('one'));
  await addProject(page, liminal.folder('two'));
  await projectHead(page, 'one').click();
  await liminal.stop();
  await liminal.start();
  await page.goto(liminal.origin);
  await expect(projectHead(page, 'one')).toHaveAttribute('aria-expanded', 'false');
  await expect(projectHead(page, 'two')).toHaveAttribute('aria-expanded', 'true');
  expect(await page.evaluate(() => Object.values(JSON.parse(localStorage['liminal:collapsed'])))).toEqual([true]);
});

test('invalid data in the browser storage is ignored', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  for (const nonsense of ['{', '[1]', '"x"', 'null', '{"a":{"b":1}}', '12']) {
    await page.evaluate((text) => {
      for (const key of ['collapsed', 'theme', 'sidebar-width']) localStorage.setItem(`liminal:${key}`, text);
    }, nonsense);
    await page.reload();
    await expect(projectHead(page, 'app')).toHaveAttribute('aria-expanded', 'true');
  }
});

test('folder names are completed while the user types', async ({ page, liminal }) => {
  for (const name of ['code/alpha/src', 'code/alpine', 'code/beta', 'code/.hidden']) liminal.folder(name);
  await enter(page, liminal);
  await addProject(page, '~/code/beta');
  await page.getByRole('button', { name: 'Add project' }).first().click();
  const field = page.getByRole('combobox', { name: 'Folder' });
  const options = page.getByRole('option');
  await expect(options).toHaveText(['code/']);
  await field.press('Tab');
  await expect(field).toHaveValue('~/code/');
  await expect(options).toHaveText(['alpha/', 'alpine/', 'beta/added']);
  await field.pressSequentially('ALP');
  await expect(options).toHaveText(['alpha/', 'alpine/']);
  await field.fill('~/code/al');
  await expect(options).toHaveText(['alpha/', 'alpine/']);
  await field.press('ArrowDown');
  await field.press('ArrowDown');
  await expect(options.nth(1)).toHaveAttribute('aria-selected', 'true');
  await field.press('ArrowUp');
  await field.press('Enter');
  await expect(field).toHaveValue('~/code/alpha/');
  await expect(options).toHaveText(['src/']);
  await field.press('Enter');
  await expect(projectHeads(page)).toHaveText(['beta', 'alpha']);
});

test('a suggestion for earlier text is never applied to newer text', async ({ page, liminal }) => {
  liminal.folder('code/alpha');
  await enter(page, liminal);
  await page.getByRole('button', { name: 'Add project' }).first().click();
  const field = page.getByRole('combobox', { name: 'Folder' });
  await field.fill('~/code/');
  await expect(page.getByRole('option')).toHaveText(['alpha/']);
  await field.press('ArrowDown');
  await field.fill('~/code/nope');
  await field.press('Enter');
  await expect(page.getByRole('alert')).toHaveText('Directory does not exist');
  await expect(field).toHaveValue('~/code/nope');
});

test('projects with the same name are distinguished by their location', async ({ page, liminal }) => {
  await enter(page, liminal);
  await addProject(page, liminal.folder('work/api'));
  await addProject(page, liminal.folder('other'));
  await expect(projectHeads(page)).toHaveText(['api', 'other']);
  await addProject(page, liminal.folder('play/api'));
  await expect(projectHeads(page)).toHaveText(['apiwork', 'other', 'apiplay']);
  await expect(page.getByRole('button', { name: 'Remove api in play' })).toBeAttached();
});

test('a project name that contains markup is shown as text', async ({ page, liminal }) => {
  const name = '<img src=x onerror="document.title=`owned`">';
  mkdirSync(`${liminal.home}/${name}`);
  await enter(page, liminal);
  await addProject(page, `~/${name}`);
  await expect(projectHeads(page)).toHaveText([name]);
  expect(await page.title()).toBe('Liminal Builder');
});

test('a held Delete key removes one project, and Ctrl+Z brings it back', async ({ page, liminal }) => {
  await enter(page, liminal);
  for (const name of ['one', 'two', 'three']) await addProject(page, liminal.folder(name));
  await projectHead(page, 'one').focus();
  await page.keyboard.down('Delete');
  await page.keyboard.down('Delete');
  await page.keyboard.down('Delete');
  await page.keyboard.up('Delete');
  await expect(projectHeads(page)).toHaveText(['two', 'three']);
  await page.keyboard.press('Control+z');
  await expect(projectHeads(page)).toHaveText(['one', 'two', 'three']);
  await expect(page.locator('.toast')).toHaveCount(0);
});

test('an add cancelled while the server is slow does not happen later', async ({ page, liminal }) => {
  await enter(page, liminal);
  const opener = page.getByRole('button', { name: 'Add project' }).first();
  const field = page.getByRole('combobox', { name: 'Folder' });
  liminal.folder('app');
  await opener.click();
  await field.fill('~/app');
  liminal.pause();
  await field.press('Enter');
  await page.keyboard.press('Escape');
  await opener.click();
  await field.fill('~/another');
  liminal.resume();
  await expect(page.getByRole('option')).toHaveCount(0);
  await expect(projectHeads(page)).toHaveCount(0);
  await expect(field).toHaveValue('~/another');
  await expect(page.getByRole('button', { name: 'Add project' }).last()).toBeEnabled();
});

test("the focus returns to the empty sidebar's button after a cancel", async ({ page, liminal }) => {
  await enter(page, liminal);
  const opener = page.getByRole('navigation', { name: 'Projects' }).getByRole('button', { name: 'Add project' });
  await opener.click();
  await expect(page.getByRole('combobox', { name: 'Folder' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(opener).toBeFocused();
});

test("the dialog's buttons keep their position when messages come and go", async ({ page, liminal }) => {
  for (let number = 0; number < 30; number += 1) liminal.folder(`code/app${number}`);
  await enter(page, liminal);
  await page.getByRole('button', { name: 'Add project' }).first().click();
  const field = page.getByRole('combobox', { name: 'Folder' });
  const submit = page.getByRole('dialog').getByRole('button', { name: 'Add project' });
  const before = await submit.boundingBox();
  await expect(page.getByRole('option')).toHaveCount(1);
  expect(await submit.boundingBox()).toEqual(before);
  await field.fill('~/code/');
  await expect(page.getByRole('option')).toHaveCount(30);
  expect(await submit.boundingBox()).toEqual(before);
  await field.fill('~/nowhere');
  await field.press('Enter');
  await expect(page.getByRole('alert')).toHaveText('Directory does not exist');
  expect(await submit.boundingBox()).toEqual(before);
});

test("a project's menu has every action and opens by mouse and keyboard", async ({ page, liminal, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await enter(page, liminal);
  const path = liminal.folder('app');
  await addProject(page, path);
  const head = projectHead(page, 'app');
  const menu = page.getByRole('menu', { name: 'app' });
  await head.click({ button: 'right' });
  await expect(menu.getByRole('menuitem').filter({ hasText: 'New session with' }).first()).toContainText('Claude Code');
  await expect(menu.getByRole('menuitem', { name: 'New session with another agent…' })).toBeVisible();
  await menu.getByRole('menuitem', { name: /Fold/ }).click();
  await expect(head).toHaveAttribute('aria-expanded', 'false');
  await head.focus();
  await page.keyboard.press('Shift+F10');
  await expect(menu).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await menu.getByRole('menuitem', { name: /Copy the path/ }).click();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(path);
  await head.click({ button: 'right' });
  await menu.getByRole('menuitem', { name: /Remove/ }).click();
  await expect(head).toHaveCount(0);
});
