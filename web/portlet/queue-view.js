/** The list of queued messages, which the user can edit, remove and resume. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { counted } from './format.js';

/**
 * @typedef {import('../types/wire.js').QueuedMessage} QueuedMessage
 *
 * @typedef {object} Actions
 * @property {(queueId: string, content: string) => Promise<unknown>} edit
 * @property {(queueId: string) => Promise<unknown>} remove
 * @property {() => Promise<unknown>} resume
 */

/** @param {Actions} actions */
export function startQueue(actions) {
  const head = h('p', { class: 'queue-head' });
  const now = h('button', { class: 'button small', type: 'button' }, 'Send now');
  const list = h('ul', { class: 'queue-items' });
  const problem = h('p', { class: 'field-error', role: 'alert' });
  const element = h('section', { class: 'queue', 'aria-label': 'Queue' }, h('div', {}, head, now), list, problem);
  element.hidden = true;
  /** @type {Map<string, ReturnType<typeof line>>} */
  const lines = new Map();

  /** @param {Promise<unknown>} doing */
  const attempt = async (doing) => {
    problem.textContent = '';
    try {
      await doing;
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  now.addEventListener('click', () => attempt(actions.resume()));

  /** @param {QueuedMessage} message */
  const line = ({ queueId, content }) => {
    const text = h('textarea', { class: 'queue-text', rows: '1', 'aria-label': 'Queued message' });
    text.value = content;
    let known = content;
    const save = () => {
      const wanted = text.value.trim();
      if (wanted === known || !wanted) text.value = known;
      else attempt(actions.edit(queueId, text.value));
    };
    text.addEventListener('change', save);
    text.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') text.value = known;
      if (event.key === 'Escape' || (event.key === 'Enter' && !event.shiftKey)) {
        event.preventDefault();
        event.stopPropagation();
        text.blur();
      }
    });
    const label = 'Remove from the queue';
    const remove = h(
      'button',
      { class: 'icon-button', type: 'button', 'aria-label': label, title: label },
      icon('remove'),
    );
    remove.addEventListener('click', () => attempt(actions.remove(queueId)));
    return {
      element: h('li', {}, text, remove),
      /** @param {string} latest */
      update: (latest) => {
        if (latest === known) return;
        if (text.value === known || document.activeElement !== text) text.value = latest;
        known = latest;
      },
    };
  };

  return {
    element,
    /** @param {QueuedMessage[]} queue @param {boolean} held @param {boolean} busy */
    show: (queue, held, busy) => {
      element.hidden = queue.length === 0;
      const messages = counted(queue.length, 'message');
      head.textContent = held ? `Paused — ${messages} waiting` : `${messages} queued`;
      now.hidden = !held;
      now.textContent = busy ? 'Resume queue' : 'Send now';
      now.title = busy ? 'Sent when this turn ends' : 'Send the messages, one turn after the other';
      for (const [id, shown] of lines) {
        if (queue.some(({ queueId }) => queueId === id)) continue;
        shown.element.remove();
        lines.delete(id);
      }
      for (const [at, message] of queue.entries()) {
        const shown = lines.get(message.queueId) ?? line(message);
        lines.set(message.queueId, shown);
        shown.update(message.content);
        if (list.children[at] !== shown.element) list.insertBefore(shown.element, list.children[at] ?? null);
      }
    },
  };
}
