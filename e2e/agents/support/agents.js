/**
 * The real agents with a stand-in model, in a new home for each test.
 *
 * @typedef {object} Agent
 * @property {'claude-code' | 'codex'} cliType
 * @property {'Claude Code' | 'Codex'} name
 * @property {string} testCase  the feature spec's id for a whole turn
 * @property {string} adapter  its start command
 * @property {string} askingMode  the mode in which it asks before it changes anything
 * @property {string} quietMode  the mode in which it does not ask
 * @property {{ value: string, named: string }} otherModel  the option to select, and the model name the provider then receives
 * @property {Command} command
 * @property {RegExp} cutSign  its message when the provider closes the connection
 *
 * @typedef {object} Command  a slash command
 * @property {string} name
 * @property {string} words  its arguments
 * @property {string} answer
 * @property {(folder: string) => void} prepare
 *
 * @typedef {object} Said  the model's response to one request
 * @property {string} prompt
 * @property {string} text
 * @property {string} model  the model name in the request
 * @property {boolean} aside  whether the request is not part of the conversation (a title, a suggestion)
 *
 * @typedef {object} Model
 * @property {string} url
 * @property {() => Promise<Said[]>} said
 * @property {() => void} stop
 *
 * @typedef {import('../../support/liminal.js').Liminal} Liminal
 */

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test as base, startServer } from '../../support/liminal.js';

const FOLDER = join(process.env.AGENTS ?? '', 'node_modules');
const MODEL = process.env.MODEL ?? new URL('../../../target/debug/stand-in-model', import.meta.url).pathname;

/** @param {string} name */
const adapter = (name) => `${FOLDER}/node/bin/node ${FOLDER}/.bin/${name}`;

/** @type {Agent} */
export const CLAUDE = {
  cliType: 'claude-code',
  name: 'Claude Code',
  testCase: 'TC-2.2d',
  adapter: adapter('claude-agent-acp'),
  askingMode: 'default',
  quietMode: 'acceptEdits',
  otherModel: { value: 'sonnet', named: 'sonnet' },
  command: {
    name: 'parrot',
    words: 'Hello from the command.',
    answer: 'Hello from the command.',
    prepare: (folder) => {
      mkdirSync(join(folder, '.claude', 'commands'), { recursive: true });
      const text = '---\ndescription: Says it again\n---\nsay $ARGUMENTS\n';
      writeFileSync(join(folder, '.claude', 'commands', 'parrot.md'), text);
    },
  },
  cutSign: /Connection to the API was lost/,
};

/** @type {Agent} */
export const CODEX = {
  cliType: 'codex',
  name: 'Codex',
  testCase: 'TC-2.2e',
  adapter: adapter('codex-acp'),
  askingMode: 'read-only',
  quietMode: 'agent-full-access',
  otherModel: { value: 'gpt-6-luna', named: 'gpt-6-luna' },
  // The adapter itself answers.
  command: { name: 'status', words: '', answer: 'Model: gpt-5.5', prepare: () => {} },
  cutSign: /stream disconnected/,
};

/**
 * Writes the agents' configuration into the home and returns their environment.
 * @param {string} home @param {string} url  of the model
 * @returns {Record<string, string>}
 */
export function settings(home, url) {
  mkdirSync(join(home, '.codex'), { recursive: true });
  const codex = [
    'model = "gpt-5.5"',
    'model_provider = "stand-in"',
    '[model_providers.stand-in]',
    'name = "Stand-in"',
    `base_url = "${url}/v1"`,
    'wire_api = "responses"',
    'env_key = "STAND_IN_KEY"',
    // Errors are tested, not retries.
    'request_max_retries = 0',
    'stream_max_retries = 0',
  ];
  writeFileSync(join(home, '.codex', 'config.toml'), `${codex.join('\n')}\n`);
  return {
    CLAUDE_ACP_CMD: CLAUDE.adapter,
    CODEX_ACP_CMD: CODEX.adapter,
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: 'sk-stand-in',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    CLAUDE_CODE_MAX_RETRIES: '0',
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: '1',
    STAND_IN_KEY: 'x',
    NO_BROWSER: '1',
  };
}

/** The environment of an adapter that another client starts in the same home. @param {Liminal} liminal */
export function outside(liminal) {
  return { HOME: liminal.home, PATH: process.env.PATH, ...liminal.env };
}

/** @returns {Promise<Model>} */
export async function startModel() {
  const child = spawn(MODEL, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout);
  /** @type {string} */
  const url = await new Promise((resolve, reject) => {
    lines.once('line', resolve);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the stand-in model ended with ${code}`)));
  });
  return {
    url,
    said: async () => /** @type {Promise<Said[]>} */ ((await fetch(`${url}/said`)).json()),
    stop: () => void child.kill(),
  };
}

/** @type {import('@playwright/test').Fixtures<{ model: Model }, {}, { liminal: Liminal }>} */
const fixtures = {
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixtures it needs from this pattern
  model: async ({}, use) => {
    const model = await startModel();
    await use(model);
    model.stop();
  },
};

export const test = base.extend(fixtures).extend({
  liminal: async ({ model }, use) => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), 'liminal-agents-')));
    const server = await startServer(home, settings(home, model.url));
    await use(server);
    await server.stop();
    // An agent that is ending may still write.
    rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  },
});
