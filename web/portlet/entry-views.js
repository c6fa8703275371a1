/** The views of conversation rows: one per entry type. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { signInView } from '../shared/sign-in.js';
import { questionEntryView } from './form-view.js';
import { counted, duration, short } from './format.js';
import { mediaView } from './media-view.js';
import { textView } from './text-view.js';
import { groupView, toolView } from './tool-view.js';
import { mayGrow } from './transcript.js';
import { copyButton, disclosure } from './view-context.js';

/**
 * @typedef {import('./transcript.js').Item} Item
 * @typedef {import('./view-context.js').ViewContext} ViewContext
 * @typedef {import('./view-context.js').View} View
 * @typedef {import('../types/wire.js').ChatEntry} ChatEntry
 * @typedef {{ element: HTMLElement, update: (row: import('./rows.js').Row) => void }} RowView
 */

/** @type {Record<ChatEntry['type'], (context: ViewContext) => View>} */
const VIEWS = {
  user: userView,
  assistant: assistantView,
  thinking: thinkingView,
  'tool-call': toolView,
  plan: planView,
  media: mediaEntryView,
  notice: noticeView,
  question: questionEntryView,
  turn: turnView,
};

/** @param {import('./rows.js').Row} first @param {ViewContext} context @returns {RowView} */
export function rowView(first, context) {
  const heading = h('h2', { class: 'sr-only' });
  const element = h('div', { class: `row row-${first.items[0].entry.type}` }, heading);
  const group = first.items.length > 1 ? groupView(context) : null;
  // A newer server may send entry types that this page does not know.
  const view = group ? null : (VIEWS[first.items[0].entry.type] ?? unknownView)(context);
  element.append((group ?? view)?.element ?? '');
  return {
    element,
    update: (row) => {
      const [item] = row.items;
      element.dataset.entryId = item.entry.entryId;
      const user = item.entry.type === 'user';
      heading.hidden = !user && !row.headed;
      heading.textContent = user ? 'You' : context.agentName();
      group?.update(row.items, row.id);
      view?.update(item);
    },
  };
}

/** A user message longer than this is collapsed; limits in characters and in lines. */
const TEXT_SHOWN = 3000;
const LINES_SHOWN = 20;

/** @param {ViewContext} context @returns {View} */
function userView(context) {
  const text = h('div', { class: 'plain' });
  const more = h('button', { class: 'link-button', type: 'button' });
  const pictures = h('div', { class: 'pictures' });
  const state = h('div', { class: 'sending', role: 'status' });
  /** @type {Item | null} */
  let shown = null;
  let long = false;
  const content = () => (shown?.entry.type === 'user' ? shown.entry.content : '');
  const key = () => `said-${shown?.entry.entryId}`;
  const showMore = () => {
    more.hidden = !long;
    if (!long) return;
    const whole = context.opened.get(key()) ?? false;
    text.classList.toggle('cut', !whole);
    more.textContent = whole ? 'Show less' : 'Show all';
  };
  more.addEventListener('click', () => {
    context.opened.set(key(), !(context.opened.get(key()) ?? false));
    showMore();
  });
  const tools = h('div', { class: 'tools' }, copyButton(context, content, 'message'));
  return {
    element: h('article', { class: 'said' }, text, more, pictures, state, tools),
    update: (item) => {
      const entry = /** @type {Extract<ChatEntry, { type: 'user' }>} */ (item.entry);
      if (content() !== entry.content || !shown) {
        text.textContent = entry.content;
        long = entry.content.length > TEXT_SHOWN || entry.content.split('\n').length > LINES_SHOWN;
      }
      shown = item;
      showMore();
      text.dataset.at = entry.timestamp;
      const images = entry.images ?? [];
      if (pictures.children.length !== images.length)
        pictures.replaceChildren(...images.map((id) => pictureOf(id, context)));
      state.hidden = item.sending === null;
      if (item.sending === 'sending') state.replaceChildren('Sending…');
      if (item.sending === 'refused') {
        state.replaceChildren(
          h('span', { class: 'field-error' }, item.problem),
          h('button', { class: 'button', type: 'button', onclick: () => context.sendAgain(item) }, 'Retry'),
          h('button', { class: 'button', type: 'button', onclick: () => context.discard(item) }, 'Discard'),
        );
      }
    },
  };
}

