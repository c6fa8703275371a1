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

test('an agent that needs a sign-in offers its methods, then starts', async ({ page, liminal }) => {
  liminal.agentStarts('auth', 'three-ways', 'more-ways');
  await choose(page, liminal);
  const ways = page.getByRole('region', { name: 'Sign in to Claude Code' });
  await expect(page.getByRole('heading', { name: 'Claude Code wants you to sign in first' })).toBeVisible();
  await expect(ways.getByRole('button', { name: 'Log in' })).toBeFocused();
  await expect(ways.getByRole('listitem').filter({ hasText: 'Use a key' })).toContainText('From your keyring.');
  await expect(ways.getByRole('listitem').filter({ hasText: 'By variable' }).locator('code')).toHaveText(
    'SCRIPTED_KEY',
  );
  expect(await violations(page)).toEqual([]);

  await ways.getByRole('button', { name: 'Use a key' }).click();
  await expect(ways.getByRole('alert')).toContainText('Not signed in');
  await expect(ways.getByRole('alert')).toContainText('there is no key');
  await ways.getByRole('button', { name: 'Log in' }).click();
  await expect(tabsOf(page)).toHaveCount(1);
  await ready(page);
});

test('a session that needs a terminal sign-in shows one and starts after it', async ({ page, liminal }) => {
  liminal.agentStarts('auth', 'three-ways');
  await choose(page, liminal);
  await page.getByRole('button', { name: 'In a terminal' }).click();
  const terminal = page.getByRole('group', { name: 'In a terminal' });
  await expect(terminal.getByRole('log')).toContainText('Code: ');
  expect(await violations(page)).toEqual([]);
  await expect(terminal.getByRole('textbox')).toBeFocused();
  await page.keyboard.type('open sesame');
  await page.keyboard.press('Enter');
  await expect(tabsOf(page)).toHaveCount(1);
  await ready(page);
});

test('a prompt that needs a sign-in offers it and is sent again afterwards', async ({ page, liminal }) => {
  liminal.agentStarts('late-auth', 'three-ways');
  const { frame } = await openSession(page, liminal);
  await begin(page, 'say welcome');
  const ways = frame.getByRole('region', { name: 'Sign in to Claude Code' });
  await ways.getByRole('button', { name: 'Use a key' }).click();
  await expect(ways.getByRole('alert')).toContainText('there is no key');
  await ways.getByRole('button', { name: 'Log in' }).click();
  await expect(sessionPage(page).locator('.row-assistant')).toContainText('welcome');
  await expect(ways).toHaveCount(0);
});

test('a sign-in terminal handles links, wrong codes and Ctrl+C, then resumes', async ({ page, context, liminal }) => {
  liminal.agentStarts('late-auth', 'three-ways');
  const { frame } = await openSession(page, liminal);
  await begin(page, 'say welcome');
  const ways = frame.getByRole('region', { name: 'Sign in to Claude Code' });
  const terminal = ways.getByRole('group', { name: 'In a terminal' });
  const screen = terminal.getByRole('log');
  const line = terminal.getByRole('textbox');

  await ways.getByRole('button', { name: 'In a terminal' }).click();
  await expect(screen).toContainText('Sign in (terminal, terminal: true)');
  // A carriage return overwrites the line.
  await expect(screen).toContainText('working 100%');
  await expect(screen).not.toContainText('working 10%');
  const link = terminal.getByRole('link', { name: 'https://login.example.com/code?a=1' });
  await expect(link).toBeVisible();
  expect(context.pages()).toHaveLength(1);
  expect(await violations(page)).toEqual([]);
  await context.route('https://login.example.com/**', (route) => route.fulfill({ body: 'there' }));
  const opened = context.waitForEvent('page');
  await link.click();
  expect((await opened).url()).toBe('https://login.example.com/code?a=1');

  await expect(ways.getByRole('button', { name: 'Log in' })).toBeDisabled();
  await line.focus();
  await page.keyboard.press('Control+c');
  await expect(ways.getByRole('alert')).toContainText('Not signed in');
  await expect(line).toHaveCount(0);

  await ways.getByRole('button', { name: 'In a terminal' }).click();
  await expect(screen).toContainText('Code: ');
  await line.fill('sesame');
  await line.press('Enter');
  await expect(screen).toContainText('"sesame" is not it');
  await expect(line).toHaveValue('');
  await page.keyboard.type('open sesame');
  await page.keyboard.press('Enter');
  await expect(frame.locator('.row-assistant')).toContainText('welcome');
  await expect(ways).toHaveCount(0);
  expect(liminal.agentLog().filter((asked) => asked.startsWith('authenticate'))).toEqual([]);
});

test('a sign-in URL from the agent is shown and opens only by a click', async ({ page, context, liminal }) => {
  liminal.agentStarts('late-auth', 'three-ways', 'more-ways');
  const { frame } = await openSession(page, liminal);
  await begin(page, 'say welcome');
  const ways = frame.getByRole('region', { name: 'Sign in to Claude Code' });
  await ways.getByRole('button', { name: 'On a page' }).click();
  const asked = ways.getByRole('group', { name: 'Enter ABC-123 there' });
  await expect(asked.getByRole('link')).toHaveText('https://login.example.com/device');
  expect(context.pages()).toHaveLength(1);
  expect(await violations(page)).toEqual([]);
  await asked.getByRole('button', { name: 'Accept' }).click();
  await expect(frame.locator('.row-assistant')).toContainText('welcome');
});

test('a turn that failed for another reason offers no sign-in', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await send('fail -32603 the disk is full');
  await expect(frame.getByRole('button', { name: 'Send again' })).toBeVisible();
  await expect(frame.getByRole('region', { name: /Sign in/ })).toHaveCount(0);
});

test("a reopened session offers its agent's sign-in before any message", async ({ page, liminal }) => {
  liminal.agentStarts('auth', 'three-ways');
  await choose(page, liminal);
  await page.getByRole('button', { name: 'Log in' }).click();
  await ready(page);
  await begin(page, 'say yesterday');
  const frame = sessionPage(page);
  await expect(frame.locator('.turn-end')).toHaveCount(1);
  await liminal.kill();
  await liminal.start();
  const closed = frame.getByRole('region', { name: 'The session is not open' });
  await expect(closed.getByRole('alert').first()).toHaveText('Claude Code wants you to sign in first.');
  expect(await violations(page)).toEqual([]);
  await closed.getByRole('button', { name: 'Log in' }).click();
  await expect(closed).toBeHidden();
  await begin(page, 'say today');
  await expect(frame.locator('.row-assistant')).toHaveText([/yesterday/, /today/]);
  await expect(frame.locator('.turn-end[data-outcome="failed"]')).toHaveCount(0);
});

test('a session its agent fails to load shows the reason and can be retried', async ({ page, liminal }) => {
  const { frame } = await openSession(page, liminal);
  await begin(page, 'say before');
  await expect(frame.locator('.turn-end')).toHaveCount(1);
  await liminal.kill();
  liminal.agentStarts('young');
  await liminal.start();
  const closed = frame.getByRole('region', { name: 'The session is not open' });
  await expect(closed.getByRole('alert')).toHaveText('Claude Code refused: this session is too young to be loaded');
  await closed.getByRole('button', { name: 'Try again' }).click();
  await expect(closed).toBeHidden();
  await begin(page, 'say after');
  await expect(frame.locator('.row-assistant')).toHaveText([/before/, /after/]);
});
