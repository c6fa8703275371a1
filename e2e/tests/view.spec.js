// The part of a conversation that is in view and in the page: following new entries, and long conversations.
import { writeFileSync } from 'node:fs';
import { expect, test } from '../support/liminal.js';
import { entries, openSession, parts } from '../support/session.js';

/** @typedef {import('@playwright/test').FrameLocator} FrameLocator */

/** The distance of the view from the end. @param {FrameLocator} frame */
const left = (frame) =>
  frame.locator('#scroller').evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight);
/** The first row in view: its position and the start of its text. @param {FrameLocator} frame */
const topLine = (frame) =>
  frame.locator('#scroller').evaluate((one) => {
    const top = one.getBoundingClientRect().top;
    const row = [...one.querySelectorAll('.row')].find((each) => each.getBoundingClientRect().bottom > top);
    return [Math.round(row?.getBoundingClientRect().top ?? 0), row?.textContent?.slice(0, 80) ?? ''];
  });
const long = Array.from({ length: 60 }, (_, line) => `say line ${line}\\n`)
  .join('\n')
  .replaceAll('\\n', '');

test('TC-3.6a: the view follows new text', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await send(`${entries(30)}\nsleep 200\n${long}\nhang`);
  await expect(frame.getByText('entry 29.', { exact: true })).toBeInViewport();
  await expect.poll(() => left(frame)).toBeLessThan(2);
  await expect(parts(frame).latest).toBeHidden();
});

test('typing a draft of many lines does not move the conversation', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { input, latest, scroller } = parts(frame);
  await send(entries(30));
  await expect(parts(frame).ends).toHaveCount(1);
  await input.fill('one\ntwo\nthree\nfour\nfive\nsix\nseven\neight');
  await expect.poll(() => left(frame)).toBeLessThan(2);
  const before = await topLine(frame);
  await input.pressSequentially(' and nine');
  // Two frames, in which a scroll would happen.
  await scroller.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  expect(await topLine(frame)).toEqual(before);
  await expect(latest).toBeHidden();
  await send('say followed');
  await expect(frame.getByText('followed', { exact: true })).toBeInViewport();
});

test('a call that ends late is updated in place, also if it is not loaded', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { calls, answers, ends, scroller } = parts(frame);
  const go = `${liminal.home}/go`;
  await send(`tool slow execute Slow work\n${entries(60)}\nuntil ${go}\ntool-done slow at last\nsay the end`);
  await expect(answers.getByText('entry 59.')).toBeInViewport();
  // The page loads only the last entries.
  await page.reload();
  await expect(answers.getByText('entry 59.')).toBeInViewport();
  writeFileSync(go, '');
  await expect(ends).toHaveCount(1);
  const rows = frame.locator('.row');
  await expect(rows.nth(-2)).toHaveText(/the end/);
  await expect(calls.filter({ hasText: 'Slow work' })).toHaveCount(0);
  await expect(async () => {
    await scroller.press('Home');
    await expect(calls.first()).toContainText('Slow work', { timeout: 500 });
  }).toPass();
  await expect(calls.first()).toContainText('done');
  await expect(calls.filter({ hasText: 'Slow work' })).toHaveCount(1);
});

test('a permission request far above is announced and shown on click', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await frame.getByRole('combobox', { name: 'Permissions' }).selectOption('ask');
  await send(`tool t execute Remove target\n${entries(60)}\npermission t Remove target`);
  const bar = frame.locator('.asked-bar');
  const question = frame.getByRole('region', { name: 'Claude Code asks' });
  await expect(bar).toContainText('Claude Code needs your answer: Remove target');
  await page.reload();
  await expect(bar).toContainText('Claude Code needs your answer: Remove target');
  await expect(question).toHaveCount(0);
  await bar.getByRole('button', { name: 'Show' }).click();
  await expect(question).toBeInViewport();
  await expect(bar).toBeHidden();
  await question.getByRole('button', { name: 'Yes' }).click();
  await expect(question).toHaveCount(0);
});

