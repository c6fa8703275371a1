import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import { openSession } from '../support/session.js';
import { violations } from '../support/workspace.js';

/** @typedef {import('@playwright/test').FrameLocator} FrameLocator */
/** @typedef {import('@playwright/test').Page} Page */

/** @param {FrameLocator} frame */
const message = (frame) => frame.getByRole('textbox', { name: 'Message', exact: true });
/** @param {FrameLocator} frame */
const offered = (frame) => frame.getByRole('listbox', { name: 'Files' }).getByRole('option');

/** @param {string} folder @param {string[]} files */
function write(folder, files) {
  for (const file of files) {
    mkdirSync(join(folder, file, '..'), { recursive: true });
    writeFileSync(join(folder, file), '');
  }
}

/**
 * Holds back the server's messages of one type until the test releases them.
 * @param {Page} page
 * @param {string} type
 */
async function holdBack(page, type) {
  /** @type {(() => void)[]} */
  let kept = [];
  let holds = false;
  await page.routeWebSocket(/\/ws\b/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((text) => {
      const isMeant = typeof text === 'string' && text.includes(`"type":"${type}"`);
      if (holds && isMeant) kept.push(() => socket.send(text));
      else socket.send(text);
    });
  });
  return {
    hold: () => {
      holds = true;
    },
    held: () => kept.length,
    pass: () => {
      holds = false;
      for (const send of kept) send();
      kept = [];
    },
  };
}

test('@ suggests files of the project, chosen by keyboard and by mouse', async ({ page, liminal }) => {
  const folder = liminal.folder('app');
  write(folder, ['src/main.rs', 'src/domain.rs', 'docs/my notes.md', 'built/main.js', '.env']);
  writeFileSync(join(folder, '.gitignore'), 'built/\n');
  const { frame } = await openSession(page, liminal);
  const input = message(frame);

  await input.pressSequentially('look at @main');
  await expect(offered(frame)).toHaveText(['src/main.rs', 'src/domain.rs']);
  await expect(input).toHaveAttribute('aria-activedescendant', 'completion-0');
  expect(await violations(page)).toEqual([]);
  await input.press('ArrowDown');
  await input.press('Enter');
  await expect(input).toHaveValue('look at @src/domain.rs ');
  await expect(offered(frame)).toHaveCount(0);

  await input.pressSequentially('and @note');
  await expect(offered(frame)).toHaveText(['docs/my notes.md']);
  await offered(frame).click();
  await expect(input).toHaveValue('look at @src/domain.rs and @"docs/my notes.md" ');
  await expect(input).toBeFocused();
});

test('file suggestions inside a text close on Escape, reopen on typing', async ({ page, liminal }) => {
  write(liminal.folder('app'), ['alpha.txt', 'beta.txt']);
  const { frame } = await openSession(page, liminal);
  const input = message(frame);
  await input.fill('compare  with the other');
  await input.evaluate((/** @type {HTMLTextAreaElement} */ field) => field.setSelectionRange(8, 8));
  await input.pressSequentially('@a');
  await expect(offered(frame)).toHaveText(['alpha.txt', 'beta.txt']);
  await input.press('Escape');
  await expect(offered(frame)).toHaveCount(0);
  await input.pressSequentially('l');
  await expect(offered(frame)).toHaveText(['alpha.txt']);
  await input.press('Tab');
  await expect(input).toHaveValue('compare @alpha.txt  with the other');
  await input.pressSequentially('me@alpha');
  await expect(offered(frame)).toHaveCount(0);
});

test('Enter inserts a matching file, and sends the message if none matches', async ({ page, liminal }) => {
  write(liminal.folder('app'), ['alpha.txt', 'albatross.txt']);
  const answers = await holdBack(page, 'project:files');
  const { frame } = await openSession(page, liminal);
  const input = message(frame);
  await input.pressSequentially('see @a');
  await expect(offered(frame)).toHaveCount(2);
  const first = await offered(frame).first().textContent();
  const other = first === 'alpha.txt' ? 'albatross.txt' : 'alpha.txt';

  answers.hold();
  await input.pressSequentially(other.slice(1, 3));
  await input.press('Enter');
  await expect.poll(answers.held).toBe(2);
  await expect(input).toHaveValue(`see @${other.slice(0, 3)}`);
  answers.pass();
  await expect(input).toHaveValue(`see @${other} `);

  await input.pressSequentially('@a');
  await expect(offered(frame)).toHaveCount(2);
  answers.hold();
  await input.pressSequentially('zzz');
  await input.press('Enter');
  await expect.poll(answers.held).toBe(3);
  answers.pass();
  await expect(frame.locator('.row-user')).toContainText(`see @${other} @azzz`);
  await expect(input).toHaveValue('');
});

