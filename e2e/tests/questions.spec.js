import { expect, test } from '../support/liminal.js';
import { openSession } from '../support/session.js';
import { newSession, sessionPage, sessionRow, tab, violations } from '../support/workspace.js';

/** @typedef {import('@playwright/test').FrameLocator} FrameLocator */

const SCHEMA = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name', description: 'As on the door.', minLength: 2, pattern: '^[A-Z]' },
    mail: { type: 'string', title: 'Mail', format: 'email', maxLength: 80 },
    count: { type: 'integer', title: 'How many', minimum: 1, maximum: 9, default: 3 },
    agree: { type: 'boolean', title: 'I agree', default: true },
    colour: {
      type: 'string',
      title: 'Colour',
      oneOf: [
        { const: 'r', title: 'Red', description: 'like a rose' },
        { const: 'b', title: 'Blue' },
      ],
    },
    city: { type: 'string', title: 'City', enum: ['Ulm', 'Ham', 'Rom', 'Ayr', 'Bex', 'Pau', 'Ely', 'Lod'] },
    days: {
      type: 'array',
      title: 'Days',
      items: {
        anyOf: [
          { const: 'mon', title: 'Monday' },
          { const: 'tue', title: 'Tuesday' },
        ],
      },
      minItems: 1,
    },
  },
  required: ['name', 'colour'],
};

/** @param {string} message @param {object} schema */
const form = (message, schema) =>
  `ask elicitation/create ${JSON.stringify({ mode: 'form', message, requestedSchema: schema })}`;

/** @param {FrameLocator} frame @param {RegExp} name */
const formOf = (frame, name) => frame.getByRole('form', { name });

test('a form in the chat is validated, answered by keyboard and collapsed', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await send(form('Who are you?', SCHEMA));
  const asked = formOf(frame, /Who are you\?/);
  await expect(asked).toBeVisible();
  await expect(sessionRow(page, 'ask elicitation').locator('.state-mark')).toHaveAttribute('data-mark', 'waiting');
  expect(await violations(page)).toEqual([]);

  // Nothing is filled in: the first required field is reported and focused.
  await asked.getByRole('button', { name: 'Submit' }).click();
  const name = asked.getByLabel('Your name');
  await expect(name).toBeFocused();
  await expect(name).toHaveAttribute('aria-invalid', 'true');
  await expect(name).toHaveAccessibleDescription(/As on the door\. This field is required\./);
  await expect(asked.getByRole('radiogroup', { name: 'Colour' })).toContainText('Choose an answer.');
  expect(await violations(page)).toEqual([]);

  await page.keyboard.type('ada1');
  await expect(name).toHaveAttribute('aria-invalid', 'false');
  await asked.getByLabel('Mail').fill('no address');
  await asked.getByLabel('How many').fill('12');
  await page.keyboard.press('Enter');
  await expect(asked.getByLabel('Mail')).toHaveAccessibleDescription('Enter an e-mail address.');
  await expect(asked.getByLabel('How many')).toHaveAccessibleDescription(/at most 9/);
  await asked.getByLabel('Mail').fill('ada@example.com');
  await asked.getByLabel('How many').fill('4');
  await asked.getByRole('radio', { name: 'Red like a rose' }).focus();
  await page.keyboard.press('ArrowDown');
  await expect(asked.getByRole('radio', { name: 'Blue' })).toBeChecked();
  await asked.getByLabel('City').selectOption('Rom');
  await asked.getByRole('checkbox', { name: 'Tuesday' }).check();
  await asked.getByRole('checkbox', { name: 'I agree' }).uncheck();
  // Only the server checks the pattern; its error is shown at the field all the same.
  await asked.getByRole('button', { name: 'Submit' }).click();
  await expect(name).toHaveAccessibleDescription(/“Your name” does not have the form the agent asks for\./);
  await expect(name).toBeFocused();
  await name.fill('Ada');
  await page.keyboard.press('Enter');

  await expect(frame.locator('.row-assistant')).toContainText('"action":"accept"');
  const answered = frame.locator('.answered');
  await expect(answered.locator('summary')).toContainText('Who are you?');
  await expect(answered.locator('summary')).toContainText('answered');
  await expect(asked).toHaveCount(0);
  await answered.locator('summary').click();
  await expect(answered.locator('dl')).toHaveText(
    /Your name\s*Ada\s*Mail\s*ada@example.com\s*How many\s*4\s*I agree\s*No\s*Colour\s*Blue\s*City\s*Rom\s*Days\s*Tuesday/,
  );
  expect(await violations(page)).toEqual([]);
});

