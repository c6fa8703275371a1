// One agent from the real npm registry, installed with the picker's button and started without a restart of the server.
import { spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import { addProject, enter, tabsOf } from '../support/workspace.js';

const asked = spawnSync('npm', ['view', '@agentclientprotocol/codex-acp', 'version', '--fetch-retries=0']);

test('Codex is installed from npm in the picker and needs a sign-in', async ({ page, liminal }) => {
  test.skip(asked.status !== 0, 'the npm registry does not answer');
  test.setTimeout(300_000);
  await liminal.stop();
  // The test has its own home; npm reaches its registry as this machine is configured.
  const network = Object.entries(process.env).filter(([name]) => /cert|proxy|^npm_config/i.test(name));
  const config = { NPM_CONFIG_USERCONFIG: join(homedir(), '.npmrc'), CODEX_ACP_CMD: '' };
  liminal.env = /** @type {Record<string, string>} */ ({ ...Object.fromEntries(network), ...config });
  await liminal.start();
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await page.getByRole('button', { name: 'New session in app' }).click();
  await page.getByRole('menuitem', { name: 'Codex' }).click();
  const launch = page.getByRole('region', { name: 'New session' });
  await launch.getByRole('button', { name: 'Install', exact: true }).click();
  await expect(launch.getByRole('log')).toContainText('codex-acp', { timeout: 60_000 });
  const signIn = page.getByRole('heading', { name: 'Codex wants you to sign in first' });
  await expect(signIn.or(tabsOf(page).first())).toBeVisible({ timeout: 240_000 });
  await expect(signIn).toBeVisible();
});