/** A picture of one colour. @param {number} [bytes]  its minimum size */
function png(bytes = 0) {
  const pixel = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  return Buffer.concat([pixel, Buffer.alloc(Math.max(0, bytes - pixel.length))]);
}

test('pictures are attached, previewed and delivered to the agent', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const attached = frame.getByRole('list', { name: 'Pictures to send' }).locator('img');
  const picker = frame.locator('input[type=file]');
  await expect(frame.getByRole('button', { name: /Add pictures \(PNG.*10 MB each, 10 at most/ })).toBeVisible();
  await picker.setInputFiles([
    { name: 'one.png', mimeType: 'image/png', buffer: png() },
    { name: 'two.png', mimeType: 'image/png', buffer: png() },
  ]);
  await expect(attached).toHaveCount(2);
  await expect.poll(() => attached.first().evaluate((one) => /** @type {any} */ (one).naturalWidth)).toBe(1);
  expect(await violations(page)).toEqual([]);
  await frame.getByRole('button', { name: 'Remove two.png' }).click();
  await expect(attached).toHaveCount(1);
  await send('blocks');
  await expect(attached).toHaveCount(0);
  await expect(frame.locator('.row-assistant')).toContainText('image');
  const sent = frame.locator('.row-user img');
  await expect.poll(() => sent.evaluate((one) => /** @type {any} */ (one).naturalWidth)).toBe(1);
  expect(await violations(page)).toEqual([]);
});

for (const way of ['paste', 'drop']) {
  test(`a picture can be added by ${way}; a large or invalid one is refused`, async ({ page, liminal }) => {
    const { frame } = await openSession(page, liminal);
    const input = message(frame);
    /** @param {string} name @param {string} type @param {number} size */
    const give = (name, type, size) =>
      input.evaluate(
        (field, [how, fileName, fileType, pixel, bytes]) => {
          const data = new DataTransfer();
          const start = Uint8Array.from(atob(String(pixel)), (one) => one.charCodeAt(0));
          const rest = new Uint8Array(Math.max(0, Number(bytes) - start.length));
          data.items.add(new File([start, rest], String(fileName), { type: String(fileType) }));
          const event =
            how === 'paste'
              ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
              : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
          field.dispatchEvent(event);
        },
        [way, name, type, png().toString('base64'), size],
      );
    const attached = frame.getByRole('list', { name: 'Pictures to send' }).locator('img');
    await give('one.png', 'image/png', 0);
    await expect(attached).toHaveCount(1);
    await expect(frame.getByRole('button', { name: 'Send', exact: true })).toBeEnabled();
    await give('huge.png', 'image/png', 10 * 1024 * 1024 + 1);
    await expect(frame.getByRole('alert').filter({ hasText: '10 MB' })).toBeVisible();
    await give('notes.txt', 'text/plain', 0);
    await expect(frame.getByRole('alert').filter({ hasText: 'PNG' })).toBeVisible();
    await expect(attached).toHaveCount(1);
  });
}