test('a partly filled form survives agent output, a tab switch and Escape', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const schema = { type: 'object', properties: { note: { type: 'string', title: 'Note' } } };
  const aside = `ask-on elicitation/create ${JSON.stringify({ mode: 'form', message: 'A note?', requestedSchema: schema })}`;
  await send(`${aside}\nsleep 800\nsay meanwhile\nhang`);
  const note = formOf(frame, /A note\?/).getByLabel('Note');
  await note.fill('first 1 line');
  await expect(frame.locator('.row-assistant')).toContainText('meanwhile');
  await expect(note).toBeFocused();
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('second');
  await page.keyboard.press('Escape');
  await expect(frame.getByRole('textbox', { name: 'Message', exact: true })).toBeFocused();
  await expect(frame.getByRole('button', { name: 'Stop' })).toBeVisible();
  await newSession(page, 'app');
  await tab(page, 'ask-on').getByRole('tab').click();
  await expect(note).toHaveValue('first 1 line\nsecond');
  await note.press('Enter');
  await expect(frame.locator('.answered summary')).toContainText('answered');
});

test("a form survives a reload, one window's answer closes it in the other", async ({ page, context, liminal }) => {
  const { send } = await openSession(page, liminal);
  await send(form('Which?', { type: 'object', properties: { it: { type: 'string', enum: ['this', 'that'] } } }));
  await page.reload();
  const here = formOf(sessionPage(page), /Which\?/);
  await expect(here.getByRole('radio', { name: 'that' })).toBeVisible();
  const second = await context.newPage();
  await second.goto(liminal.origin);
  const there = sessionPage(second);
  await formOf(there, /Which\?/)
    .getByRole('radio', { name: 'that' })
    .check();
  await formOf(there, /Which\?/)
    .getByRole('button', { name: 'Submit' })
    .click();
  await expect(there.locator('.answered summary')).toContainText('that');
  await expect(sessionPage(page).locator('.answered summary')).toContainText('that');
  await expect(here).toHaveCount(0);
});

test('a form of a session out of view is listed and leads to its session', async ({ page, liminal }) => {
  const { send } = await openSession(page, liminal);
  await send(`sleep 300\n${form('Which way?', { type: 'object', properties: { it: { type: 'string' } } })}`);
  await newSession(page, 'app');
  await page.getByRole('button', { name: 'Inbox: 1 waiting' }).click();
  const list = page.getByRole('dialog', { name: 'Inbox' });
  await expect(list.getByText('Which way?')).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await list.getByRole('button', { name: 'Answer in the session' }).click();
  const asked = formOf(sessionPage(page), /Which way\?/);
  await expect(asked).toBeVisible();
  await asked.getByRole('button', { name: 'Decline' }).click();
  await expect(sessionPage(page).locator('.answered summary')).toContainText('declined');
});

test('a stopped turn removes its form, a dead agent leaves it interrupted', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const schema = { type: 'object', properties: { it: { type: 'boolean' } } };
  await send(form('Shall I?', schema));
  await expect(formOf(frame, /Shall I\?/)).toBeVisible();
  await frame.getByRole('button', { name: 'Stop' }).click();
  await expect(frame.locator('.answered summary')).toContainText('cancelled');
  await send(`${form('And now?', schema).replace('ask ', 'ask-on ')}\nsleep 300\ncrash 1`);
  await expect(frame.locator('.answered summary').last()).toContainText('interrupted');
  await expect(frame.locator('div.question')).toHaveCount(0);
});

test('a URL elicitation shows its whole address and opens only by a click', async ({ page, context, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const url = `${liminal.origin}/health?${'x'.repeat(120)}`;
  const link = { mode: 'url', message: 'Sign in there', url, elicitationId: 'v1' };
  const done = { jsonrpc: '2.0', method: 'elicitation/complete', params: { elicitationId: 'v1' } };
  await send(`ask elicitation/create ${JSON.stringify(link)}\nsleep 500\nraw ${JSON.stringify(done)}`);
  const asked = formOf(frame, /Sign in there/);
  await expect(asked.getByRole('link')).toHaveText(url);
  await expect(asked).toContainText(new URL(url).host);
  expect(await violations(page)).toEqual([]);
  expect(context.pages()).toHaveLength(1);
  const opened = context.waitForEvent('page');
  await asked.getByRole('link').click();
  expect((await opened).url()).toBe(url);
  await asked.getByRole('button', { name: 'Accept' }).click();
  await expect(frame.locator('.answered summary')).toContainText('accepted');
  await expect(frame.locator('.answered summary')).toContainText('finished');
});
