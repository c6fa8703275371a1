import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import { openSession } from '../support/session.js';

/** @typedef {import('@playwright/test').FrameLocator} FrameLocator */

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

test('an at sign offers files of the project, chosen by keyboard and by mouse', async ({ page, liminal }) => {
  const folder = liminal.folder('app');
  write(folder, ['src/main.rs', 'src/domain.rs', 'docs/my notes.md', 'built/main.js', '.env']);
  writeFileSync(join(folder, '.gitignore'), 'built/\n');
  const { frame } = await openSession(page, liminal);
  const input = message(frame);

  await input.pressSequentially('look at @main');
  await expect(offered(frame)).toHaveText(['src/main.rs', 'src/domain.rs']);
  await expect(input).toHaveAttribute('aria-activedescendant', 'completion-0');
  await input.press('ArrowDown');
  await input.press('Enter');
  await expect(input).toHaveValue('look at @src/domain.rs ');
  await expect(offered(frame)).toHaveCount(0);

  await input.pressSequentially('and @note');
  await offered(frame).click();
  await expect(input).toHaveValue('look at @src/domain.rs and @"docs/my notes.md" ');
  await expect(input).toBeFocused();
});

test('files are offered in the middle of a text, sent away with Escape, and come back with the next letter', async ({
  page,
  liminal,
}) => {
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
