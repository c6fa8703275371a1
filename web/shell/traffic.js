/**
 * The traffic panel below the conversation: the ACP frames between the server and the agent of the session in view, in
 * both directions. Recording is off until the user opens the panel. The server keeps a bounded number of frames, with
 * secrets redacted, and only while a client reads them.
 *
 * @typedef {import('../types/wire.js').TrafficFrame} TrafficFrame
 *
 * @typedef {object} Dependencies
 * @property {import('./socket.js').Socket} socket
 * @property {import('./toasts.js').Toasts} toasts
 * @property {(text: string) => Promise<void>} copy
 * @property {() => void} onClose
 *
 * @typedef {object} Recording
 * @property {TrafficFrame[]} frames
 * @property {number} last  number of the newest frame
 * @property {number} dropped
 * @property {boolean} on  whether the user wants it recorded; sent again after a restart of the server
 */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { openMenu } from './menu.js';
import { asJsonLines, asScript, filtered, parsed } from './traffic-script.js';

/** Interval between requests for new frames, in milliseconds. */
const POLL_MS = 500;
/** Maximum frames kept per session. */
const KEPT_MAX = 2000;
/** Maximum frames shown. */
const SHOWN_MAX = 400;

/** @param {HTMLElement} place @param {Dependencies} needs */
export function startTraffic(place, { socket, toasts, copy, onClose }) {
  /** @type {Map<string, Recording>} */
  const recordings = new Map();
  /** Id of the session whose traffic is shown. @type {string | null} */
  let current = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const count = h('span', { class: 'traffic-count', role: 'status' });
  const field = h('input', {
    class: 'field',
    type: 'search',
    placeholder: 'Filter frames',
    'aria-label': 'Filter frames',
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: '200',
  });
  const side = h(
    'select',
    { class: 'field', 'aria-label': 'Direction' },
    h('option', { value: 'both' }, 'Both ways'),
    h('option', { value: 'agent' }, 'From the agent'),
    h('option', { value: 'client' }, 'To the agent'),
  );
  const record = h('button', { class: 'button', type: 'button', 'aria-pressed': 'true' }, 'Recording');
  const copyButton = h(
    'button',
    { class: 'button', type: 'button', 'aria-haspopup': 'menu', 'aria-expanded': 'false' },
    'Copy…',
  );
  const clear = h('button', { class: 'button', type: 'button' }, 'Clear');
  const close = h('button', { class: 'icon-button', type: 'button', 'aria-label': 'Close the traffic' }, icon('close'));
  const list = h('ol', { class: 'traffic-list', 'aria-label': 'Frames', tabindex: '0' });
  const none = h('p', { class: 'hint traffic-none' });
  place.append(
    h(
      'header',
      { class: 'traffic-head' },
      h('h2', {}, 'Traffic'),
      count,
      field,
      side,
      record,
      copyButton,
      clear,
      close,
    ),
    none,
    list,
  );

  const inView = () => (current === null ? undefined : recordings.get(current));
  const filteredFrames = () => filtered(inView()?.frames ?? [], field.value, side.value);

  /** Renders the whole list after a change of session or filter. */
  const renderAll = () => {
    const frames = filteredFrames();
    list.replaceChildren(...frames.slice(-SHOWN_MAX).map(row));
    list.scrollTop = list.scrollHeight;
    renderStatus(frames.length);
  };

  /** @param {TrafficFrame[]} added */
  const renderMore = (added) => {
    const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 24;
    list.append(...filtered(added, field.value, side.value).slice(-SHOWN_MAX).map(row));
    while (list.children.length > SHOWN_MAX) list.firstElementChild?.remove();
    if (atEnd) list.scrollTop = list.scrollHeight;
    renderStatus(filteredFrames().length);
  };

  /** @param {number} matching */
  const renderStatus = (matching) => {
    const recording = inView();
    if (!recording) return;
    const { frames, dropped, on } = recording;
    const older = matching > SHOWN_MAX ? `, the last ${SHOWN_MAX} shown` : '';
    const gone = dropped > 0 ? `, ${dropped} older dropped` : '';
    const words = matching === frames.length ? `${matching} frames` : `${matching} of ${frames.length} frames`;
    count.textContent = `${words}${older}${gone}`;
    record.setAttribute('aria-pressed', String(on));
    record.textContent = on ? 'Recording' : 'Record';
    none.hidden = matching > 0;
    list.hidden = matching === 0;
    none.textContent =
      frames.length > 0
        ? 'No matching frames.'
        : on
          ? 'No frames yet. New frames to and from the agent appear here.'
          : 'Not recording.';
  };

  const poll = async () => {
    clearTimeout(timer);
    const id = current;
    const recording = inView();
    if (id === null || !recording?.on) return;
    let soon = false;
    try {
      const answer = await socket.request({ type: 'session:traffic-read', sessionId: id, after: recording.last });
      if (answer.type === 'session:traffic' && !answer.on) {
        await socket.request({ type: 'session:traffic', sessionId: id, on: true });
        // The server starts a new recording, numbered from the beginning.
        recording.last = 0;
      } else if (answer.type === 'session:traffic') {
        recording.dropped = answer.dropped;
        recording.frames.push(...answer.frames);
        recording.last = answer.frames.at(-1)?.number ?? recording.last;
        const excess = recording.frames.length - KEPT_MAX;
        if (excess > 0) recording.frames.splice(0, excess);
        soon = answer.more;
        if (current === id && answer.frames.length > 0) renderMore(answer.frames);
      }
    } catch {
      // The server is not reachable; the next request tries again.
    }
    clearTimeout(timer);
    if (current === id) timer = setTimeout(poll, soon ? 0 : POLL_MS);
  };

  /** @param {string} id @param {boolean} on */
  const setRecording = async (id, on) => {
    const recording = recordings.get(id);
    if (!recording) return;
    try {
      await socket.request({ type: 'session:traffic', sessionId: id, on });
      Object.assign(recording, { on, last: 0, dropped: 0 });
    } catch (error) {
      toasts.show(error instanceof Error ? error.message : String(error));
    }
    if (current === id) renderStatus(filteredFrames().length);
    poll();
  };

  const closePanel = () => {
    const id = current;
    if (id === null) return;
    recordings.delete(id);
    socket.request({ type: 'session:traffic', sessionId: id, on: false }).catch(() => {});
    show(null);
    onClose();
  };

  /** @param {string | null} id  session in view */
  const show = (id) => {
    clearTimeout(timer);
    current = id !== null && recordings.has(id) ? id : null;
    place.hidden = current === null;
    if (current === null) return;
    renderAll();
    poll();
  };

  /** @param {(frames: TrafficFrame[]) => string} as @param {string} what */
  const copyAs = async (as, what) => {
    const frames = filteredFrames();
    const text = as(frames);
    if (text === '') return void toasts.show('The frames contain nothing to copy in this format.');
    await copy(text);
    const cut = frames.filter((frame) => frame.cut).length;
    toasts.show(`Copied ${what}.${cut > 0 ? ` ${cut} of the frames are truncated.` : ''}`);
  };

  field.addEventListener('input', renderAll);
  side.addEventListener('change', renderAll);
  record.addEventListener('click', () => current !== null && setRecording(current, inView()?.on !== true));
  copyButton.addEventListener('click', () =>
    openMenu(copyButton, 'Copy the frames that are shown', [
      {
        label: 'As a test script',
        note: 'prompts for the scripted agent',
        run: () => copyAs(asScript, 'a script for the scripted agent'),
      },
      { label: 'As lines of JSON', note: 'both directions', run: () => copyAs(asJsonLines, 'lines of JSON') },
    ]),
  );
  clear.addEventListener('click', () => {
    const recording = inView();
    if (recording) recording.frames = [];
    renderAll();
  });
  close.addEventListener('click', closePanel);
  place.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.defaultPrevented) return;
    event.preventDefault();
    if (event.target === field && field.value !== '') {
      field.value = '';
      renderAll();
    } else closePanel();
  });

  return {
    /** Opens the panel for a session and starts recording, or closes it. @param {string} id */
    toggle: (id) => {
      if (recordings.has(id)) return closePanel();
      recordings.set(id, { frames: [], last: 0, dropped: 0, on: false });
      show(id);
      setRecording(id, true);
      field.focus();
    },
    show,
    /** Stops recording a session whose tab was closed. @param {string} id */
    forget: (id) => {
      if (!recordings.delete(id)) return;
      socket.request({ type: 'session:traffic', sessionId: id, on: false }).catch(() => {});
    },
  };
}

/** @param {TrafficFrame} frame */
function row({ at, from, label, bytes, cut, text }) {
  const arrow = from === 'agent' ? '←' : '→';
  const words = from === 'agent' ? 'from the agent' : 'to the agent';
  const body = h('pre', { class: 'traffic-text', tabindex: '0' });
  const open = () => {
    if (body.textContent === '') body.textContent = pretty(text);
  };
  const size = bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`;
  return h(
    'li',
    {},
    h(
      'details',
      { class: 'traffic-frame', 'data-from': from, ontoggle: open },
      h(
        'summary',
        {},
        h('time', { class: 'traffic-time' }, new Date(at).toISOString().slice(11, 23)),
        h('span', { class: 'traffic-arrow', 'aria-hidden': 'true' }, arrow),
        h('span', { class: 'sr-only' }, words),
        h('span', { class: 'traffic-label' }, label),
        h('span', { class: 'traffic-size' }, cut ? `${size}, cut` : size),
      ),
      body,
    ),
  );
}

/** @param {string} text */
function pretty(text) {
  const message = parsed(text);
  return message === undefined ? text : JSON.stringify(message, null, 2);
}
