// Agents that are not installed yet: found in the list, installed, started without a restart of the server. The
// installers are scripts on the PATH; each installs the scripted agent.
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/liminal.js';
import { addProject, enter, ready, tabsOf, violations } from '../support/workspace.js';

/**
 * @typedef {import('@playwright/test').Page} Page
 * @typedef {import('../support/liminal.js').Liminal} Liminal
 */

/** @param {string} path @param {string} script */
function program(path, script) {
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

/**
 * A machine with only these programs, and without Claude Code and Codex.
 * @param {Liminal} liminal
 * @param {Record<string, string>} programs
 */
async function machine(liminal, programs) {
  await liminal.stop();
  const bin = join(liminal.home, 'bin');
  mkdirSync(bin, { recursive: true });
  for (const [name, script] of Object.entries(programs)) program(join(bin, name), script);
  // The tools that the scripts themselves need, from a folder without Node and npm.
  const tools = join(liminal.home, 'tools');
  mkdirSync(tools, { recursive: true });
  for (const tool of ['sh', 'mkdir', 'cat', 'chmod', 'sleep', 'cp', 'dirname', 'env']) {
    const from = ['/bin', '/usr/bin'].map((folder) => join(folder, tool)).find(existsSync);
    program(join(tools, tool), `exec ${from} "$@"`);
  }
  liminal.env = { PATH: `${bin}:${tools}`, CLAUDE_ACP_CMD: '', CODEX_ACP_CMD: '' };
  await liminal.start();
}

/** An npm that installs the scripted agent under the requested package's name. @param {Liminal} liminal */
const npm = ({ agent }) => `
while [ "$1" != -- ]; do [ "$1" = --prefix ] && dir="$2"; shift; done
name="\${2%@*}"
echo "npm http fetch GET 200 $2"
mkdir -p "$dir/node_modules/.bin" "$dir/node_modules/$name"
echo '{"version": "9.9.9", "bin": "x.js", "engines": {"node": ">=30"}}' > "$dir/node_modules/$name/package.json"
echo "#!/bin/sh
exec ${agent}" > "$dir/node_modules/.bin/\${name##*/}"
chmod 755 "$dir/node_modules/.bin/\${name##*/}"
echo "added 1 package"`;

/** @param {Page} page @param {Liminal} liminal */
async function openPicker(page, liminal) {
  await enter(page, liminal);
  await addProject(page, liminal.folder('app'));
  await page.getByRole('button', { name: 'New session in app' }).click();
}

/** @param {Page} page @param {string} name */
async function chooseMore(page, name) {
  await page.getByRole('menuitem', { name: 'More agents…' }).click();
  await page.getByRole('combobox', { name: /More agents/ }).fill(name);
  await page.keyboard.press('Enter');
}

test('the picker lists ready agents first, then known ones, then a search', async ({ page, liminal }) => {
  await machine(liminal, { node: 'echo v18.19.1', npm: npm(liminal) });
  await openPicker(page, liminal);
  const items = page.getByRole('menuitem');
  await expect(items).toHaveText([/^Liminal/, /^Claude Code.*Not installed/, /^Codex.*Not installed/, 'More agents…']);
  expect(await violations(page)).toEqual([]);
  await items.last().click();
  const dialog = page.getByRole('dialog', { name: /More agents/ });
  await expect(dialog.getByRole('option', { name: /Gemini CLI/ })).toBeVisible();
  await dialog.getByRole('combobox').fill('alibaba');
  await expect(dialog.getByRole('option')).toHaveText([/Qwen Code/]);
  expect(await violations(page)).toEqual([]);
});

test('a missing agent is installed from the picker and starts a session', async ({ page, liminal }) => {
  await machine(liminal, {
    node: 'echo v30.1.0',
    npm: `${npm(liminal)}\nwhile [ ! -e ${liminal.home}/go ]; do sleep 0.05; done`,
  });
  await openPicker(page, liminal);
  await chooseMore(page, 'gemini');
  const launch = page.getByRole('region', { name: 'New session' });
  await expect(launch.getByRole('heading')).toHaveText('Gemini CLI is not installed');
  const command = launch.locator('.command-block code');
  await expect(command).toHaveText(/^npm install --prefix \S+\/agents\/gemini .*-- @google\/gemini-cli@[0-9.]+$/);
  await expect(launch.getByRole('button', { name: 'Install', exact: true })).toBeFocused();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Enter');
  await expect(launch.getByRole('status')).toHaveText('Installing Gemini CLI…');
  await expect(launch.getByRole('log')).toContainText('npm http fetch GET 200 @google/gemini-cli');
  expect(await violations(page)).toEqual([]);
  writeFileSync(join(liminal.home, 'go'), '');
  await expect(tabsOf(page)).toHaveCount(1);
  await ready(page);
  // It is a ready agent now, in every window and after a restart.
  await liminal.stop();
  await liminal.start();
  await page.reload();
  await page.getByRole('button', { name: 'New session in app' }).click();
  await expect(page.getByRole('menuitem').nth(1)).toHaveText(/^Gemini CLI/);
});

test('a failed install shows its output, leaves nothing and can be retried', async ({ page, liminal }) => {
  const fail = 'echo "npm error code ENOTFOUND" >&2; echo "npm error network request failed" >&2; exit 1';
  await machine(liminal, { node: 'echo v30.1.0', npm: fail });
  await openPicker(page, liminal);
  await page.getByRole('menuitem', { name: 'Codex' }).click();
  const launch = page.getByRole('region', { name: 'New session' });
  await launch.getByRole('button', { name: 'Install', exact: true }).click();
  await expect(launch.getByRole('heading')).toHaveText('Codex was not installed');
  await expect(launch.getByRole('alert')).toHaveText(/npm ended with code 1\. The network cannot be reached/);
  await expect(launch.locator('.install-output')).toContainText('npm error network request failed');
  expect(existsSync(join(liminal.home, '.liminal-builder/agents/codex'))).toBe(false);
  expect(await violations(page)).toEqual([]);
  program(join(liminal.home, 'bin/npm'), npm(liminal));
  await launch.getByRole('button', { name: 'Try again' }).click();
  await expect(tabsOf(page)).toHaveCount(1);
});

test('a cancelled install ends its processes and is offered again', async ({ page, liminal }) => {
  const hang = `echo begun; echo $$ > ${liminal.home}/pid; sleep 300 & sleep 300`;
  await machine(liminal, { node: 'echo v30.1.0', npm: hang });
  await openPicker(page, liminal);
  await chooseMore(page, 'cline');
  const launch = page.getByRole('region', { name: 'New session' });
  await launch.getByRole('button', { name: 'Install', exact: true }).click();
  await expect(launch.getByRole('log')).toContainText('begun');
  await launch.getByRole('button', { name: 'Cancel' }).click();
  await expect(launch.getByRole('heading')).toHaveText('Cline is not installed');
  expect(existsSync(join(liminal.home, '.liminal-builder/agents/cline'))).toBe(false);
  const pid = readFileSync(join(liminal.home, 'pid'), 'utf8').trim();
  expect(existsSync(`/proc/${pid}`)).toBe(false);
});

test('an outdated Node and a missing npm are each explained', async ({ page, liminal }) => {
  await machine(liminal, { node: 'echo v18.19.1' });
  await openPicker(page, liminal);
  const launch = page.getByRole('region', { name: 'New session' });
  await page.getByRole('menuitem', { name: 'Claude Code' }).click();
  await expect(launch).toContainText('Claude Code needs Node 22 or newer; this machine has 18.19.');
  await expect(launch).toContainText('npm was not found. Install Node.js 22 or newer');
  await expect(launch.getByRole('button', { name: 'Install', exact: true })).toHaveCount(0);
  await page.getByRole('button', { name: 'New session in app' }).click();
  await chooseMore(page, 'fast-agent');
  await expect(launch).toContainText('uv was not found. Install it');
  expect(await violations(page)).toEqual([]);
});

test('an agent that fails to start is marked broken and can be reinstalled', async ({ page, liminal }) => {
  await machine(liminal, { node: 'echo v30.1.0', npm: npm(liminal) });
  program(join(liminal.home, 'bin/codex-acp'), 'echo "line one" >&2; echo "Error: Cannot find module x" >&2; exit 1');
  await openPicker(page, liminal);
  await page.getByRole('menuitem', { name: 'Codex' }).click();
  const launch = page.getByRole('region', { name: 'New session' });
  await expect(launch.getByRole('alert')).toContainText('Could not connect to Codex');
  await expect(launch).toContainText('Cannot find module x');
  await page.getByRole('button', { name: 'New session in app' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'New session in app' }).click();
  await expect(page.getByRole('menuitem', { name: /Codex/ })).toContainText('Failed to start');
  await page.keyboard.press('Escape');
  await launch.getByRole('button', { name: 'Reinstall…' }).click();
  await launch.getByRole('button', { name: 'Install', exact: true }).click();
  await expect(tabsOf(page)).toHaveCount(1);
});

test('a newer list is downloaded on request, and a failed download is shown', async ({ page, liminal }) => {
  const list = join(liminal.home, 'list.json');
  const agent = { id: 'brand-new', name: 'Brand New', version: '1.0.0', description: 'Fresh' };
  const npx = { package: 'brand-new@1.0.0' };
  writeFileSync(list, JSON.stringify({ version: '1.0.0', agents: [{ ...agent, distribution: { npx } }] }));
  await machine(liminal, {
    node: 'echo v30.1.0',
    npm: npm(liminal),
    curl: 'echo "curl: (6) Could not resolve host" >&2; exit 6',
  });
  await openPicker(page, liminal);
  await chooseMore(page, 'refresh');
  await expect(page.locator('#toasts')).toContainText('Could not resolve host');
  program(join(liminal.home, 'bin/curl'), `cat ${list}`);
  await page.getByRole('button', { name: 'New session in app' }).click();
  await chooseMore(page, 'refresh');
  await expect(
    page.getByRole('dialog', { name: /More agents/ }).getByRole('option', { name: /Brand New/ }),
  ).toBeVisible();
  await page.keyboard.type('brand');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Install', exact: true }).click();
  await expect(tabsOf(page)).toHaveCount(1);
  rmSync(list);
});
