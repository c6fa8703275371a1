/**
 * Latency and memory of the real agents: prints the table of docs/agents.md.
 *
 * `AGENTS=~/.cache/liminal-builder-tests/agents-… node e2e/agents/measure.js [RUNS]`, after `cargo xtask test agents`.
 * Each run has a new home, server and agent. The numbers depend on the machine; trust their order of magnitude.
 */

import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from '@playwright/test';
import { LAUNCH } from '../support/browser.js';
import { startServer } from '../support/liminal.js';
import { addProject, enter, sessionPage } from '../support/workspace.js';
import { CLAUDE, CODEX, settings, startModel } from './support/agents.js';
import { adapters, treeMemory } from './support/processes.js';

const RUNS = Number(process.argv[2] ?? 5);

/** @typedef {{ ready: number, first: number, again: number, memory: number, warmReady: number, warmFirst: number, opened: number }} Run */

/** @param {import('./support/agents.js').Agent} agent @param {import('@playwright/test').Browser} browser */
async function measure(agent, browser) {
  const model = await startModel();
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'liminal-measure-')));
  const liminal = await startServer(home, settings(home, model.url));
  const page = await browser.newPage();
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  const frame = sessionPage(page);
  const input = frame.getByRole('textbox', { name: 'Message', exact: true });

  /** Times from the click on the agent's name until the input can send, and until the first word of an answer. */
  const session = async () => {
    await page.getByRole('button', { name: 'New session in app', exact: true }).click();
    const tabs = await page.locator('.tab-place').count();
    const clicked = performance.now();
    await page.getByRole('menuitem', { name: agent.name }).click();
    await page.waitForFunction((before) => document.querySelectorAll('.tab-place').length > before, tabs);
    await frame.getByRole('button', { name: 'Send', exact: true }).waitFor();
    await input.fill('say One.');
    await frame.locator('button.primary:enabled').waitFor();
    const ready = performance.now() - clicked;
    await input.press('Enter');
    await frame.locator('.row-assistant').first().waitFor();
    return { ready, first: performance.now() - clicked };
  };
  const { ready, first } = await session();
  const memory = treeMemory(adapters(agent.adapter, home)[0]);
  await page.goto(liminal.origin);
  const again = (await session()).first;

  // The workspace is opened again after a restart, which also starts the agent used last.
  await liminal.stop();
  liminal.env.LIMINAL_WARM_START = 'true';
  await liminal.start();
  const began = performance.now();
  await enter(page, liminal);
  await page.locator(`.agent-line[data-agent="${agent.cliType}"][data-status="connected"]`).waitFor();
  const opened = performance.now() - began;
  const warm = await session();
  await page.close();
  await liminal.stop();
  model.stop();
  rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  return { ready, first, again, memory, warmReady: warm.ready, warmFirst: warm.first, opened };
}

/** @param {number[]} list */
function spread(list) {
  const sorted = list.toSorted((one, other) => one - other);
  const whole = sorted.map((one) => Math.round(one));
  return `${whole[Math.floor(whole.length / 2)]} (${whole[0]}–${whole.at(-1)})`;
}

const browser = await chromium.launch(LAUNCH);
console.log(
  `machine load before: ${readFileSync('/proc/loadavg', 'utf8').trim()}; median of ${RUNS} (lowest–highest)\n`,
);
/** @type {[string, keyof Run][]} */
const COLUMNS = [
  ['cold: click to ready, ms', 'ready'],
  ['cold: click to first token, ms', 'first'],
  ['another session: click to first token, ms', 'again'],
  ['warm: click to ready, ms', 'warmReady'],
  ['warm: click to first token, ms', 'warmFirst'],
  ['workspace opened to agent running, ms', 'opened'],
  ['memory, MiB', 'memory'],
];
console.log(`| | ${COLUMNS.map(([title]) => title).join(' | ')} |`);
console.log(`|---${'|---'.repeat(COLUMNS.length)}|`);
for (const agent of [CLAUDE, CODEX]) {
  /** @type {Run[]} */
  const runs = [];
  for (let run = 0; run < RUNS; run += 1) runs.push(await measure(agent, browser));
  console.log(`| ${agent.name} | ${COLUMNS.map(([, key]) => spread(runs.map((run) => run[key]))).join(' | ')} |`);
}
console.log(`\nmachine load after: ${readFileSync('/proc/loadavg', 'utf8').trim()}`);
await browser.close();
