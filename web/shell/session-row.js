/** The sidebar row of a session. A click opens it, renaming happens in place, all other actions are in its menu. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { markSign } from './marks.js';
import { shortAge } from './relative-time.js';

/**
 * @typedef {import('../types/wire.js').SessionListItem} SessionListItem
 * @typedef {import('./attention.js').Mark} Mark
 *
 * @typedef {object} Shown
 * @property {SessionListItem} session
 * @property {Mark} mark
 * @property {{ name: string, badge: string }} agent
 * @property {boolean} current  whether its tab is in view
 * @property {boolean} renaming
 * @property {number} now
 *
 * @typedef {object} Actions
 * @property {() => void} open
 * @property {(anchor: HTMLElement, at?: { x: number, y: number }) => void} menu
 * @property {() => void} rename  called to start renaming
 * @property {(title: string | null) => void} renamed  called when renaming ends; null keeps the title
 * @property {() => void} archive
 */

/** @param {Actions} actions */
export function sessionRow(actions) {
  const mark = markSign();
  const title = h('span', { class: 'session-title' });
  const agentName = h('span', { class: 'sr-only' });
  const badge = h('span', { class: 'badge', 'aria-hidden': 'true' });
  const time = h('time', { class: 'session-time' });
  const main = h('button', { class: 'row-main session', type: 'button' }, mark.element, title, agentName, badge, time);
  const more = h(
    'button',
    {
      class: 'icon-button row-action',
      type: 'button',
      tabindex: '-1',
      'aria-haspopup': 'menu',
      'aria-expanded': 'false',
    },
    icon('more'),
  );
  const element = h('li', { class: 'row session-row' }, main, more);
  /** @type {HTMLInputElement | null} */
  let field = null;

  main.addEventListener('click', actions.open);
  main.addEventListener('dblclick', actions.rename);
  more.addEventListener('click', () => actions.menu(more));
  element.addEventListener('contextmenu', (event) => {
    event.preventDefault();
    // A context menu opened from the keyboard has no pointer position.
    const pointed = event.clientX > 0 || event.clientY > 0;
    actions.menu(more, pointed ? { x: event.clientX, y: event.clientY } : undefined);
  });
  main.addEventListener('keydown', (event) => {
    if (event.key === 'F2') actions.rename();
    else if (event.key === 'Delete' && !event.repeat) actions.archive();
    else return;
    event.preventDefault();
  });

  /** @param {string} text */
  const beginRename = (text) => {
    const input = h('input', {
      class: 'field rename',
      type: 'text',
      maxlength: '200',
      'aria-label': `New title of ${text}`,
    });
    field = input;
    input.value = text;
    /** @param {boolean} keep */
    const end = (keep) => {
      if (field !== input) return;
      field = null;
      const typed = input.value.trim();
      const hadFocus = document.activeElement === input;
      input.remove();
      main.hidden = more.hidden = false;
      if (hadFocus) main.focus();
      actions.renamed(keep && typed !== '' && typed !== text ? typed : null);
    };
    input.addEventListener('keydown', (event) => {
      event.stopPropagation();
      if (event.isComposing) return;
      if (event.key !== 'Enter' && event.key !== 'Escape') return;
      event.preventDefault(); // Otherwise the same key press would activate the row, which gets the focus next.
      end(event.key === 'Enter');
    });
    input.addEventListener('blur', () => end(true));
    main.hidden = more.hidden = true;
    element.prepend(input);
    input.focus();
    input.select();
  };

  return {
    element,
    main,
    /** @param {Shown} shown */
    show: ({ session, mark: state, agent, current, renaming, now }) => {
      mark.show(state);
      setText(title, session.title);
      setText(agentName, agent.name);
      setText(badge, agent.badge);
      setText(time, shortAge(session.lastActiveAt, now));
      if (time.dateTime !== session.lastActiveAt) {
        time.dateTime = session.lastActiveAt;
        main.dataset.at = session.lastActiveAt;
      }
      if (main.dataset.label !== session.title) main.dataset.label = session.title;
      if (element.dataset.sessionId !== session.id) element.dataset.sessionId = session.id;
      const label = `Actions for ${session.title}`;
      if (more.getAttribute('aria-label') !== label) more.setAttribute('aria-label', label);
      if (current !== main.hasAttribute('aria-current')) {
        if (current) main.setAttribute('aria-current', 'true');
        else main.removeAttribute('aria-current');
      }
      if (renaming && !field) beginRename(session.title);
    },
  };
}

/** @param {HTMLElement} element @param {string} text */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
