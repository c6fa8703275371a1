import { expect, test } from '../support/liminal.js';
import { openSession } from '../support/session.js';
import { begin, newSession, send, sessionPage, sessionRow, violations } from '../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** @param {Page} page */
const panel = (page) => page.getByRole('region', { name: 'Traffic' });
/** @param {Page} page */
const labels = (page) => panel(page).locator('.traffic-label');

/** @param {Page} page */
async function openTraffic(page) {
  await page.keyboard.press('Control+k');
  await page.keyboard.type('traffic');
  await page.keyboard.press('Enter');
  await expect(panel(page).getByRole('button', { name: 'Recording' })).toHaveAttribute('aria-pressed', 'true');
}

test('recording starts on request and shows each frame of the session', async ({ page, liminal }) => {
  await openSession(page, liminal);
  await send(page, 'say before', 'before');
  await expect(panel(page)).toBeHidden();
  await openTraffic(page);
  await expect(panel(page)).toContainText('No frames yet.');
  await expect(panel(page).getByRole('searchbox', { name: 'Filter frames' })).toBeFocused();
  await send(page, 'say after', 'after');
  await expect(labels(page)).toHaveText([
    'session/prompt',
    'session/update agent_message_chunk',
    'answer to session/prompt',
  ]);
  const first = panel(page).locator('details').first();
  await first.locator('summary').focus();
  await page.keyboard.press('Enter');
  await expect(first.locator('pre')).toContainText('"method": "session/prompt"');
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await expect(panel(page)).toBeHidden();
});

test('frames are filtered by text and direction, paused and cleared', async ({ page, liminal }) => {
  await openSession(page, liminal);
  await openTraffic(page);
  await send(page, 'say one\nsay needle', 'needle');
  await expect(labels(page).last()).toHaveText('answer to session/prompt');
  await panel(page).getByRole('searchbox').fill('chunk needle');
  await expect(labels(page)).toHaveCount(1);
  await expect(panel(page).getByRole('status')).toHaveText(/^1 of 4 frames$/);
  await page.keyboard.press('Escape');
  await panel(page).getByRole('combobox', { name: 'Direction' }).selectOption('To the agent');
  await expect(labels(page)).toHaveText(['session/prompt']);
  await panel(page).getByRole('combobox', { name: 'Direction' }).selectOption('Both ways');
  await panel(page).getByRole('button', { name: 'Recording' }).click();
  await expect(panel(page).getByRole('button', { name: 'Record', exact: true })).toBeVisible();
  await send(page, 'say unseen', 'unseen');
  await expect(labels(page)).toHaveCount(4);
  await panel(page).getByRole('button', { name: 'Clear' }).click();
  await expect(panel(page)).toContainText('Not recording.');
});

test('a copied script makes the scripted agent repeat the recording', async ({ page, liminal, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await openSession(page, liminal);
  await openTraffic(page);
  await begin(page, 'think Hm.\ntool t1 read Look at it\ntool-done t1 it is fine\nsay All **is** fine.');
  await expect(labels(page).last()).toHaveText('answer to session/prompt');
  await panel(page).getByRole('button', { name: 'Copy…' }).click();
  await page.getByRole('menuitem', { name: /As a test script/ }).click();
  await expect(page.locator('#toasts')).toContainText('Copied a script');
  const script = await page.evaluate(() => navigator.clipboard.readText());
  expect(script.split('\n').filter(Boolean).length).toBe(5);
  await panel(page).getByRole('button', { name: 'Close the traffic' }).click();
  await newSession(page, 'app');
  await begin(page, script);
  const answers = sessionPage(page).locator('.row-assistant, .answer');
  await expect(answers.last()).toContainText('All is fine.');
  await expect(sessionPage(page).locator('body')).toContainText('Look at it');
});

test('the traffic view opens by menu, follows its session, hides secrets', async ({ page, liminal }) => {
  await openSession(page, liminal);
  await send(page, 'say first', 'first');
  await sessionRow(page, 'say first').getByRole('button').first().click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Traffic' }).click();
  await send(page, `say my key is sk-${'abcdefghijk'.repeat(3)} and ANTHROPIC_API_KEY=hunter2hunter2`);
  await expect(labels(page).last()).toHaveText('answer to session/prompt');
  for (const summary of await panel(page).locator('summary').all()) await summary.click();
  await expect(panel(page).locator('pre').first()).toContainText('ANTHROPIC_API_KEY=‹redacted›');
  await expect(panel(page)).not.toContainText('abcdefghijk');
  await expect(panel(page)).not.toContainText('hunter2');
  await newSession(page, 'app');
  await expect(panel(page)).toBeHidden();
  await page.getByRole('tab').first().click();
  await expect(labels(page).first()).toHaveText('session/prompt');
});

for (const width of [1024, 390]) {
  test(`the traffic view fits and is accessible, ${width} pixels wide`, async ({ page, liminal }) => {
    await openSession(page, liminal);
    await openTraffic(page);
    await send(page, 'say something', 'something');
    await expect(labels(page).last()).toHaveText('answer to session/prompt');
    await page.setViewportSize({ width, height: 844 });
    await panel(page).locator('summary').first().click();
    await expect(panel(page).getByRole('button', { name: 'Close the traffic' })).toBeInViewport({ ratio: 1 });
    const wide = await panel(page).evaluate((element) => element.scrollWidth > element.clientWidth);
    expect(wide).toBe(false);
    expect(await violations(page)).toEqual([]);
  });
}
