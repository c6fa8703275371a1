/** What a turn shows, beside what the model said. */

import { expect } from '@playwright/test';
import { marked } from 'marked';
import { sessionPage } from '../../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** What the model said to a prompt, answer by answer. @param {import('./agents.js').Model} model @param {string} prompt */
export async function saidTo(model, prompt) {
  // An agent may put a prompt that failed before the next one.
  const answers = (await model.said()).filter((one) => !one.aside && one.prompt.trim().endsWith(prompt));
  return answers.map(({ text }) => text).filter(Boolean);
}

/** The answers below the last prompt, as a reader sees them. @param {Page} page @returns {Promise<string[]>} */
export function shownAnswers(page) {
  return sessionPage(page)
    .locator('#conversation')
    .evaluate((conversation) => {
      const rows = [...conversation.querySelectorAll('.row')];
      const last = rows.findLastIndex((row) => row.classList.contains('row-user'));
      return rows
        .slice(last + 1)
        .flatMap((row) => [...row.querySelectorAll('.answer .prose')])
        .map((prose) => {
          const copy = /** @type {Element} */ (prose.cloneNode(true));
          for (const ours of copy.querySelectorAll('figcaption, button')) ours.remove();
          for (const block of copy.querySelectorAll('h1, p, pre, td, th, li')) block.append(' ');
          return (copy.textContent ?? '').replace(/\s+/g, ' ').trim();
        });
    });
}

/**
 * The turn has ended, and what is on the screen is what the model said: no word more or less.
 * @param {Page} page @param {import('./agents.js').Model} model @param {string} prompt
 */
export async function expectAnswered(page, model, prompt) {
  await expectEnded(page);
  await expect.poll(() => shownAnswers(page)).toEqual((await saidTo(model, prompt)).map(asRead));
}

/** Nothing runs in the session in view, and its last row says how the turn ended. @param {Page} page */
export async function expectEnded(page) {
  const frame = sessionPage(page);
  await expect(frame.locator('#conversation .row').last()).toHaveClass(/row-turn/);
  await expect(frame.getByRole('button', { name: 'Stop' })).toBeHidden();
}

/** Markdown as its reader sees it, by another renderer than ours. @param {string} text */
function asRead(text) {
  const html = /** @type {string} */ (marked.parse(text));
  const plain = html.replace(/<[^>]+>/g, '');
  const signs = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };
  const read = plain.replace(/&(lt|gt|quot|#39|amp);/g, (sign) => signs[/** @type {keyof typeof signs} */ (sign)]);
  return read.replace(/\s+/g, ' ').trim();
}
