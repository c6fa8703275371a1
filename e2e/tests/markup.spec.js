/** No text from an agent runs a script, loads a resource or navigates the page. */

import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { marked } from 'marked';
import { asMessage, attacks } from '../support/attacks.js';
import { expect, test } from '../support/liminal.js';
import { addProvenSocket } from '../support/page-socket.js';
import { openSession } from '../support/session.js';
import { addProject, enter, newSession, send, sessionPage } from '../support/workspace.js';

/** Attacks per message, and bytes per chunk: chunks end at arbitrary places, as those of a model do. */
const IN_MESSAGE = 1000;
const PIECE = 4999;

/** The elements and attributes that rendered text may contain. */
const ELEMENTS =
  'a blockquote br button code del div em figcaption figure h1 h2 h3 h4 h5 h6 hr li ol p pre span strong sup table tbody td th thead tr ul';
const ATTRIBUTES =
  'aria-label class data-column data-language data-line data-note data-path href rel role scope start tabindex target type';

/** Every character that is invisible or could be, and its neighbours. */
const HIDDEN = [
  [0x00, 0x08],
  [0x0b, 0x0c],
  [0x0e, 0x1f],
  [0x7e, 0xa1],
  [0xac, 0xae],
  [0x34e, 0x350],
  [0x61b, 0x61d],
  [0x115e, 0x1161],
  [0x17b3, 0x17b6],
  [0x180a, 0x1810],
  [0x200a, 0x2010],
  [0x2027, 0x2030],
  [0x205f, 0x2070],
  [0x3163, 0x3165],
  [0xfdff, 0xfe10],
  [0xfefe, 0xff00],
  [0xff9f, 0xffa1],
  [0xffef, 0xfffd],
  [0x1bc9f, 0x1bca4],
  [0x1d172, 0x1d17b],
  [0xdffff, 0xe0080],
  [0xe00ff, 0xe0102],
  [0xe0ffe, 0xe1000],
].flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, more) => from + more));

/** Elements that an agent's text must never create. */
const FORBIDDEN =
  'script:not([type=module]), img, image, iframe, object, embed, style, link:not([rel]), form, video, audio, math';

/** Attacks sent into each place other than an answer. */
const SAMPLE = 80;

/** @typedef {import('@playwright/test').Page} Page */

// A trace would store a copy of these large pages for every step.
test.use({ trace: 'off' });
// A limit against hanging only: this many attacks take a while on a busy machine.
test.setTimeout(180_000);