test('messages and code are copied to the clipboard', async ({ page, liminal, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const { frame, send } = await openSession(page, liminal);
  const text = 'Run **this**:\n\n```sh\nls -l\n```\n';
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
  await send(`update ${JSON.stringify(update)}`);
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const answer = frame.locator('.row-assistant');
  await answer.locator('figure').getByRole('button', { name: 'Copy' }).click();
  await expect.poll(copied).toBe('ls -l\n');
  await answer.hover();
  await answer.getByRole('button', { name: /Copy (the )?(answer|message)/ }).click();
  await expect.poll(copied).toBe(text);
});

test('an entry that is no longer in the page is found, shown and marked', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  await send('say The needle is here.');
  await expect(frame.locator('.row-turn')).toHaveCount(1);
  // More entries than a page loads initially, so that the oldest ones must be requested.
  const many = Array.from({ length: 150 }, (_, at) => `say hay ${at}.\ntool t${at} read Read ${at}`);
  await send(many.join('\n'));
  const last = frame.locator('.row-assistant').getByText('hay 149.');
  await expect(last).toBeInViewport();
  await page.reload();
  await expect(last).toBeInViewport();
  const needle = frame.locator('#conversation').getByText('The needle is here.');
  await expect(needle).toHaveCount(0);

  await message(frame).press('Control+f');
  const field = frame.getByRole('searchbox', { name: 'Find in the conversation' });
  await expect(field).toBeFocused();
  await field.fill('NEEDLE IS');
  await expect(needle.last()).toBeInViewport();
  await expect(frame.locator('.find-count')).toHaveText('2 of 2');
  const marked = () =>
    frame.locator('body').evaluate(() => [...(CSS.highlights.get('found') ?? [])].map((range) => String(range)));
  await expect.poll(marked).toEqual(['needle is']);
  await field.press('Enter');
  await expect(frame.locator('.find-count')).toHaveText('1 of 2');
  await field.fill('no such words');
  await expect(frame.locator('.find-count')).toHaveText('Nothing found');
  await field.press('Escape');
  await expect(field).toBeHidden();
  await expect(message(frame)).toBeFocused();
});

test('find steps through matches within an entry and on to the next', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const text = Array.from({ length: 40 }, (_, at) => `${at % 4 ? 'hay' : 'a needle'} in line ${at}`).join('\n\n');
  await send(`update ${JSON.stringify({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })}`);
  await expect(frame.locator('.row-turn')).toHaveCount(1);
  await message(frame).press('Control+f');
  const field = frame.getByRole('searchbox', { name: 'Find in the conversation' });
  const count = frame.locator('.find-count');
  const here = () =>
    frame.locator('body').evaluate(() => {
      const [range] = /** @type {Range[]} */ ([...(CSS.highlights.get('found-here') ?? [])]);
      const place = document.querySelector('#scroller')?.getBoundingClientRect();
      const { top = 0, bottom = 0 } = range?.getBoundingClientRect() ?? {};
      const inView = Boolean(place && top >= place.top && bottom <= place.bottom);
      return [range?.startContainer.textContent, inView];
    });
  // Ten matches in the user's message, ten in the answer.
  await field.fill('needle');
  await expect(count).toHaveText('20 of 20');
  await expect.poll(here).toEqual(['a needle in line 36', true]);
  await field.press('Shift+Enter');
  await expect(count).toHaveText('19 of 20');
  await expect.poll(here).toEqual(['a needle in line 32', true]);
  for (let at = 0; at < 8; at += 1) await field.press('Shift+Enter');
  await expect(count).toHaveText('11 of 20');
  await expect.poll(here).toEqual(['a needle in line 0', true]);
  await field.press('Shift+Enter');
  await expect(count).toHaveText('10 of 20');
  await field.press('Enter');
  await expect(count).toHaveText('11 of 20');
  await expect.poll(here).toEqual(['a needle in line 0', true]);
});

test('a message sent before the session has loaded is sent once it has', async ({ page, liminal }) => {
  const answers = await holdBack(page, 'session:history');
  const { frame } = await openSession(page, liminal);
  await message(frame).fill('say first');
  await message(frame).press('Enter');
  await expect(frame.locator('[data-entry-id]').filter({ hasText: 'first' }).last()).toBeVisible();
  answers.hold();
  await page.reload();
  await expect.poll(answers.held).toBe(1);
  await message(frame).fill('say second');
  await message(frame).press('Enter');
  await expect(message(frame)).toHaveValue('say second');
  answers.pass();
  await expect(message(frame)).toHaveValue('');
  await expect(frame.getByText('say second', { exact: true })).toHaveCount(1);
  await expect(frame.getByText('second', { exact: true })).toHaveCount(1);
});
