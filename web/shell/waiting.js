/**
 * The inbox: the sessions that need the user. It lists open permission requests, which can be answered in place, open
 * elicitations, which lead to their session, and turns that failed or finished while the session was not in view.
 *
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 * @typedef {import('../types/wire.js').PermissionQuestion} PermissionQuestion
 * @typedef {import('../types/wire.js').OpenQuestion} OpenQuestion
 * @typedef {{ waiting: SessionListItem[], failed: SessionListItem[], finished: SessionListItem[] }} Needed
 *
 * @typedef {object} Dependencies
 * @property {import('./socket.js').Socket} socket
 * @property {(sessionId: string) => boolean} isLive  whether its page is already subscribed to it
 * @property {(sessionId: string) => void} open
 * @property {(error: unknown) => void} showError
 * @property {(session: SessionListItem) => string} placeOf  names of its project and agent
 */

import { h, part } from '../shared/dom.js';
import { countsText, mostUrgent } from './attention.js';
import { markSign } from './marks.js';

const WORDS = { waiting: 'Waiting', failed: 'Failed', finished: 'Finished' };

/** @param {HTMLButtonElement} button @param {Dependencies} needs */
export function startWaiting(button, { socket, isLive, open, showError, placeOf }) {
  const dialog = part('waiting', HTMLDialogElement);
  const body = part('waiting-body', HTMLElement);
  const sign = markSign();
  const words = h('span', { class: 'waiting-words' });
  button.replaceChildren(sign.element, words);
  /** Open permission requests, by session id. @type {Map<string, PermissionQuestion[]>} */
  const permissionsOf = new Map();
  /** Open elicitations, by session id; they are answered in the session. @type {Map<string, OpenQuestion[]>} */
  const elicitationsOf = new Map();
  /** Ids of sessions subscribed to only for this list. @type {Set<string>} */
  const subscribed = new Set();
  /** @type {Needed} */
  let needed = { waiting: [], failed: [], finished: [] };
  let shown = '';

  /** @param {Needed} next @param {import('./attention.js').Counts} counts  the lengths of its lists */
  const render = (next, counts) => {
    needed = next;
    const { mark } = mostUrgent(counts);
    const summary = countsText(counts) || 'No pending requests';
    if (button.dataset.mark !== mark) button.dataset.mark = mark;
    sign.show(mark);
    if (words.textContent !== summary) {
      words.textContent = summary;
      button.title = `Inbox: ${summary} (Alt+A)`;
      button.setAttribute('aria-label', `Inbox: ${summary}`);
    }
    if (dialog.open) draw();
  };

  const draw = () => {
    subscribe();
    const groups = /** @type {const} */ (['waiting', 'failed', 'finished'])
      .map((mark) => /** @type {const} */ ([mark, needed[mark]]))
      .filter(([, sessions]) => sessions.length > 0);
    const asked = needed.waiting.map(({ id }) => [permissionsOf.get(id), elicitationsOf.get(id)]);
    const state = JSON.stringify([groups, asked]);
    // Rendered only after a change, because rendering removes the focused button.
    if (state === shown) return;
    shown = state;
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.key : undefined;
    const had = body.contains(document.activeElement);
    body.replaceChildren(
      ...groups.flatMap(([mark, sessions]) => [
        h('h3', {}, WORDS[mark]),
        h('ul', {}, ...sessions.map((session) => item(session, mark))),
      ]),
    );
    if (groups.length === 0) body.append(h('p', { class: 'hint' }, 'No pending requests.'));
    if (!had) return;
    const buttons = [...body.querySelectorAll('button')];
    (
      buttons.find(({ dataset }) => dataset.key === focused) ??
      buttons[0] ??
      part('waiting-close', HTMLElement)
    ).focus();
  };

  /** @param {SessionListItem} session @param {'waiting' | 'failed' | 'finished'} mark */
  const item = (session, mark) => {
    const sign = markSign();
    sign.show(mark);
    const go = () => {
      dialog.close();
      open(session.id);
    };
    return h(
      'li',
      { class: 'waiting-item', 'data-session-id': session.id },
      h(
        'button',
        { class: 'waiting-open', type: 'button', 'data-key': session.id, onclick: go },
        sign.element,
        h('span', { class: 'choice-label' }, session.title),
        h('span', { class: 'choice-note' }, placeOf(session)),
      ),
      ...(mark === 'waiting'
        ? (permissionsOf.get(session.id) ?? []).map((question) => permissionView(session, question))
        : []),
      ...(mark === 'waiting' ? (elicitationsOf.get(session.id) ?? []).map((form) => elicitationView(form, go)) : []),
    );
  };

  /** @param {OpenQuestion} question @param {() => void} go */
  const elicitationView = ({ questionId, message }, go) =>
    h(
      'div',
      { class: 'waiting-question', role: 'group', 'aria-label': message },
      h('p', {}, message),
      h(
        'div',
        { class: 'waiting-options' },
        h('button', { class: 'button', type: 'button', 'data-key': questionId, onclick: go }, 'Answer in the session'),
      ),
    );

  /** @param {SessionListItem} session @param {PermissionQuestion} question */
  const permissionView = (session, { permissionId, title, options }) =>
    h(
      'div',
      { class: 'waiting-question', role: 'group', 'aria-label': title },
      h('p', { class: 'mono' }, title),
      h(
        'div',
        { class: 'waiting-options' },
        ...options.map(({ optionId, name }, index) =>
          h(
            'button',
            {
              class: 'button',
              type: 'button',
              'data-key': `${permissionId} ${optionId}`,
              'aria-keyshortcuts': String(index + 1),
              onclick: () => answer(session.id, permissionId, optionId),
            },
            h('kbd', { 'aria-hidden': 'true' }, String(index + 1)),
            ` ${name}`,
          ),
        ),
      ),
    );

  /** @param {string} sessionId @param {string} permissionId @param {string} optionId */
  const answer = (sessionId, permissionId, optionId) => {
    socket.request({ type: 'session:permit', sessionId, permissionId, optionId }).catch(showError);
  };

  /** Subscribes to the waiting sessions: the server sends their questions only to subscribers. */
  const subscribe = () => {
    for (const { id } of needed.waiting) {
      if (subscribed.has(id) || isLive(id)) continue;
      subscribed.add(id);
      socket.request({ type: 'session:open', sessionId: id, tail: 1 }).catch(() => subscribed.delete(id));
    }
  };
  const unsubscribe = () => {
    for (const id of subscribed) {
      if (!isLive(id)) socket.request({ type: 'session:leave', sessionId: id }).catch(() => {});
    }
    subscribed.clear();
  };

  dialog.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const buttons = [...body.querySelectorAll('button')];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && buttons.length > 0) {
      buttons.at((at + step) % buttons.length)?.focus();
    } else if (/^[1-9]$/.test(event.key)) {
      const here = document.activeElement?.closest('.waiting-item');
      const options = here?.querySelector('.waiting-question')?.querySelectorAll('button');
      options?.[Number(event.key) - 1]?.click();
    } else return;
    event.preventDefault();
  });
  dialog.addEventListener('mousedown', (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener('close', () => {
    shown = '';
    unsubscribe();
  });
  part('waiting-close', HTMLButtonElement).addEventListener('click', () => dialog.close());

  const show = () => {
    if (dialog.open) return;
    dialog.showModal();
    draw();
    (body.querySelector('button') ?? part('waiting-close', HTMLElement)).focus();
  };
  button.addEventListener('click', show);

  return {
    render,
    open: show,
    /** @param {ServerMessage} message */
    receive: (message) => {
      if (message.type === 'hello') subscribed.clear();
      if (!('info' in message)) return;
      permissionsOf.set(message.sessionId, message.info.permissions);
      elicitationsOf.set(message.sessionId, message.info.questions);
      if (dialog.open) draw();
    },
  };
}
