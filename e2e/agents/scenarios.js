/**
 * Tests that every real agent must pass. The prompts say what the model does, and what a turn shows is compared with
 * what the model said.
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '../support/liminal.js';
import { addProject, enter, newSession, sessionPage, sessionRows } from '../support/workspace.js';
import { startAdapter } from './support/acp.js';
import { outside, test } from './support/agents.js';
import { expectAnswered, expectEnded, saidTo, shownAnswers } from './support/answers.js';
import { adapters } from './support/processes.js';
import { connect, entriesOf } from './support/socket.js';

/**
 * @typedef {import('@playwright/test').Page} Page
 * @typedef {import('../support/liminal.js').Liminal} Liminal
 * @typedef {import('./support/agents.js').Agent} Agent
 * @typedef {import('./support/agents.js').Model} Model
 */

const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** Opens a first session with the agent. @param {Page} page @param {Liminal} liminal @param {Agent} agent */
export async function open(page, liminal, agent) {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await newSession(page, 'app', agent.name);
  return sessionPage(page);
}

/** Types a prompt and sends it once Send is enabled. @param {Page} page @param {string} prompt */
export async function say(page, prompt) {
  const frame = sessionPage(page);
  const input = frame.getByRole('textbox', { name: 'Message', exact: true });
  await input.fill(prompt);
  await expect(frame.getByRole('button', { name: 'Send', exact: true })).toBeEnabled();
  await input.press('Enter');
  await expect(frame.locator('.row-user').last()).toContainText(prompt);
}

/**
 * Runs a whole turn and compares its answer with the model's.
 * @param {Page} page
 * @param {Model} model
 * @param {string} prompt
 */
async function turn(page, model, prompt) {
  await say(page, prompt);
  await expectAnswered(page, model, prompt);
}

/**
 * Selects a value in one of the lists below the input.
 * @param {Page} page
 * @param {string} name
 * @param {string} value
 */
async function choose(page, name, value) {
  const list = sessionPage(page).getByRole('combobox', { name, exact: true });
  await list.selectOption(value);
  await expect(list).toBeEnabled();
  await expect(list).toHaveValue(value);
}