/** @param {string} id @param {ViewContext} context */
function pictureOf(id, context) {
  const src = `/uploads/${encodeURIComponent(id)}?pass=${encodeURIComponent(context.pass())}`;
  const image = h('img', { class: 'picture', src, alt: 'Picture you sent' });
  image.addEventListener('error', () =>
    image.replaceWith(h('span', { class: 'picture-mark' }, icon('picture'), 'Picture')),
  );
  return image;
}

/** @param {ViewContext} context @returns {View} */
function assistantView(context) {
  const text = textView(context);
  let content = '';
  const tools = h(
    'div',
    { class: 'tools' },
    copyButton(context, () => content, 'answer'),
  );
  const element = h('article', { class: 'answer' }, text.element, tools);
  return {
    element,
    update: (item) => {
      const entry = /** @type {Extract<ChatEntry, { type: 'assistant' }>} */ (item.entry);
      content = entry.content;
      text.update(item, content);
      element.classList.toggle('growing', mayGrow(context.transcript, item));
    },
  };
}

/** @param {ViewContext} context @returns {View} */
function thinkingView(context) {
  const fold = disclosure(context, 'thinking');
  const text = textView(context);
  const label = h('span', {});
  fold.summary.append(icon('think', 'kind'), label, icon('chevron', 'opener'));
  fold.body.append(text.element);
  return {
    element: fold.element,
    update: (item) => {
      const entry = /** @type {Extract<ChatEntry, { type: 'thinking' }>} */ (item.entry);
      const growing = mayGrow(context.transcript, item);
      const spent = item.began !== null && item.ended !== null ? item.ended - item.began : 0;
      const took = spent >= 1000 ? ` for ${duration(spent)}` : '';
      const said = growing ? 'Thinking…' : `Thought${took}`;
      if (label.textContent !== said) label.textContent = said;
      label.classList.toggle('growing', growing);
      fold.show(`thinking-${entry.entryId}`, growing, () => text.update(item, entry.content));
    },
  };
}

const PLAN_STATES = { pending: 'to do', 'in-progress': 'in progress', completed: 'done' };

/** @returns {View} */
function planView() {
  const head = h('p', { class: 'plan-head' });
  const list = h('ul', { class: 'plan-items' });
  return {
    element: h('section', { class: 'plan', 'aria-label': 'Plan' }, head, list),
    update: (item) => {
      const { items } = /** @type {Extract<ChatEntry, { type: 'plan' }>} */ (item.entry);
      const done = items.filter(({ status }) => status === 'completed').length;
      head.textContent = `Plan · ${done} of ${items.length} done`;
      list.replaceChildren(
        ...items.map(({ content, status, priority }) =>
          h(
            'li',
            { class: status },
            h('span', { class: 'box', 'aria-hidden': 'true' }, status === 'completed' ? icon('done') : ''),
            h('span', { class: 'sr-only' }, `${PLAN_STATES[status]}: `),
            h('span', { class: 'plan-text' }, content),
            priority === 'high' && status !== 'completed' ? h('span', { class: 'tag' }, 'high') : '',
          ),
        ),
      );
    },
  };
}

/** @param {ViewContext} context @returns {View} */
function mediaEntryView(context) {
  const element = h('div', { class: 'media' });
  return {
    element,
    update: (item) => {
      const entry = /** @type {Extract<ChatEntry, { type: 'media' }>} */ (item.entry);
      element.classList.toggle('said', entry.author === 'user');
      element.replaceChildren(mediaView(entry.block, context, entry.entryId));
    },
  };
}

/** @returns {View} */
function noticeView() {
  const element = h('div', { class: 'note' });
  return {
    element,
    update: (item) => {
      const { severity, title, description } = /** @type {Extract<ChatEntry, { type: 'notice' }>} */ (item.entry);
      element.dataset.severity = severity;
      const word = severity === 'info' ? '' : h('strong', {}, severity === 'error' ? 'Error: ' : 'Warning: ');
      element.replaceChildren(h('p', {}, word, title), description ? h('p', { class: 'hint' }, description) : '');
    },
  };
}