/** A server that records the requests it receives. */
async function startSink() {
  /** @type {string[]} */
  const requests = [];
  const server = createServer((request, response) => {
    if (request.url === '/control') {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>Control</title><body></body>');
      return;
    }
    requests.push(request.url ?? '');
    response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    requests,
    url: `http://127.0.0.1:${port}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Records scripts, navigations, windows and dialogs, which no text may cause. @param {Page} page */
async function watch(page) {
  const seen = {
    scripts: /** @type {unknown[]} */ ([]),
    navigations: /** @type {string[]} */ ([]),
    windows: /** @type {string[]} */ ([]),
    dialogs: /** @type {string[]} */ ([]),
  };
  await page.context().exposeBinding('hit', (_, number) => void seen.scripts.push(number));
  page.context().on('page', (opened) => seen.windows.push(opened.url()));
  page.on('dialog', (dialog) => {
    seen.dialogs.push(dialog.message());
    dialog.dismiss();
  });
  return {
    seen,
    /** From here on, a navigation of the page or of the preloaded one is recorded. */
    settle: async () => {
      const loaded = () => page.frames().filter((frame) => frame.url().includes('/portlet.html')).length;
      await expect.poll(loaded).toBe(2);
      page.on('framenavigated', (frame) => seen.navigations.push(frame.url()));
    },
  };
}

/** Makes links open nothing, and records their targets in `opened`. @param {Page} page */
const recordWindows = (page) =>
  page.addInitScript(() => {
    const window_ = /** @type {any} */ (window);
    window_.opened = [];
    window.open = (...how) => {
      window_.opened.push(how);
      return null;
    };
  });

/** Counts the windows that links would have opened, and expects each to be allowed. @param {Page} page */
async function openedAsAllowed(page) {
  const opened = await page.evaluate(() => /** @type {any} */ (window).opened);
  for (const [href, target, features] of opened) {
    expect(['http:', 'https:', 'mailto:']).toContain(new URL(href).protocol);
    expect([target, features]).toEqual(['_blank', 'noopener,noreferrer']);
  }
  return opened.length;
}

/** @param {string} text @returns {string} commands with which the scripted agent says it in chunks */
function asScript(text) {
  const pieces = text.match(new RegExp(`[^]{1,${PIECE}}`, 'gu')) ?? [];
  const content = pieces.map((piece) => ({ type: 'text', text: piece }));
  return content
    .map((one) => `update ${JSON.stringify({ sessionUpdate: 'agent_message_chunk', content: one })}`)
    .join('\n');
}

test('thousands of attacks run, load and navigate nothing, even when clicked', async ({ page, liminal }) => {
  const sink = await startSink();
  const all = attacks(sink.url);
  expect(all.length).toBeGreaterThan(3500);
  const { seen, settle } = await watch(page);
  await recordWindows(page);
  const { frame, send } = await openSession(page, liminal);
  await settle();

  const turns = [];
  for (let at = 0; at < all.length; at += IN_MESSAGE) turns.push(all.slice(at, at + IN_MESSAGE));
  let links = 0;
  for (const [turn, some] of turns.entries()) {
    await send(asScript(`${asMessage(some)}\n\nEnd of part ${turn}.`));
    const prose = frame
      .locator('[data-entry-id] .prose')
      .filter({ hasText: `End of part ${turn}.` })
      .last();
    await expect(prose).toBeVisible();
    await expect(frame.getByRole('button', { name: 'Stop' })).toBeHidden();
    const found = await prose.evaluate(touchEverything);
    for (const name of found.elements) expect(ELEMENTS.split(' ')).toContain(name);
    for (const name of found.attributes) expect(ATTRIBUTES.split(' ')).toContain(name);
    links += found.links;
    // Also with real mouse clicks, which pass through more of the browser than clicks of a script.
    for (const at of [1, 2, 3])
      await prose
        .locator('a[href]')
        .nth(found.links - at)
        .click();
    expect(seen).toEqual({ scripts: [], navigations: [], windows: [], dialogs: [] });
  }
  expect(links).toBeGreaterThan(500);

  expect(await openedAsAllowed(page)).toBeGreaterThan(links);

  // As history, which is rendered in one piece.
  await page.reload();
  await expect(
    frame
      .locator('.prose')
      .filter({ hasText: `End of part ${turns.length - 1}.` })
      .last(),
  ).toBeVisible();
  expect(seen.scripts).toEqual([]);
  expect(seen.windows).toEqual([]);
  expect(seen.dialogs).toEqual([]);
  expect(sink.requests).toEqual([]);
  sink.stop();
});

for (const button of /** @type {const} */ (['left', 'middle'])) {
  test(`a ${button} click on a link opens one window without an opener`, async ({ page, liminal }) => {
    /** @type {(string | undefined)[]} */
    const referrers = [];
    const server = createServer((request, response) => {
      if (request.url === '/there') referrers.push(request.headers.referer);
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>There</title>');
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
    const address = server.address();
    const href = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/there`;
    await enter(page, liminal);
    await addProject(page, liminal.folder('app'));
    await newSession(page, 'app');
    await send(page, `say See [the page](${href}).`, 'See the page');
    const [opened] = await Promise.all([
      page.context().waitForEvent('page'),
      sessionPage(page).getByRole('link', { name: 'the page' }).click({ button }),
    ]);
    await expect(opened).toHaveTitle('There');
    expect(await opened.evaluate(() => [window.opener, document.referrer])).toEqual([null, '']);
    expect(referrers).toEqual([undefined]);
    expect(page.context().pages()).toHaveLength(2);
    server.closeAllConnections();
    server.close();
  });
}