/** @param {Agent} agent */
export function scenarios(agent) {
  test(`${agent.testCase}: a new session of ${agent.name} streams markdown`, async ({ page, liminal, model }) => {
    const frame = await open(page, liminal, agent);
    await say(page, 'slow 40');
    // The answer grows before the turn ends.
    await expect(frame.locator('.row-assistant')).toContainText('word3 ');
    await expect(frame.getByRole('button', { name: 'Stop' })).toBeVisible();
    await expectAnswered(page, model, 'slow 40');
    await turn(page, model, 'markdown');
    const answer = frame.locator('.row-assistant').last();
    await expect(answer.getByRole('heading', { name: 'A plan' })).toBeVisible();
    await expect(answer.locator('figure.code')).toContainText('<b>not bold</b> &amp; not an ampersand');
    await expect(answer.getByRole('cell', { name: 'done' })).toBeVisible();
  });

  test(`${agent.testCase}: a thought has its own row, and the next turn knows it`, async ({ page, liminal, model }) => {
    const frame = await open(page, liminal, agent);
    await turn(page, model, 'think The tests come first.');
    const thinking = frame.locator('.row-thinking');
    await thinking.locator('summary').click();
    await expect(thinking.locator('.prose')).toHaveText('The tests come first.');
    await turn(page, model, 'recall');
    expect((await shownAnswers(page)).join()).toContain('think The tests come first. / I have thought about it.');
  });

  test(`${agent.testCase}: a command shows its output, and an edit its diff`, async ({ page, liminal, model }) => {
    const file = join(liminal.folder('app'), 'notes.txt');
    writeFileSync(file, 'one\ntwo\nthree\n');
    const frame = await open(page, liminal, agent);
    await turn(page, model, 'run echo printed by the tool');
    const tools = frame.locator('.tool-place');
    await expect(tools).toHaveCount(1);
    await expect(tools).toContainText('echo printed by the tool');
    await tools.locator('summary').first().click();
    await expect(tools.locator('.terminal')).toHaveText(/^printed by the tool\s*$/);
    expect(await shownAnswers(page)).toEqual(['Let me do that.', 'The tool answered: printed by the tool']);

    await turn(page, model, 'edit notes.txt two => 2');
    expect(readFileSync(file, 'utf8')).toBe('one\n2\nthree\n');
    const edit = tools.last();
    await edit.locator('summary').first().click();
    await expect(edit.locator('figcaption')).toHaveText(/^notes\.txt\s*\+1−1$/);
    await expect(edit.locator('.diff-line.removed')).toContainText('two');
    await expect(edit.locator('.diff-line.added')).toContainText('2');
  });

  test('under policy "ask" a command waits, runs if allowed, does not if refused', async ({ page, liminal, model }) => {
    liminal.env.LIMINAL_PERMISSIONS = 'ask';
    await liminal.stop();
    await liminal.start();
    const frame = await open(page, liminal, agent);
    await choose(page, 'Mode', agent.askingMode);
    const question = frame.getByRole('region', { name: `${agent.name} asks` });
    const made = (/** @type {string} */ name) => existsSync(join(liminal.home, 'app', name));

    await say(page, 'ask touch allowed.txt');
    await expect(question).toContainText('touch allowed.txt');
    expect(made('allowed.txt')).toBe(false);
    await question.locator('button.allows').first().click();
    await expectAnswered(page, model, 'ask touch allowed.txt');
    expect(made('allowed.txt')).toBe(true);

    await say(page, 'ask touch refused.txt');
    await expect(question).toContainText('touch refused.txt');
    await question.locator('button[data-option]:not(.allows)').first().click();
    await expect(question).toHaveCount(0);
    await expectAnswered(page, model, 'ask touch refused.txt');
    expect(made('refused.txt')).toBe(false);
    await turn(page, model, 'say And on it goes.');
  });

  test('a turn stopped during a permission request leaves nothing running', async ({ page, liminal, model }) => {
    liminal.env.LIMINAL_PERMISSIONS = 'ask';
    await liminal.stop();
    await liminal.start();
    const frame = await open(page, liminal, agent);
    await choose(page, 'Mode', agent.askingMode);
    await say(page, 'ask touch never.txt');
    const question = frame.getByRole('region', { name: `${agent.name} asks` });
    await expect(question).toBeVisible();
    await frame.getByRole('button', { name: 'Stop' }).click();
    await expectEnded(page);
    await expect(frame.locator('.turn-end')).toHaveAttribute('data-outcome', 'cancelled');
    await expect(question).toHaveCount(0);
    await expect(frame.locator('.tool-state.running')).toHaveCount(0);
    expect(existsSync(join(liminal.home, 'app', 'never.txt'))).toBe(false);
    await turn(page, model, 'say And on it goes.');
  });

  test('under policy "allow" a permission request is granted at once', async ({ page, liminal, model }) => {
    const frame = await open(page, liminal, agent);
    await choose(page, 'Mode', agent.askingMode);
    await turn(page, model, 'ask touch allowed.txt');
    expect(existsSync(join(liminal.home, 'app', 'allowed.txt'))).toBe(true);
    await expect(frame.getByRole('region', { name: `${agent.name} asks` })).toHaveCount(0);
    const audit = readFileSync(join(liminal.home, '.liminal-builder', 'audit.jsonl'), 'utf8');
    expect(audit).toContain('touch allowed.txt');
  });

  test('a stopped turn keeps its text, and the next turn works', async ({ page, liminal, model }) => {
    const frame = await open(page, liminal, agent);
    await say(page, 'slow 2000');
    await expect(frame.locator('.row-assistant')).toContainText('word5 ');
    await frame.getByRole('button', { name: 'Stop' }).click();
    await expectEnded(page);
    await expect(frame.locator('.turn-end')).toHaveAttribute('data-outcome', 'cancelled');
    const [shown] = await shownAnswers(page);
    const [said] = await saidTo(model, 'slow 2000');
    expect(said).toContain(shown);
    expect(shown).toContain('word1 word2 word3 word4 word5');
    expect(said).not.toContain('word2000');
    await turn(page, model, 'say And on it goes.');
  });

  test('the agent uses the selected model and mode', async ({ page, liminal, model }) => {
    liminal.env.LIMINAL_PERMISSIONS = 'ask';
    await liminal.stop();
    await liminal.start();
    const frame = await open(page, liminal, agent);
    await choose(page, 'Model', agent.otherModel.value);
    await turn(page, model, 'say Which one am I?');
    const { model: used } = (await model.said()).filter(({ aside }) => !aside)[0];
    expect(used).toContain(agent.otherModel.named);

    await choose(page, 'Mode', agent.askingMode);
    await say(page, 'write asked.txt one');
    const question = frame.getByRole('region', { name: `${agent.name} asks` });
    await question.locator('button.allows').first().click();
    await expectAnswered(page, model, 'write asked.txt one');
    await choose(page, 'Mode', agent.quietMode);
    await turn(page, model, 'write unasked.txt two');
    expect(readFileSync(join(liminal.home, 'app', 'unasked.txt'), 'utf8')).toBe('two\n');

    // A new agent process, which does not know the selection.
    await liminal.kill();
    await liminal.start();
    await turn(page, model, 'say And now?');
    await expect(frame.getByLabel('Mode', { exact: true })).toHaveValue(agent.quietMode);
    const { model: then } = (await model.said()).filter(({ aside }) => !aside).at(-1) ?? {};
    expect(then).toContain(agent.otherModel.named);
  });

  test('a picture reaches the model', async ({ page, liminal, model }) => {
    const frame = await open(page, liminal, agent);
    const picture = { name: 'one.png', mimeType: 'image/png', buffer: PIXEL };
    await frame.locator('input[type=file]').setInputFiles([picture]);
    await expect(frame.getByRole('list', { name: 'Pictures to send' }).locator('img')).toHaveCount(1);
    await expect(frame.getByRole('button', { name: 'Send', exact: true })).toBeEnabled();
    await turn(page, model, 'look');
    expect(await shownAnswers(page)).toEqual(['I see 1 picture(s).']);
  });

  test('a slash command is suggested and executed', async ({ page, liminal, model }) => {
    const { command } = agent;
    command.prepare(liminal.folder('app'));
    const frame = await open(page, liminal, agent);
    const input = frame.getByRole('textbox', { name: 'Message', exact: true });
    await input.pressSequentially(`/${command.name.slice(0, -1)}`);
    await expect(frame.getByRole('option').first()).toContainText(`/${command.name}`);
    await input.press('Enter');
    await expect(input).toHaveValue(`/${command.name} `);
    await input.pressSequentially(command.words);
    await input.press('Enter');
    await expectEnded(page);
    expect((await shownAnswers(page)).join('\n')).toContain(command.answer);
    await turn(page, model, 'say And on it goes.');
  });

  test('an adapter killed in mid-turn is restarted with the conversation', async ({ page, liminal, model }) => {
    const frame = await open(page, liminal, agent);
    await turn(page, model, 'say Remember the milk.');
    const before = adapters(agent.adapter, liminal.home);
    expect(before.length).toBe(1);
    await say(page, 'slow 2000');
    await expect(frame.locator('.row-assistant').last()).toContainText('word5 ');
    process.kill(before[0], 'SIGKILL');
    await expectEnded(page);
    const end = frame.locator('.turn-end').last();
    await expect(end).toHaveAttribute('data-outcome', 'interrupted');
    await expect(end).toContainText(`Connection to ${agent.name} lost (ended by signal 9).`);
    const [said] = await saidTo(model, 'slow 2000');
    const [shown] = await shownAnswers(page);
    expect(said).toContain(shown);
    expect(shown).toContain('word5');

    await expect(page.locator(`.agent-line[data-agent="${agent.cliType}"]`)).toHaveAttribute(
      'data-status',
      'connected',
    );
    await turn(page, model, 'recall');
    expect((await shownAnswers(page)).join()).toContain('say Remember the milk. / Remember the milk.');
    const after = adapters(agent.adapter, liminal.home);
    expect(after.length).toBe(1);
    expect(after).not.toEqual(before);
  });

  test('after kill -9 of the server the conversation is complete and continues', async ({ page, liminal, model }) => {
    await open(page, liminal, agent);
    await turn(page, model, 'markdown');
    await turn(page, model, 'run echo printed by the tool');
    const [answers, entries] = [await shownAnswers(page), await entriesOf(liminal)];
    await liminal.kill();
    await liminal.start();
    await enter(page, liminal);
    expect(await entriesOf(liminal)).toEqual(entries);
    await expect.poll(() => shownAnswers(page)).toEqual(answers);
    await turn(page, model, 'recall');
    expect((await shownAnswers(page)).join()).toContain('run echo printed by the tool');
    expect((await entriesOf(liminal)).slice(0, entries.length)).toEqual(entries);
    await expect.poll(() => adapters(agent.adapter, liminal.home).length).toBe(1);
  });

  test('turns made in another client appear when the session is opened again', async ({ page, liminal, model }) => {
    await open(page, liminal, agent);
    await turn(page, model, 'say Said inside.');
    await liminal.stop();
    const folder = join(liminal.home, 'app');
    const adapter = await startAdapter(agent.adapter, outside(liminal), folder);
    const { sessions } = await adapter.call('session/list', { cwd: folder });
    expect(sessions.length).toBe(1);
    const { sessionId } = sessions[0];
    await adapter.call('session/load', { sessionId, cwd: folder, mcpServers: [] });
    // The server ignores turns that the agent dates within a few seconds of its own last turn, so the test waits
    // longer.
    for (const text of ['slow 140', 'say Said outside.']) {
      await adapter.call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
    }
    await adapter.stop();

    await liminal.start();
    await enter(page, liminal);
    await sessionRows(page).first().click();
    const said = sessionPage(page).locator('.row-user, .row-assistant');
    const inside = [/say Said inside\.$/, /Said inside\.$/];
    await expect(said).toHaveText([...inside, /slow 140$/, /word140\s*$/, /say Said outside\.$/, /Said outside\.$/]);
    await turn(page, model, 'recall');
    expect((await shownAnswers(page)).join()).toContain('say Said outside. / Said outside.');
  });

  test('ten sessions run at once on one adapter, each with its own answer', async ({ liminal, model }) => {
    const socket = await connect(liminal);
    const { project } = await socket.request({ type: 'project:add', path: liminal.folder('app') });
    const wish = { type: 'session:create', projectId: project.id, cliType: agent.cliType };
    const made = await Promise.all(Array.from({ length: 10 }, () => socket.request(wish)));
    expect(adapters(agent.adapter, liminal.home).length).toBe(1);
    const numbered = made.map(({ sessionId }, at) => ({ sessionId, content: `I am number ${at}.\nmeet 10` }));
    await Promise.all(numbered.map(({ sessionId }) => socket.request({ type: 'session:open', sessionId })));
    // The model answers no session before all sessions have sent their prompt.
    await Promise.all(numbered.map((one) => socket.request({ type: 'session:send', ...one })));
    for (const { sessionId, content } of numbered) {
      const ended = (/** @type {any} */ message) => message.sessionId === sessionId && message.entry?.type === 'turn';
      expect((await socket.first(ended)).entry.outcome).toBe('ended');
      const { entries } = await socket.request({ type: 'session:open', sessionId });
      const answers = entries.filter((/** @type {any} */ { type }) => type === 'assistant');
      const said = answers.map((/** @type {any} */ entry) => entry.content);
      expect(said).toEqual([`We are 10. You said: ${content}`]);
      expect(await saidTo(model, content)).toEqual(said);
    }
    socket.close();
  });

  test('a provider error and a cut stream are shown, and the session continues', async ({ page, liminal, model }) => {
    const frame = await open(page, liminal, agent);
    for (const [prompt, sign] of /** @type {const} */ ([
      ['refuse 429', /429/],
      ['refuse 400', /told the stand-in model to refuse/],
      ['cut', agent.cutSign],
    ])) {
      await say(page, prompt);
      await expectEnded(page);
      await expect(frame.locator('.turn-end').last()).toHaveAttribute('data-outcome', 'failed');
      expect((await shownAnswers(page)).join('\n')).toMatch(sign);
    }
    // The text before the cut keeps its row, apart from the error.
    expect((await shownAnswers(page))[0]).toBe('This sentence will not be');
    await turn(page, model, 'say And on it goes.');
  });
}