/** @type {Record<import('../types/wire.js').TurnOutcome, string>} */
const OUTCOMES = {
  ended: '',
  cancelled: 'Stopped',
  refused: 'The agent refused to continue',
  'max-tokens': 'Stopped: the answer reached the token limit',
  'max-turn-requests': 'Stopped: the agent reached its maximum of steps per turn',
  failed: 'Failed',
  interrupted: 'Interrupted',
  other: 'Ended with an unknown stop reason',
};
const ADVICE = {
  failed: 'Send the message again, or restart the agent.',
  interrupted: 'The text received so far is saved. Send a message to continue.',
  signIn: 'The message is sent again after you sign in.',
};

/** Error texts that ask the user to sign in; agents have no common error code for this. */
const SIGN_IN = /\b(sign|log)(ged)?[ -]?in\b|\bauthenticat|\bunauthori[sz]ed\b/i;

/** @param {ViewContext} context @returns {View} */
function turnView(context) {
  /** The sign-in methods the form was built for. The form and its progress are kept while they stay the same. */
  let builtFor = '';
  /** @type {HTMLElement | null} */
  let signInForm = null;
  /** @param {ViewContext} context @param {HTMLButtonElement} send */
  const signIn = ({ signIn: methods, signInRequest, copy, agentName, cliType }, send) => {
    const current = JSON.stringify(methods());
    if (!signInForm || current !== builtFor) {
      const agent = { cliType: cliType(), name: agentName() };
      // After the sign-in the failed message is sent again automatically.
      signInForm = signInView(agent, methods(), { request: signInRequest, copy, onSignedIn: () => again?.click() });
    }
    builtFor = current;
    again = send;
    return signInForm;
  };
  /** @type {HTMLButtonElement | null} */
  let again = null;
  const element = h('div', { class: 'turn-end' });
  return {
    element,
    update: (item) => {
      const turn = /** @type {Extract<ChatEntry, { type: 'turn' }>} */ (item.entry);
      const bad = turn.outcome === 'failed' || turn.outcome === 'interrupted';
      element.dataset.outcome = turn.outcome;
      const figures = [
        turn.durationMs === undefined ? '' : duration(turn.durationMs),
        turn.tokens === undefined ? '' : `${short(turn.tokens)} ${counted(turn.tokens, 'token').split(' ')[1]}`,
      ].filter(Boolean);
      const needsSignIn = bad && SIGN_IN.test(turn.message ?? '');
      // The error lists the sign-in methods in parentheses; they are shown below as buttons.
      const message =
        needsSignIn && context.signIn().length > 0 ? turn.message?.replace(/ \([^()]*\)$/, '') : turn.message;
      const said = [OUTCOMES[turn.outcome], message].filter(Boolean).join(': ');
      element.dataset.at = turn.timestamp;
      // The user may be typing in the sign-in form: keep its focus.
      const focused = signInForm?.contains(document.activeElement) ? document.activeElement : null;
      element.replaceChildren(
        said ? h('span', { class: 'turn-said' }, said) : '',
        h('span', { class: 'turn-figures' }, figures.join(' · ')),
      );
      if (!bad) return;
      const last = context.transcript.items.at(-1) === item;
      const advice = needsSignIn && last ? 'signIn' : /** @type {keyof typeof ADVICE} */ (turn.outcome);
      element.append(h('p', { class: 'hint' }, ADVICE[advice]));
      const again = last && lastUserMessage(context);
      if (!again) return;
      const send = h(
        'button',
        { class: 'button', type: 'button', onclick: () => context.sendAgain(again) },
        'Send again',
      );
      if (needsSignIn) element.append(signIn(context, send));
      element.append(send);
      if (turn.outcome === 'failed' && !needsSignIn) {
        element.append(h('button', { class: 'button', type: 'button', onclick: context.reconnect }, 'Restart agent'));
      }
      if (focused instanceof HTMLElement && focused.isConnected) focused.focus();
    },
  };
}

/** @param {ViewContext} context */
function lastUserMessage(context) {
  return context.transcript.items.findLast(({ entry }) => entry.type === 'user');
}

/** @returns {View} */
function unknownView() {
  const element = h('p', { class: 'hint' }, 'Unsupported entry. Reload the page to update it.');
  return { element, update: () => {} };
}
