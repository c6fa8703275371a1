/**
 * Shows the same 1,000 entries as ready HTML from `crates/render` and through marked, DOMPurify and highlight.js in the
 * page, alternately. Prints as JSON the milliseconds on the server and of the page's only thread, and for an answer
 * that grows to 50 KB the cost of one more chunk if the page renders all of it again. `RENDER` names the example of
 * `crates/render` that does the server's part, the argument the number of runs.
 */

import { execFileSync } from 'node:child_process';
import { chromium } from '@playwright/test';
import { LAUNCH } from '../support/browser.js';

const example = process.env.RENDER ?? '';
const runs = Number(process.argv[2] ?? 5);
/** @param {string} what @returns {any} */
const outputOf = (what) => JSON.parse(execFileSync(example, [what], { encoding: 'utf8', maxBuffer: 1 << 30 }));

const entries = outputOf('entries');
const ready = outputOf('html');
/** @type {Record<string, number[]>} */
const result = { render: [], insert: [], script: [], growing_first: [], growing_last: [] };
for (const { first, last } of outputOf('growing')) {
  result.growing_first.push(first);
  result.growing_last.push(last);
}

const browser = await chromium.launch(LAUNCH);
const page = await browser.newPage();
const packages = new URL('../../node_modules/', import.meta.url).pathname;
for (const path of ['marked/lib/marked.umd.js', 'dompurify/dist/purify.js', '@highlightjs/cdn-assets/highlight.js']) {
  await page.addScriptTag({ path: packages + path });
}
await page.evaluate(prepare, { entries, ready });
for (let run = 0; run < runs; run += 1) {
  result.render.push(outputOf('pass'));
  result.insert.push(await page.evaluate(() => /** @type {any} */ (window).insert()));
  result.script.push(await page.evaluate(() => /** @type {any} */ (window).script()));
}
const again = await page.evaluate(() => /** @type {any} */ (window).again());
result.again_last = [again.last];
await browser.close();
process.stdout.write(JSON.stringify(result));

/** Runs in the page. @param {{ entries: string[], ready: string[] }} texts */
function prepare({ entries, ready }) {
  const window_ = /** @type {any} */ (window);
  const { marked, DOMPurify, hljs } = window_;
  marked.use({
    gfm: true,
    renderer: {
      code({ text = '', lang = '' }) {
        const known = hljs.getLanguage(lang);
        const code = known ? hljs.highlight(text, { language: lang }).value : text.replaceAll('<', '&lt;');
        return `<pre><code>${code}</code></pre>`;
      },
    },
  });
  /** @param {string} text @returns {string} */
  const render = (text) => DOMPurify.sanitize(marked.parse(text));
  /** @param {string[]} texts @param {(text: string) => string} html */
  const timed = (texts, html) => {
    const place = document.createElement('main');
    document.body.append(place);
    const start = performance.now();
    for (const text of texts) {
      const template = document.createElement('template');
      template.innerHTML = html(text);
      const element = document.createElement('div');
      element.append(template.content);
      place.append(element);
    }
    const took = performance.now() - start;
    place.remove();
    return took;
  };
  window_.insert = () => timed(ready, (html) => html);
  window_.script = () => timed(entries, render);
  window_.again = () => {
    const answer = entries.slice(0, 60).join('');
    const pieces = 20;
    /** @param {number} from */
    const median = (from) => {
      const times = [];
      for (let at = 0; at < pieces; at += 1) {
        const text = answer.slice(0, (answer.length * (from + at / pieces / 10)) | 0);
        times.push(timed([text], render) * 1000);
      }
      return times.sort((one, other) => one - other)[pieces >> 1];
    };
    return { first: median(0), last: median(0.9) };
  };
}