test('wide content scrolls inside itself on any screen', async ({ page, liminal }) => {
  const { frame, send } = await openSession(page, liminal);
  const wide = Array.from({ length: 14 }, (_, at) => `wide_identifier_${at}`);
  const text = [
    `| ${wide.join(' | ')} |\n|${'---|'.repeat(14)}\n| ${wide.join(' | ')} |`,
    `\`\`\`rust\nlet a = "${'long '.repeat(60)}";\n\`\`\``,
    `\`${'inline'.repeat(60)}\` and src/${'deep/'.repeat(30)}main.rs:12 and $${'x_1 + '.repeat(60)}y$`,
    `https://example.com/${'path/'.repeat(60)} ${'word'.repeat(90)}`,
    '- [x] done\n- [ ] open\n\nA note[^1].\n\n[^1]: What it says.\n\n![a cat](https://example.com/cat.png)',
  ].join('\n\n');
  await send(asScript(text));
  const prose = frame.locator('.prose').filter({ hasText: 'What it says.' }).last();
  await expect(prose.locator('.language')).toHaveText('Rust');
  await expect(prose.getByRole('button', { name: 'Copy' })).toBeVisible();
  await expect(prose.getByRole('img', { name: 'done' })).toBeVisible();
  await expect(prose.locator('.path').last()).toHaveAttribute('data-line', '12');
  await expect(prose.locator('sup.note')).toHaveCSS('border-left-width', '0px');
  for (const width of [1440, 1024, 390]) {
    await page.setViewportSize({ width, height: 900 });
    for (const inside of ['.table', 'pre'])
      expect(await prose.locator(inside).evaluate((one) => one.scrollWidth > one.clientWidth)).toBe(true);
    // Content that is wider than its own scroller would make the text wider than its column. A space at the end of a
    // line may overflow.
    const outside = await prose.evaluate((one) => one.scrollWidth - one.clientWidth);
    expect(outside, `${width} px`).toBeLessThanOrEqual(8);
  }
});

test('tool calls, plans and permission requests are shown as text', async ({ page, liminal }) => {
  liminal.env.LIMINAL_PERMISSIONS = 'ask';
  await liminal.stop();
  await liminal.start();
  const sink = await startSink();
  const { seen, settle } = await watch(page);
  const { frame, send } = await openSession(page, liminal);
  await settle();
  const some = attacks(sink.url)
    .slice(0, 80)
    .map(({ text }) => text.replaceAll(/\s/g, ' '));
  const calls = some.map((title, at) => {
    const call = { sessionUpdate: 'tool_call', toolCallId: `t${at}`, kind: 'edit', status: 'failed', title };
    const content = [{ type: 'content', content: { type: 'text', text: title } }];
    return { ...call, locations: [{ path: `/${title}`, line: 1 }], content };
  });
  const plan = {
    sessionUpdate: 'plan',
    entries: some.map((content) => ({ content, priority: 'low', status: 'pending' })),
  };
  const hidden = HIDDEN.map((number) => `${number.toString(16)}${String.fromCodePoint(number)};`).join('');
  const said = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `\`${hidden}\`` } };
  const updates = [...calls, plan, said].map((update) => `update ${JSON.stringify(update)}`);
  await send([...updates, `permission p ${some[0]} ${hidden}`].join('\n'));
  const question = frame.locator('.question');
  await expect(question).toContainText(some[0]);
  // The requested action is shown unchanged, with visible code points for invisible characters.
  const code = await frame.locator('.prose code').last().innerText();
  expect(code).toMatch(/^0U\+0000;.*202eU\+202E;/);
  await expect(question).toContainText(code);
  await frame.locator('#conversation').evaluate(touchEverything);
  await expect(frame.locator('#conversation').locator(FORBIDDEN)).toHaveCount(0);
  expect(seen).toEqual({ scripts: [], navigations: [], windows: [], dialogs: [] });
  expect(sink.requests).toEqual([]);
  sink.stop();
});