test('TC-3.6b, TC-3.6c: scrolling up stops following, and the button resumes it', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const { latest, scroller } = parts(frame);
  const [go, more] = [`${liminal.home}/go`, `${liminal.home}/more`];
  const later = `until ${go}\n${entries(3, 'later')}\nsay the last so far`;
  const latestOfAll = `until ${more}\n${entries(30, 'more')}\nsay the very last`;
  await send(`${entries(40)}\n${later}\ntool w read Wait\n${latestOfAll}\nhang`);
  await expect(frame.getByText('entry 39.', { exact: true })).toBeInViewport();
  await scroller.hover();
  await page.mouse.wheel(0, -900);
  await expect(latest).toBeVisible();
  const reading = frame.locator('.row-assistant').filter({ visible: true });
  const where = () =>
    reading.evaluateAll((all) => {
      const seen = all.find((one) => one.getBoundingClientRect().top > 60);
      return seen && [seen.textContent, Math.round(seen.getBoundingClientRect().top)];
    });
  await expect.poll(async () => (await where())?.[0]).toBeTruthy();
  const before = await where();
  writeFileSync(go, '');
  await expect(latest).toContainText(/\d+ new/);
  expect(await where()).toEqual(before);
  await expect(frame.getByText('the last so far', { exact: true })).not.toBeInViewport();
  await latest.click();
  await expect(frame.getByText('the last so far', { exact: true })).toBeInViewport();
  await expect(latest).toBeHidden();
  await expect.poll(() => left(frame)).toBeLessThan(2);
  // New text is followed again.
  writeFileSync(more, '');
  await expect(frame.getByText('the very last', { exact: true })).toBeInViewport();
  await expect(frame.getByText('the last so far', { exact: true })).not.toBeInViewport();
  await expect(latest).toBeHidden();
  await expect.poll(() => left(frame)).toBeLessThan(2);
});

test('a long conversation keeps a window of entries and loads earlier ones', async ({ page, liminal }) => {
  const first = await openSession(page, liminal);
  await first.send('say the very first');
  await expect(parts(first.frame).ends).toHaveCount(1);
  await first.send(entries(300));
  await expect(parts(first.frame).ends.last()).toContainText(/ s$/);
  await expect(first.frame.locator('.row').first()).toBeAttached();
  expect(await first.frame.locator('.row').count()).toBeLessThanOrEqual(100);

  // After opening again the page has only the end, and loads the rest when the user scrolls up.
  const { frame } = await openSession(page, liminal);
  const { scroller } = parts(frame);
  await expect(frame.getByText('entry 299.', { exact: true })).toBeInViewport();
  await expect(async () => {
    await scroller.press('Home');
    await expect(frame.locator('.said').getByText('say the very first')).toBeInViewport({ timeout: 500 });
  }).toPass();
  expect(await frame.locator('.row').count()).toBeLessThanOrEqual(100);
  await scroller.press('End');
  await expect(frame.getByText('entry 299.', { exact: true })).toBeInViewport();
});

test('the page holds only as many long answers as the view has room for', async ({ page, liminal }) => {
  const first = await openSession(page, liminal);
  for (let turn = 1; turn <= 8; turn += 1) {
    await first.send('prose 500 20 100000');
    await expect(parts(first.frame).ends.last()).toContainText(/ s$/);
    await expect(parts(first.frame).working).toBeHidden();
  }

  const { frame } = await openSession(page, liminal);
  const { answers, ends, scroller } = parts(frame);
  await expect(ends.last()).toBeInViewport();
  expect(await answers.count()).toBeLessThanOrEqual(2);
  // The heights of the entries above were estimated; scrolling there corrects them.
  await scroller.press('Home');
  await expect(parts(frame).said.first()).toBeInViewport();
  const before = await topLine(frame);
  await scroller.evaluate(async () => {
    for (let frames = 0; frames < 20; frames += 1) await new Promise(requestAnimationFrame);
  });
  expect(await topLine(frame)).toEqual(before);
  await scroller.press('End');
  await expect(ends.last()).toBeInViewport();
});

test('a long text of small height leaves no gap above it', async ({ page, liminal }) => {
  const first = await openSession(page, liminal);
  await first.send(entries(40));
  await expect(parts(first.frame).ends).toHaveCount(1);
  const text = `\`\`\`\n${'wide '.repeat(4000)}\n\`\`\``;
  const chunk = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
  await first.send(`update ${JSON.stringify(chunk)}`);
  await expect(parts(first.frame).answers.last()).toContainText('wide wide');
  await expect(parts(first.frame).working).toBeHidden();

  const { frame } = await openSession(page, liminal);
  const { ends, scroller } = parts(frame);
  await expect(ends.last()).toBeInViewport();
  const hole = await scroller.evaluate((one) => {
    const row = one.querySelector('.row');
    return (row?.getBoundingClientRect().top ?? Infinity) - one.getBoundingClientRect().top;
  });
  expect(hole).toBeLessThanOrEqual(0);
});
