/** The row of tabs. Tabs are activated, closed and moved with the mouse or the keyboard; a button lists all of them. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { markSign } from './marks.js';
import { elementId } from './portlets.js';

/**
 * @typedef {import('./tab-list.js').TabList} TabList
 * @typedef {import('./attention.js').Mark} Mark
 * @typedef {{ title: string, badge: string, agentName: string, projectName: string, mark: Mark }} TabFace
 *
 * @typedef {object} Actions
 * @property {(id: string) => void} choose
 * @property {(id: string) => void} close
 * @property {(id: string, to: number) => void} move
 * @property {() => void} enter  moves the focus into the active tab's panel
 * @property {(id: string, title: string, anchor: HTMLElement, at?: { x: number, y: number }) => void} menu
 * @property {(choices: import('./palette.js').Choice[]) => void} list  shows all tabs in the palette
 */

const DRAG_TYPE = 'application/x-liminal-tab';

/**
 * @param {HTMLElement} place
 * @param {HTMLButtonElement} all  button that lists all tabs
 * @param {Actions} actions
 */
export function startTabStrip(place, all, actions) {
  /** @type {Map<string, ReturnType<typeof tabView>>} */
  const views = new Map();
  /** @type {TabList} */
  let tabs = { order: [], active: null };
  /** @type {(id: string) => TabFace} */
  let faceOf = () => ({ title: '', badge: '', agentName: '', projectName: '', mark: 'idle' });
  /** @type {string | null} */
  let dragged = null;

  /** @param {TabList} next @param {(id: string) => TabFace} faces */
  const render = (next, faces) => {
    const moved = next.active !== tabs.active || next.order !== tabs.order;
    tabs = next;
    faceOf = faces;
    for (const [id, view] of views) {
      if (tabs.order.includes(id)) continue;
      const hadFocus = view.element.contains(document.activeElement);
      view.element.remove();
      views.delete(id);
      if (hadFocus) queueMicrotask(focus);
    }
    for (const [index, id] of tabs.order.entries()) {
      let view = views.get(id);
      if (!view) {
        view = tabView(id, actions);
        views.set(id, view);
      }
      view.show(faces(id), id === tabs.active, tabs.active === null && index === 0);
      const there = place.children[index];
      if (there === view.element) continue;
      const hadFocus = view.element.contains(document.activeElement);
      place.insertBefore(view.element, there ?? null);
      if (hadFocus) view.tab.focus();
    }
    place.hidden = tabs.order.length === 0;
    all.hidden = tabs.order.length < 2;
    if (moved) showActive();
  };

  const showActive = () => {
    if (tabs.active !== null) views.get(tabs.active)?.element.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  // Keeps the active tab visible when the window becomes narrower.
  new ResizeObserver(showActive).observe(place);

  const focus = () => {
    const id = tabs.active ?? tabs.order[0];
    if (id !== undefined) views.get(id)?.tab.focus();
  };

  place.addEventListener('keydown', (event) => {
    const id = idOf(event.target);
    if (id === undefined) return;
    const at = tabs.order.indexOf(id);
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (direction !== undefined && event.shiftKey && (event.ctrlKey || event.altKey)) {
      actions.move(id, at + direction);
      views.get(id)?.tab.focus();
    } else if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    else if (direction !== undefined || event.key === 'Home' || event.key === 'End') {
      const to = direction === undefined ? (event.key === 'Home' ? 0 : -1) : (at + direction) % tabs.order.length;
      const next = tabs.order.at(to);
      if (next === undefined) return;
      actions.choose(next);
      views.get(next)?.tab.focus();
    } else if (event.key === 'Delete') {
      actions.close(id);
      focus();
    } else if (event.key === 'Enter' || event.key === ' ') {
      actions.choose(id);
      actions.enter();
    } else return;
    event.preventDefault();
  });

  place.addEventListener('dragstart', (event) => {
    dragged = idOf(event.target) ?? null;
    if (dragged === null || !event.dataTransfer) return;
    // A custom type, so that a drop into a text field inserts nothing.
    event.dataTransfer.setData(DRAG_TYPE, dragged);
    event.dataTransfer.effectAllowed = 'move';
    views.get(dragged)?.element.classList.add('dragged');
  });
  place.addEventListener('dragover', (event) => {
    if (dragged === null) return;
    event.preventDefault();
    showDrop(event);
  });
  place.addEventListener('dragleave', (event) => {
    if (!(event.relatedTarget instanceof Node && place.contains(event.relatedTarget))) clearDrop();
  });
  place.addEventListener('drop', (event) => {
    if (dragged === null) return;
    event.preventDefault();
    const { over, after } = dropPlace(event);
    const others = tabs.order.filter((id) => id !== dragged);
    const at = over === undefined ? others.length : others.indexOf(over) + (after ? 1 : 0);
    if (over !== dragged) actions.move(dragged, at);
  });
  place.addEventListener('dragend', () => {
    if (dragged !== null) views.get(dragged)?.element.classList.remove('dragged');
    dragged = null;
    clearDrop();
  });

  /** @param {DragEvent} event */
  const dropPlace = (event) => {
    const over = idOf(event.target);
    const box = over === undefined ? undefined : views.get(over)?.element.getBoundingClientRect();
    return { over, after: box !== undefined && event.clientX > box.left + box.width / 2 };
  };
  /** @param {DragEvent} event */
  const showDrop = (event) => {
    clearDrop();
    const { over, after } = dropPlace(event);
    const last = tabs.order.at(-1);
    if (over !== undefined) views.get(over)?.element.classList.add(after ? 'drop-after' : 'drop-before');
    else if (last !== undefined) views.get(last)?.element.classList.add('drop-after');
  };
  const clearDrop = () => {
    for (const { element } of views.values()) element.classList.remove('drop-before', 'drop-after');
  };

  // A mouse wheel that scrolls only vertically scrolls the tabs horizontally.
  place.addEventListener(
    'wheel',
    (event) => {
      if (event.deltaX === 0 && event.deltaY !== 0) place.scrollLeft += event.deltaY;
    },
    { passive: true },
  );
  all.addEventListener('click', () => {
    const choices = tabs.order.map((id) => {
      const { title, badge, projectName, mark } = faceOf(id);
      const choose = () => {
        actions.choose(id);
        actions.enter();
      };
      return { label: title, badge, note: projectName, mark, current: id === tabs.active, run: choose };
    });
    actions.list(choices);
  });

  return { render, focus };
}

/** @param {string} id @param {Actions} actions */
function tabView(id, actions) {
  const mark = markSign();
  const title = h('span', { class: 'tab-title' });
  const agentName = h('span', { class: 'sr-only' });
  const badge = h('span', { class: 'badge', 'aria-hidden': 'true' });
  const tab = h(
    'button',
    {
      class: 'tab',
      type: 'button',
      role: 'tab',
      id: elementId('tab', id),
      'aria-keyshortcuts': 'Delete',
      'aria-haspopup': 'menu',
      draggable: 'true',
    },
    mark.element,
    badge,
    title,
    agentName,
  );
  // Mouse only: a tab must not contain focusable elements, and the Delete key closes it as well.
  const close = h('span', { class: 'tab-close', 'aria-hidden': 'true', title: 'Close (Alt+W)' }, icon('close'));
  const element = h('div', { class: 'tab-place', role: 'presentation', 'data-session-id': id }, tab, close);

  tab.addEventListener('click', () => {
    actions.choose(id);
    actions.enter();
  });
  close.addEventListener('click', () => actions.close(id));
  element.addEventListener('mousedown', (event) => {
    if (event.button === 1) event.preventDefault(); // Prevents autoscroll and paste.
  });
  element.addEventListener('contextmenu', (event) => {
    event.preventDefault();
    // A context menu opened from the keyboard has the position of the tab's centre.
    const pointed = event.button === 2;
    actions.menu(id, title.textContent ?? '', tab, pointed ? { x: event.clientX, y: event.clientY } : undefined);
  });
  element.addEventListener('auxclick', (event) => {
    if (event.button === 1) actions.close(id);
  });

  return {
    element,
    tab,
    /** @param {TabFace} face @param {boolean} active @param {boolean} reachable  by the Tab key while no tab is active */
    show: (face, active, reachable) => {
      mark.show(face.mark);
      if (title.textContent !== face.title) title.textContent = face.title;
      if (agentName.textContent !== face.agentName) agentName.textContent = face.agentName;
      if (badge.textContent !== face.badge) badge.textContent = face.badge;
      const whole = face.projectName ? `${face.title} (${face.projectName}, ${face.agentName})` : face.title;
      if (tab.title !== whole) tab.title = whole;
      tab.setAttribute('aria-selected', String(active));
      if (active) tab.setAttribute('aria-controls', elementId('panel', id));
      else tab.removeAttribute('aria-controls');
      tab.tabIndex = active || reachable ? 0 : -1;
      element.classList.toggle('active', active);
    },
  };
}

/** @param {EventTarget | null} target */
function idOf(target) {
  const element = target instanceof Element ? target.closest('.tab-place') : null;
  return element instanceof HTMLElement ? element.dataset.sessionId : undefined;
}
