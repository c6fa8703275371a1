/** Compares what a turn shows with what the model said. */

import { expect } from '@playwright/test';
import { marked } from 'marked';
import { sessionPage } from '../../support/workspace.js';

/** @typedef {import('@playwright/test').Page} Page */

/** The model's answers to a prompt. @param {import('./agents.js').Model} model @param {string} prompt */
export async function saidTo(model, prompt) {
  // An agent may repeat a failed prompt before the next one.
  const answers = (await model.said()).filter((one) => !one.aside && one.prompt.trim().endsWith(prompt));
  return answers.map(({ text }) => text).filter(Boolean);
}

/** The answers below the last prompt, as visible text. @param {Page} page @returns {Promise<string[]>} */
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
 * Waits for the end of the turn and expects exactly the model's text on the screen.
 * @param {Page} page @param {import('./agents.js').Model} model @param {string} prompt
 */
export async function expectAnswered(page, model, prompt) {
  await expectEnded(page);
  await expect.poll(() => shownAnswers(page)).toEqual((await saidTo(model, prompt)).map(asRead));
}

/** Waits until no turn runs in the active session and its last row shows the outcome. @param {Page} page */
export async function expectEnded(page) {
  const frame = sessionPage(page);
  await expect(frame.locator('#conversation .row').last()).toHaveClass(/row-turn/);
  await expect(frame.getByRole('button', { name: 'Stop' })).toBeHidden();
}

/** Markdown as visible text, by a renderer that is not ours. @param {string} text */
function asRead(text) {
  const html = /** @type {string} */ (marked.parse(text));
  const plain = html.replace(/<[^>]+>/g, '');
  const signs = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };
  const read = plain.replace(/&(lt|gt|quot|#39|amp);/g, (sign) => signs[/** @type {keyof typeof signs} */ (sign)]);
  return read.replace(/\s+/g, ' ').trim();
}