test('thoughts, output, diffs, forms, titles and commands are shown as text', async ({ page, liminal }) => {
  const sink = await startSink();
  const { seen, settle } = await watch(page);
  await recordWindows(page);
  const { frame, send } = await openSession(page, liminal);
  await settle();
  const all = attacks(sink.url);
  // A sample of every kind.
  const some = all.filter((_, at) => at % Math.floor(all.length / SAMPLE) === 0).slice(0, SAMPLE);
  const lines = some.map(({ text }) => text.replaceAll(/\s/g, ' '));
  const updates = (/** @type {object[]} */ list) => list.map((one) => `update ${JSON.stringify(one)}`).join('\n');
  const over = async (/** @type {string} */ word) => {
    const last = frame
      .locator('.prose')
      .filter({ hasText: `End of ${word}.` })
      .last();
    // Clicking an entry keeps the view there, and later entries may be out of the page.
    await expect(async () => {
      await frame.locator('#scroller').press('End');
      await expect(last).toBeVisible({ timeout: 1000 });
    }).toPass({ timeout: 15_000 });
    await expect(frame.getByRole('button', { name: 'Stop' })).toBeHidden();
  };
  const nothing = { scripts: [], navigations: [], windows: [], dialogs: [] };
  const untouched = async () => {
    await frame.locator('#conversation').evaluate(openEverything);
    await frame.locator('#conversation').evaluate(touchEverything);
    await frame.locator('#conversation').evaluate(openEverything);
    await expect(frame.locator('#conversation').locator(FORBIDDEN)).toHaveCount(0);
    expect(seen).toEqual(nothing);
    expect(sink.requests).toEqual([]);
  };

  const thought = { type: 'text', text: asMessage(some) };
  await send(`${updates([{ sessionUpdate: 'agent_thought_chunk', content: thought }])}\nsay End of thoughts.`);
  await over('thoughts');
  await untouched();
  await expect(frame.locator('.thinking .prose')).toContainText(some[0].text.slice(0, 8));

  const output = `${liminal.folder('app')}/said.txt`;
  await writeFile(output, lines.join('\n'));
  await send(`terminal out cat ${output}\nsay End of output.`);
  await over('output');
  await untouched();
  await expect(frame.locator('#conversation')).toContainText(lines[SAMPLE - 1]);

  const changes = lines.map((line, at) => ({
    sessionUpdate: 'tool_call',
    toolCallId: `d${at}`,
    kind: 'edit',
    status: 'completed',
    title: `Edit ${at}`,
    content: [{ type: 'diff', path: `/${line}`, oldText: `${line}\nold`, newText: `${line}\nnew` }],
  }));
  await send(`${updates(changes)}\nsay End of changes.`);
  await over('changes');
  await untouched();
  await expect(frame.locator('#conversation')).toContainText(lines[1]);

  const fields = lines.slice(0, 60).map((line, at) => {
    const words = { title: line, description: lines[(at + 1) % SAMPLE] };
    const option = { const: `o${at}`, title: lines[(at + 2) % SAMPLE], description: lines[(at + 3) % SAMPLE] };
    return [`${at} ${line.slice(0, 40)}`, { type: 'string', ...words, ...(at % 2 ? { oneOf: [option] } : {}) }];
  });
  const schema = { type: 'object', properties: Object.fromEntries(fields) };
  const form = { mode: 'form', message: lines[0], requestedSchema: schema };
  await send(`ask elicitation/create ${JSON.stringify(form)}\nsay End of forms.`);
  const question = frame.locator('div.question');
  await expect(question).toContainText(lines[0]);
  await expect(question).toContainText(lines[2]);
  // Our own forms contain fields; the texts must add no other element.
  await expect(question.locator(FORBIDDEN)).toHaveCount(await question.locator('form.form').count());
  await question.evaluate(touchEverything);
  expect(seen).toEqual(nothing);
  // A click may have answered the form, which takes a moment to show.
  await expect(async () => {
    if (await question.isVisible()) await question.getByRole('button', { name: 'Decline' }).click({ timeout: 1000 });
    await expect(question).toBeHidden({ timeout: 1000 });
  }).toPass({ timeout: 15_000 });
  await over('forms');
  await untouched();

  const commands = lines.map((line, at) => ({ name: `c${at}${line}`, description: line, input: { hint: line } }));
  await send(
    `${updates([{ sessionUpdate: 'available_commands_update', availableCommands: commands }])}\nsay End of commands.`,
  );
  await over('commands');
  const input = frame.getByRole('textbox', { name: 'Message', exact: true });
  await input.pressSequentially('/c');
  const offered = frame.locator('#completions');
  await expect(offered).toContainText(lines[0]);
  await expect(offered.locator(FORBIDDEN)).toHaveCount(0);
  await input.press('Enter');
  await input.fill('');
  expect(seen).toEqual(nothing);

  // An agent's titles are ignored.
  const titles = lines.map((title) => ({ sessionUpdate: 'session_info_update', title }));
  await send(`${updates(titles)}\nsay End of titles.`);
  await over('titles');
  const row = page.locator('.session-row').first();
  await expect(row).toContainText('agent_thought_chunk');
  // A title that the user takes over from an agent is shown in the workspace itself, which has a cookie: in the
  // sidebar, in the tabs and in the window title.
  const id = await row.getAttribute('data-session-id');
  for (const title of lines) {
    await page.evaluate(addProvenSocket);
    expect(await page.evaluate(rename, { id, title })).toBe('session:title-updated');
    await expect(row).toContainText(title.slice(0, 10).trim());
    expect(await page.locator('body').evaluate(forbiddenElements, FORBIDDEN)).toEqual([]);
  }
  await row.hover();
  await untouched();
  expect(await openedAsAllowed(page)).toBeGreaterThan(0);

  // As history, which is rendered in one piece.
  await page.reload();
  await over('titles');
  await frame.locator('#conversation').evaluate(openEverything);
  expect([seen.scripts, seen.windows, seen.dialogs, sink.requests]).toEqual([[], [], [], []]);
  sink.stop();
});

