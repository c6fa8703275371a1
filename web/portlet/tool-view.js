/** The views of tool calls: one collapsible line per call, and one per group of finished calls. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { diffView, lineCounts } from './diff-view.js';
import { duration, unfenced, within } from './format.js';
import { exact, titled } from './markup.js';
import { mediaView } from './media-view.js';
import { questionView } from './question-view.js';
import { summary as summaryOf } from './rows.js';
import { terminalView } from './terminal-view.js';
import { cappedText, copyButton, disclosure, screenReaderText } from './view-context.js';

/**
 * @typedef {import('./transcript.js').Item} Item
 * @typedef {import('./view-context.js').ViewContext} ViewContext
 * @typedef {Extract<import('../types/wire.js').ChatEntry, { type: 'tool-call' }>} ToolCall
 * @typedef {import('../types/wire.js').ToolContent} ToolContent
 */

const STATES = { running: 'running', complete: 'done', error: 'failed' };
const ASKS = 'needs approval';

/** @param {ViewContext} context @returns {import('./view-context.js').View} */
export function toolView(context) {
  const fold = disclosure(context, 'tool');
  const asked = h('div', { class: 'asked' });
  const element = h('div', { class: 'tool-place' }, fold.element, asked);
  const details = detailsView(context);
  fold.body.append(details.element);
  let questionId = '';

  return {
    element,
    update: (item) => {
      const call = /** @type {ToolCall} */ (item.entry);
      const question = context.transcript.info?.permissions.find(({ toolCallId }) => toolCallId === call.toolCallId);
      fold.element.dataset.status = question ? 'asks' : call.status;
      fold.summary.replaceChildren(...line(call, item, context, Boolean(question)));
      const live = call.status === 'running' && (call.content ?? []).some(({ type }) => type === 'terminal');
      const open = Boolean(question) || call.status === 'error' || live;
      fold.show(`tool-${call.entryId}`, open, () => details.update(item, Boolean(question)));
      if (question?.permissionId !== questionId || !question) {
        const had = asked.contains(document.activeElement);
        asked.replaceChildren(question ? questionView(question, context) : '');
        questionId = question?.permissionId ?? '';
        if (had) context.leave();
      }
    },
  };
}

/** @param {ToolCall} call @param {Item} item @param {ViewContext} context @param {boolean} asks */
function line(call, item, context, asks) {
  const detail = detailOf(call, context);
  const spent = item.began !== null && item.ended !== null ? item.ended - item.began : 0;
  const took = spent >= 1000 ? duration(spent) : '';
  const state = h('span', { class: `tool-state ${call.status}` });
  // Some agents report a call as complete although its command failed.
  const code = call.status === 'complete' ? failedExitCode(call) : undefined;
  if (asks) state.append(icon('question'));
  else if (call.status === 'running') state.append(h('span', { class: 'spinner', 'aria-hidden': 'true' }));
  else state.append(icon(call.status === 'complete' && code === undefined ? 'done' : 'failed'));
  if (code !== undefined) {
    state.classList.add('error');
    state.append(h('span', {}, `exit code ${code}`));
  }
  state.append(
    call.status === 'complete' ? screenReaderText(STATES.complete) : h('span', {}, asks ? ASKS : STATES[call.status]),
  );
  return [
    icon(call.kind, 'kind'),
    h('span', { class: call.name === commandOf(call.rawInput) ? 'tool-name mono' : 'tool-name' }, ...titled(call.name)),
    ...changes(call),
    call.answer ? h('span', { class: 'tool-answer' }, 'You: ', ...exact(call.answer)) : '',
    detail ? h('span', { class: 'tool-detail mono', title: detail }, ...exact(detail)) : '',
    h('span', { class: 'tool-time' }, took),
    state,
    icon('chevron', 'opener'),
  ];
}

/** Total lines added and removed by the call. @param {ToolCall} call */
function changes(call) {
  const counts = (call.content ?? []).flatMap((part) => (part.type === 'diff' ? [lineCounts(part)] : []));
  if (counts.length === 0) return [];
  const sum = (/** @type {'added' | 'removed'} */ which) => counts.reduce((all, one) => all + one[which], 0);
  return [h('span', { class: 'added' }, `+${sum('added')}`), h('span', { class: 'removed' }, `−${sum('removed')}`)];
}

/** The exit code of the first command that failed, if any. @param {ToolCall} call */
function failedExitCode(call) {
  const codes = (call.content ?? []).map((part) => (part.type === 'terminal' ? part.exit?.code : undefined));
  return codes.find((code) => code !== undefined && code !== 0);
}

/** The command or the file of a call; empty if its title contains it. @param {ToolCall} call @param {ViewContext} context */
function detailOf(call, context) {
  const command = commandOf(call.rawInput);
  if (call.kind === 'execute' && command && !call.name.includes(command)) return command;
  const path = call.locations?.[0]?.path ?? firstDiff(call)?.path;
  if (!path) return '';
  const short = within(path, context.projectPath());
  return call.name.includes(short) ? '' : short;
}

/** @param {ToolCall} call */
function firstDiff(call) {
  const found = call.content?.find((part) => part.type === 'diff');
  return found?.type === 'diff' ? found : undefined;
}

