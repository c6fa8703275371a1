/**
 * Fault tests: after any failure of windows and servers, a window shows what the transcript contains.
 * `cargo xtask test fire` runs their long form.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import { addProject, begin, enter, newSession, send, sessionPage, sessionRows, tabsOf } from '../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */
/** @typedef {import('../support/liminal.js').Liminal} Liminal */

/**
 * Repetitions in the short form, which runs on every change, and in the long form.
 * @param {number} short
 * @param {number} long
 */
const times = (short, long) => (process.env.LIMINAL_FIRE === 'long' ? long : short);

/**
 * A script that says numbered words, one every `pause` milliseconds.
 * @param {number} count
 * @param {string} word
 * @param {number} pause
 */
const words = (count, word, pause = 10) =>
  Array.from({ length: count }, (_, at) => `say ${word}${at} \nsleep ${pause}`).join('\n');

/** The entries of every transcript, by session and entry id, once no turn runs. @param {Liminal} liminal */
async function transcripts(liminal) {
  const folder = join(liminal.home, '.liminal-builder', 'sessions');
  await expect.poll(() => readdirSync(folder).filter((name) => name.includes('.live.'))).toEqual([]);
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  return files.map((name) => {
    const lines = readFileSync(join(folder, name), 'utf8').trim().split('\n');
    const entries = lines.map((line) => JSON.parse(line).entry).filter(Boolean);
    return new Map(entries.map((entry) => [entry.entryId, inWords(entry)]));
  });
}

/** An entry as a window shows it: its type and its text. @param {{ type: string, content?: string }} entry */
const inWords = ({ type, content }) => `${type}: ${content?.replaceAll(/\s+/g, ' ').trim() ?? ''}`;

/**
 * The entries that the session in view shows, by id and in order.
 * @param {Page} page
 * @returns {Promise<Map<string, string>>}
 */
async function shown(page) {
  const rows = await sessionPage(page)
    .locator('[data-entry-id]')
    .evaluateAll((all) =>
      all.map((row) => {
        const type = ['user', 'assistant', 'turn'].find((one) => row.matches(`.row-${one}`)) ?? 'another';
        // A long user message may be collapsed; its text is in the page all the same.
        const words = row.querySelector('.prose, .said .plain')?.textContent ?? '';
        return { id: row.getAttribute('data-entry-id') ?? '', type, words };
      }),
    );
  return new Map(rows.map(({ id, type, words }) => [id, inWords({ type, content: words })]));
}

/**
 * Expects the rows in view to equal the end of the transcript.
 * @param {Page} page
 * @param {Map<string, string>} transcript
 */
async function showsTheTranscript(page, transcript) {
  const rows = [...(await shown(page))];
  expect(rows.length).toBeGreaterThan(0);
  const all = [...transcript];
  const first = all.findIndex(([id]) => id === rows[0][0]);
  expect(rows).toEqual(all.slice(first));
}

/** The agent's last answer that contains the text. @param {Page} page @param {string} text */
const answer = (page, text) => sessionPage(page).locator('.row-assistant').filter({ hasText: text }).last();

/** @param {Page} page */
const ends = (page) => sessionPage(page).locator('.row-turn');

/** Opens a new session in a new project. @param {Page} page @param {Liminal} liminal */
async function work(page, liminal) {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await newSession(page, 'app');
}

test('a window reloaded in mid-stream shows what the transcript says', async ({ page, liminal }) => {
  const refreshes = times(5, 1000);
  const count = times(200, 600);
  test.setTimeout(60_000 + refreshes * 4_000);
  await work(page, liminal);
  let turn = 0;
  let done = 0;
  let cut = 0;
  while (done < refreshes) {
    turn++;
    await begin(page, words(count, `t${turn}w`));
    await expect(answer(page, `t${turn}w0`)).toBeVisible();
    while (done < refreshes && (await ends(page).count()) < turn) {
      await page.reload();
      done++;
      await expect(answer(page, `t${turn}w0`)).toBeVisible();
      if ((await ends(page).count()) < turn) cut++;
    }
    await expect(answer(page, `t${turn}w${count - 1}`)).toBeVisible({ timeout: 60_000 });
    await expect(ends(page).last()).toBeVisible();
    const [transcript] = await transcripts(liminal);
    await showsTheTranscript(page, transcript);
  }
  // At least this many reloads happened while text was streaming.
  expect(cut).toBeGreaterThan(refreshes / 4);
});

test('twenty windows on one session show the same entries', async ({ page, context, liminal }) => {
  test.setTimeout(180_000);
  await work(page, liminal);
  await send(page, 'say first', 'first');
  const windows = [page];
  while (windows.length < times(5, 20)) {
    const other = await context.newPage();
    await enter(other, liminal);
    await sessionRows(other).first().click();
    await expect(answer(other, 'first')).toBeVisible();
    windows.push(other);
  }
  await begin(page, words(200, 'w', 5));
  for (const window of windows) {
    await window.bringToFront();
    await expect(answer(window, 'w199')).toBeVisible({ timeout: 60_000 });
  }
  const [transcript] = await transcripts(liminal);
  for (const window of windows) await showsTheTranscript(window, transcript);
});

test('after kill -9 of the server each of many tabs resumes its session', async ({ page, liminal }) => {
  test.setTimeout(240_000);
  const tabs = times(4, 30);
  await work(page, liminal);
  for (let at = 0; at < tabs; at++) {
    if (at > 0) await newSession(page, 'app');
    await send(page, `say tab ${at} is here`, `tab ${at} is here`);
  }
  // In the last tab, text is streaming when the server is killed.
  await begin(page, `${words(20, 'w', 5)}\nhang`);
  await expect(answer(page, 'w19')).toBeVisible();
  await liminal.kill();
  await expect(page.locator('#connection')).not.toContainText('Server connected');
  await liminal.start();
  await expect(page.locator('#connection')).toContainText('Server connected');
  await expect(tabsOf(page)).toHaveCount(tabs);
  await expect(answer(page, 'w19')).toBeVisible();
  await expect(ends(page).filter({ hasText: /interrupted|ended before/i })).toHaveCount(1);
  for (let at = 0; at < tabs; at++) {
    await tabsOf(page).nth(at).click();
    await expect(answer(page, `tab ${at} is here`)).toBeVisible();
    await begin(page, `say tab ${at} goes on`);
    await expect(answer(page, `tab ${at} goes on`)).toBeVisible();
  }
  const all = (await transcripts(liminal)).flatMap((one) => [...one.values()]);
  const on = all.filter((text) => /^assistant: tab \d+ goes on$/.test(text));
  expect(on.length).toBe(tabs);
});

test('a window and a server that were suspended resume where they were', async ({ page, liminal }) => {
  test.setTimeout(times(60_000, 240_000));
  await work(page, liminal);
  const devtools = await page.context().newCDPSession(page);
  await begin(page, words(times(150, 1500), 'w', 10));
  await expect(answer(page, 'w5')).toBeVisible();
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
  await expect.poll(() => liminal.agentLog().some((line) => line.startsWith('session/prompt'))).toBe(true);
  liminal.pause();
  // The window and the server are suspended, so there is no event to wait for.
  await new Promise((resolve) => setTimeout(resolve, times(1000, 30_000)));
  liminal.resume();
  await devtools.send('Page.setWebLifecycleState', { state: 'active' });
  await expect(answer(page, `w${times(150, 1500) - 1}`)).toBeVisible({ timeout: 50_000 });
  await expect(ends(page)).toHaveCount(1);
  const [transcript] = await transcripts(liminal);
  await showsTheTranscript(page, transcript);
});