test('CSP and Trusted Types alone stop markup that bypasses the renderer', async ({ browser, liminal }) => {
  const sink = await startSink();
  // A plain page, without the fixture that fails on errors: here the browser has to report some.
  const page = await browser.newPage();
  const { seen, settle } = await watch(page);
  const { frame } = await openSession(page, liminal);
  await settle();
  const refused = await frame.locator('body').evaluate((body, url) => {
    const blocked = new Set();
    /** @type {any} */ (window).blocked = blocked;
    document.addEventListener('securitypolicyviolation', (event) => blocked.add(event.effectiveDirective));
    const attempts = [
      () => {
        body.innerHTML = '<b>x</b>';
      },
      () => body.insertAdjacentHTML('beforeend', '<b>x</b>'),
      () => {
        document.createElement('iframe').srcdoc = '<b>x</b>';
      },
      () => document.createElement('img').setAttribute('onerror', 'hit(1)'),
      () => /** @type {any} */ (globalThis).trustedTypes.createPolicy('liminal-markup', {}),
      () => /** @type {any} */ (globalThis).trustedTypes.createPolicy('another', {}),
    ];
    const thrown = attempts.map((attempt) => {
      try {
        attempt();
        return 'nothing';
      } catch (error) {
        return error instanceof TypeError ? 'refused' : String(error);
      }
    });
    for (const [name, attribute, value] of [
      ['img', 'src', url],
      ['link', 'href', url],
      ['iframe', 'src', url],
      ['video', 'src', url],
    ]) {
      const element = document.createElement(name);
      element.setAttribute(attribute, value);
      if (name === 'link') element.setAttribute('rel', 'stylesheet');
      body.append(element);
    }
    return thrown;
  }, sink.url);
  expect(refused).toEqual(Array(6).fill('refused'));
  const blocked = () => frame.locator('body').evaluate(() => [.../** @type {any} */ (window).blocked].sort());
  await expect
    .poll(blocked)
    .toEqual(['frame-src', 'img-src', 'media-src', 'require-trusted-types-for', 'style-src-elem', 'trusted-types']);
  expect(seen.scripts).toEqual([]);
  expect(seen.windows).toEqual([]);
  expect(sink.requests).toEqual([]);
  await page.close();
  sink.stop();
});