/** @param {unknown} input */
function commandOf(input) {
  if (typeof input !== 'object' || input === null || !('command' in input)) return '';
  const { command } = input;
  if (typeof command === 'string') return command;
  return Array.isArray(command) ? command.map(String).join(' ') : '';
}

/** The expanded content of a call. @param {ViewContext} context */
function detailsView(context) {
  const element = h('div', { class: 'tool-insides' });
  /** @type {{ kind: string, element: HTMLElement, update: (part: any, beside: any) => void }[]} */
  let parts = [];
  const rest = h('div', {});
  const command = h('pre', { class: 'output command', tabindex: '0', 'aria-label': 'Command' });
  const end = h('div', { class: 'tool-rest' });

  /** @param {ToolContent} part @param {string} key */
  const make = (part, key) => {
    if (part.type === 'text') {
      const text = cappedText(context, key);
      const update = /** @param {any} now */ (now) => text.update(unfenced(now.text));
      return { kind: 'text', element: text.element, update };
    }
    if (part.type === 'diff') return { kind: 'diff', ...diffView(context) };
    if (part.type === 'terminal') return { kind: `terminal-${part.terminalId}`, ...terminalView(context, key) };
    return { kind: 'media', element: mediaView(part.block, context, key), update: () => {} };
  };
  const kindOf = /** @param {ToolContent} part */ (part) =>
    part.type === 'terminal' ? `terminal-${part.terminalId}` : part.type;

  return {
    element,
    /** @param {Item} item @param {boolean} asks  whether it needs permission; the exact command is then shown */
    update: (item, asks) => {
      const call = /** @type {ToolCall} */ (item.entry);
      const content = shownContent(call);
      const same = parts.length === content.length && content.every((part, at) => kindOf(part) === parts[at].kind);
      if (!same) {
        parts = content.map((part, at) => make(part, `${call.entryId}-${at}`));
        rest.replaceChildren(...parts.map((part) => part.element));
      }
      const coloured = item.diffs.values();
      for (const [at, part] of content.entries()) {
        parts[at].update(part, part.type === 'diff' ? coloured.next().value : item);
      }
      const text = commandOf(call.rawInput);
      command.replaceChildren(...exact(text));
      command.hidden = !text || (!asks && call.kind !== 'execute');
      end.replaceChildren(...extras(call, context));
      if (!element.firstChild) element.append(command, rest, end);
    },
  };
}

/** @param {ToolCall} call @returns {ToolContent[]} */
function shownContent(call) {
  const content = call.content ?? [];
  const said = call.error ?? call.result;
  const alreadyShown = content.some(
    (part) =>
      (part.type === 'text' && part.text === said) || (part.type === 'terminal' && part.output.trim() === said?.trim()),
  );
  return said && !alreadyShown ? [...content, { type: 'text', text: said }] : content;
}

/** @param {ToolCall} call @param {ViewContext} context */
function extras(call, context) {
  const said = new Set((call.content ?? []).flatMap((part) => (part.type === 'diff' ? [part.path] : [])));
  const places = (call.locations ?? [])
    .filter(({ path }) => !said.has(path))
    .map(({ path, line: at }) =>
      h('li', { class: 'mono' }, ...exact(within(path, context.projectPath()) + (at === undefined ? '' : `:${at}`))),
    );
  const found = [];
  if (places.length > 0) found.push(h('ul', { class: 'places', 'aria-label': 'Files' }, ...places));
  for (const [name, value] of /** @type {const} */ ([
    ['Input', call.rawInput],
    ['Raw output', call.rawOutput],
  ])) {
    if (value === undefined || value === null) continue;
    const fold = disclosure(context, 'raw');
    fold.summary.append(name, icon('chevron', 'opener'));
    fold.show(`${call.entryId}-${name}`, false, () => {
      const text = JSON.stringify(value, null, 2);
      const capped = cappedText(context, `${call.entryId}-${name}-all`);
      capped.update(text);
      fold.body.replaceChildren(
        capped.element,
        copyButton(context, () => text, name.toLowerCase()),
      );
    });
    found.push(fold.element);
  }
  return found;
}

/** The collapsible line of a group of finished calls. @param {ViewContext} context */
export function groupView(context) {
  const fold = disclosure(context, 'tool group');
  /** @type {Map<string, import('./view-context.js').View>} */
  const views = new Map();
  return {
    element: h('div', { class: 'tool-place' }, fold.element),
    /** @param {Item[]} items @param {string} id */
    update: (items, id) => {
      fold.summary.replaceChildren(
        icon('group', 'kind'),
        h('span', { class: 'tool-name' }, summaryOf(items)),
        h('span', { class: 'tool-time' }),
        h('span', { class: 'tool-state complete' }, icon('done'), screenReaderText(STATES.complete)),
        icon('chevron', 'opener'),
      );
      fold.show(id, false, () => {
        for (const item of items) {
          let view = views.get(item.id);
          if (!view) {
            view = toolView(context);
            views.set(item.id, view);
            fold.body.append(view.element);
          }
          view.update(item);
        }
      });
    },
  };
}