test('a third of the same attacks succeed in a page without protection', async ({ browser }) => {
  const sink = await startSink();
  const all = attacks(sink.url).filter(({ number }) => number % 3 === 0);
  // A plain page, without the fixture that fails on errors: here the attacks succeed.
  const page = await browser.newPage();
  let navigations = 0;
  await page.goto(`${sink.url}/control`);
  page.on('framenavigated', () => {
    navigations += 1;
  });
  page.on('dialog', (dialog) => dialog.dismiss());
  await page.evaluate(
    insertUnsanitized,
    all.map(({ text }) => /** @type {string} */ (marked.parse(text))),
  );
  const fired = () => page.evaluate(() => /** @type {any} */ (window).fired.size);
  await expect.poll(fired).toBeGreaterThan(150);
  await expect.poll(() => new Set(sink.requests).size).toBeGreaterThan(100);
  await page.evaluate(followLinks);
  await expect.poll(() => navigations).toBeGreaterThan(50);
  await page.close();
  sink.stop();
});

/**
 * Runs in the page: another client of the same user renames the session. Returns the type of the response.
 * @param {{ id: string | null, title: string }} what
 */
async function rename({ id, title }) {
  const socket = await /** @type {any} */ (window).provenSocket();
  socket.send(JSON.stringify({ type: 'session:rename', sessionId: id, title, requestId: 'rename' }));
  return new Promise((resolve) => {
    socket.onmessage = (/** @type {MessageEvent} */ { data }) => {
      const answer = JSON.parse(data);
      if (answer.requestId !== 'rename') return;
      socket.close();
      resolve(answer.type);
    };
  });
}

/** Runs in the page: finds forbidden elements in rows and tabs. @param {Element} body @param {string} selector */
function forbiddenElements(body, selector) {
  const shown = [...body.querySelectorAll('.session-row, [role=tab]')];
  return shown.flatMap((one) => [...one.querySelectorAll(selector)].map((found) => found.outerHTML));
}

/** Runs in the page: opens everything that is collapsed, also inside other entries. @param {Element} conversation */
function openEverything(conversation) {
  for (let round = 0; round < 3; round += 1)
    for (const folded of conversation.querySelectorAll('details:not([open])')) folded.querySelector('summary')?.click();
}

/**
 * Runs in the page: hovers, focuses and clicks every element, and returns the elements and attributes.
 * @param {Element} prose
 */
function touchEverything(prose) {
  const elements = new Set();
  const attributes = new Set();
  let links = 0;
  for (const element of prose.querySelectorAll('*')) {
    elements.add(element.localName);
    for (const name of element.getAttributeNames()) attributes.add(name);
    for (const type of ['pointerover', 'mouseover', 'pointerdown', 'mousedown', 'auxclick'])
      element.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true, button: 1 }));
    if (element instanceof HTMLElement) {
      element.focus({ preventScroll: true });
      element.click();
    }
    if (element.localName === 'a') links += 1;
  }
  return { elements: [...elements], attributes: [...attributes], links };
}

/** Runs in the control page: renders attacks in frames and clicks every script link. @param {string[]} all */
function insertUnsanitized(all) {
  const fired = new Set();
  /** @type {any} */ (window).fired = fired;
  for (let at = 0; at < all.length; at += 20) {
    const frame = document.createElement('iframe');
    // Allows everything except navigating the top page, which would end the test at the first attack.
    frame.setAttribute('sandbox', 'allow-scripts allow-same-origin allow-forms');
    document.body.append(frame);
    const inside = frame.contentDocument;
    if (!inside) return;
    /** @type {any} */ (frame.contentWindow).hit = (/** @type {number} */ number) => fired.add(number);
    for (const html of all.slice(at, at + 20)) {
      const range = inside.createRange();
      range.selectNodeContents(inside.body);
      inside.body.append(range.createContextualFragment(html));
    }
    for (const link of inside.querySelectorAll('a')) if (link.protocol === 'javascript:') link.click();
  }
}

/** Runs in the control page: clicks the last link of each frame, which navigates it. */
function followLinks() {
  for (const frame of document.querySelectorAll('iframe')) {
    const links = frame.contentDocument?.querySelectorAll('a[href^=http]') ?? [];
    [...links].at(-1)?.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
  }
}
