/**
 * The composer: the message input, its buttons, and the state of the running turn.
 *
 * The input is never disabled. Only sending can be, and then the button's tooltip gives the reason.
 *
 * @typedef {import('../types/wire.js').SessionInfo} SessionInfo
 * @typedef {import('../types/wire.js').AgentState} AgentState
 *
 * @typedef {object} Actions
 * @property {(text: string, images: string[]) => void} send
 * @property {(text: string, images: string[]) => Promise<unknown>} queue
 * @property {() => Promise<unknown>} stop
 * @property {() => void} restart
 * @property {(text: string) => void} draft
 * @property {(file: Blob) => Promise<string>} upload
 * @property {() => string[]} prompts
 * @property {(part: string) => Promise<string[]>} files  of the project
 * @property {() => void} showQuestion
 * @property {import('./queue-view.js').Actions} queued
 *
 * @typedef {object} Shown
 * @property {SessionInfo} info
 * @property {string} agentName
 * @property {AgentState} status
 * @property {boolean} online
 */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { startCompletion } from './completion.js';
import { clock, duration } from './format.js';
import { ACCEPT, LIMITS, startPictures } from './pictures.js';
import { promptHistory } from './prompt-history.js';
import { startQueue } from './queue-view.js';

/** Touch devices, which may have no keyboard; shortcuts are then not mentioned. */
const TOUCH = matchMedia('(pointer: coarse)');

/** @param {HTMLElement} place @param {Actions} actions */
export function startComposer(place, actions) {
  /** @type {Shown | null} */
  let shown = null;
  let reminding = false;
  /** Whether the user sent the message before the session was loaded. */
  let eager = false;
  /** When the user last pressed Enter during a running turn, which does not send the message. */
  let refused = -Infinity;
  const history = promptHistory(actions.prompts);

  const input = h('textarea', {
    id: 'input',
    class: 'input',
    rows: '1',
    'aria-label': 'Message',
    'aria-autocomplete': 'list',
    'aria-controls': 'completions',
    autocomplete: 'off',
  });
  const send = labelled('send', 'Send', 'primary');
  const stop = labelled('stop', 'Stop', 'stop');
  const queue = labelled('queue', 'Queue', '');
  stop.append(h('kbd', { 'aria-hidden': 'true' }, 'Esc'));
  queue.append(h('kbd', { 'aria-hidden': 'true' }, 'Alt ↵'));
  const picker = h('input', { type: 'file', accept: ACCEPT, multiple: true, 'aria-label': 'Pictures', tabindex: '-1' });
  picker.hidden = true;
  const label = `Add pictures (${LIMITS})`;
  const attach = h(
    'button',
    { class: 'icon-button', type: 'button', 'aria-label': label, title: label },
    icon('picture'),
  );
  const pictures = startPictures(actions.upload, () => refresh());
  const waiting = startQueue(actions.queued);
  const sources = { commands: () => shown?.info.commands ?? [], files: actions.files };
  /** @param {number} from @param {number} to @param {string} text */
  const replace = (from, to, text) => {
    input.setRangeText(text, from, to, 'end');
    changed();
  };
  const completion = startCompletion(input, sources, replace, () => doSend());

  const workingText = h('span', { class: 'working-text' });
  const advice = h('span', { role: 'status' });
  const restart = h('button', { class: 'button small', type: 'button', onclick: actions.restart }, 'Restart agent');
  const working = h(
    'div',
    { class: 'working', id: 'working' },
    h('span', { class: 'spinner', 'aria-hidden': 'true' }),
    workingText,
    advice,
    restart,
  );
  const askedText = h('span', {});
  const asked = h(
    'div',
    { class: 'asked-bar' },
    icon('question'),
    askedText,
    h('button', { class: 'button small', type: 'button', onclick: actions.showQuestion }, 'Show'),
  );
  const problemText = h('span', {});
  const dismiss = h('button', { class: 'icon-button', type: 'button', 'aria-label': 'Dismiss' }, icon('remove'));
  const problem = h('div', { class: 'problem', role: 'alert' }, problemText, dismiss);
  problem.hidden = true;
  dismiss.addEventListener('click', () => showError(''));
  const form = h(
    'form',
    { class: 'input-box' },
    pictures.element,
    completion.element,
    h('div', { class: 'input-line' }, input, h('div', { class: 'input-buttons' }, picker, attach, queue, stop, send)),
  );
  place.prepend(problem, asked, working, waiting.element, form);

  /** @param {string} message */
  const showError = (message) => {
    problemText.textContent = message;
    problem.hidden = !message;
  };
  /** @param {Promise<unknown>} doing */
  const attempt = async (doing) => {
    try {
      await doing;
      return true;
    } catch (error) {
      showError(error instanceof Error ? error.message : String(error));
      return false;
    }
  };

  const grow = () => {
    const most = Math.round(innerHeight * 0.4);
    // The box keeps its height while the input is measured, so that the conversation above does not move.
    form.style.minHeight = `${form.offsetHeight}px`;
    input.style.height = 'auto';
    const wanted = input.scrollHeight;
    input.style.height = `${Math.min(wanted, most)}px`;
    input.style.overflowY = wanted > most ? 'auto' : 'hidden';
    form.style.minHeight = '';
  };

  /** @param {string} text */
  const setText = (text) => {
    input.value = text;
    input.setSelectionRange(text.length, text.length);
    changed();
  };
  const changed = () => {
    grow();
    refresh();
    actions.draft(input.value);
    completion.offer();
  };

  const hasContent = () => (input.value.trim() !== '' || pictures.count() > 0) && pictures.ready();

  /** The reason why a message cannot be sent now; empty if it can. */
  const reasonNotToSend = () => {
    if (!shown) return 'The session is still loading';
    if (!shown.online) return 'The server is not reachable';
    if (shown.status === 'disconnected') return `${shown.agentName} is disconnected`;
    if (shown.status === 'reconnecting') return `Reconnecting to ${shown.agentName}…`;
    if (!pictures.ready()) return 'Uploading picture…';
    return '';
  };

  const refresh = () => {
    const why = reasonNotToSend();
    const busy = Boolean(shown?.info.turn);
    const empty = !hasContent();
    const cannot = why || (busy ? 'A turn is running' : '') || (empty ? 'Type a message' : '');
    send.disabled = cannot !== '';
    send.title = cannot || 'Send (Enter)';
    stop.hidden = !busy;
    stop.disabled = !shown?.online || shown?.info.turn?.phase === 'cancelling';
    queue.hidden = !busy;
    queue.disabled = empty || !shown?.online;
    const paused = Boolean(shown?.info.queueHeld);
    queue.title = paused ? 'Added to the paused queue (Alt+Enter)' : 'Sent when this turn ends (Alt+Enter)';
    attach.hidden = !shown?.info.takesImages;
    form.classList.toggle('away', why !== '');
    const name = shown?.agentName ?? 'the agent';
    input.placeholder =
      why ||
      (busy ? (TOUCH.matches ? 'Type a follow-up' : 'Type a follow-up; Alt+Enter queues it') : `Message ${name}`);
  };

  const clear = () => {
    history.reset();
    refused = -Infinity;
    showError('');
    setText('');
    completion.close();
  };
  const doSend = () => {
    // The message is sent as soon as the session has loaded.
    eager = !shown && hasContent();
    if (!queue.hidden && !queue.disabled) {
      refused = Date.now();
      tick(refused);
    }
    if (send.disabled) return;
    const text = input.value;
    const images = pictures.take();
    clear();
    actions.send(text, images);
  };
  const doQueue = async () => {
    if (queue.hidden || queue.disabled) return;
    const [text, images] = [input.value, pictures.take()];
    clear();
    // If queueing fails, the text returns to the input.
    if (!(await attempt(actions.queue(text, images))) && input.value === '') setText(text);
  };
  const doStop = () => {
    if (!stop.hidden && !stop.disabled) attempt(actions.stop());
  };

  input.addEventListener('input', () => {
    eager = false;
    changed();
  });
  input.addEventListener('blur', completion.close);
  input.addEventListener('keydown', (event) => {
    // The Enter key that ends an IME composition does not send the message.
    if (event.isComposing || event.keyCode === 229) return;
    if (completion.key(event)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.key === 'Enter' && event.altKey) {
      event.preventDefault();
      if (shown?.info.turn) doQueue();
      else doSend();
    } else if (event.key === 'Enter' && !event.shiftKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      doSend();
    } else if ((event.key === 'ArrowUp' || event.key === 'ArrowDown') && !event.shiftKey && !event.altKey) {
      const text = history.step(event.key, input.value);
      if (text === null) return;
      event.preventDefault();
      setText(text);
      completion.close();
    }
  });
  input.addEventListener('paste', (event) => takeFiles(event, event.clipboardData));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    doSend();
  });
  send.addEventListener('click', doSend);
  stop.addEventListener('click', doStop);
  queue.addEventListener('click', doQueue);
  attach.addEventListener('click', () => picker.click());
  picker.addEventListener('change', () => {
    pictures.add(picker.files ?? []);
    picker.value = '';
  });
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault();
    takeFiles(event, event.dataTransfer);
  });
  addEventListener('resize', grow);

  /** @param {Event} event @param {DataTransfer | null} data */
  const takeFiles = (event, data) => {
    const files = [...(data?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    if (shown?.info.takesImages) pictures.add(files);
    else showError(`${shown?.agentName ?? 'This agent'} does not support pictures.`);
  };

  /** @param {number} now */
  const tick = (now) => {
    const turn = shown?.info.turn;
    const away = shown !== null && !shown.online;
    const starting = shown?.status === 'starting' || turn?.phase === 'starting';
    const asks = shown !== null && askedFirst(shown.info) !== undefined;
    working.hidden = !turn && !starting && !away;
    restart.hidden = !turn?.quietSince || away;
    working.classList.toggle('quiet', Boolean(turn?.quietSince) || asks || away);
    working.classList.toggle('still', asks || away);
    workingText.textContent = away ? AWAY : describe(turn, starting, asks, shown?.agentName ?? '', now);
    const said = turn && !away && now - refused < ADVICE_MS ? ADVICE : '';
    if (advice.textContent !== said) advice.textContent = said;
    queue.classList.toggle('advised', said !== '');
  };

  refresh();
  return {
    showError,
    /** @param {Shown} now */
    show: (now) => {
      shown = now;
      waiting.show(now.info.queue, now.info.queueHeld, Boolean(now.info.turn));
      const question = askedFirst(now.info);
      asked.hidden = question === undefined || !reminding;
      askedText.textContent = question === undefined ? '' : `${now.agentName} needs your answer: ${question}`;
      refresh();
      if (eager) doSend();
    },
    /** Shows the reminder bar while open requests are scrolled out of view. @param {boolean} isAway */
    remind: (isAway) => {
      reminding = isAway;
      asked.hidden = !isAway || !shown || askedFirst(shown.info) === undefined;
    },
    /** Updates the state of the turn. Called every second and after each change. @param {number} now */
    tick,
    /** @param {string} text */
    fill: (text) => {
      if (text && input.value === '') setText(text);
    },
    focus: () => input.focus(),
    stop: doStop,
  };
}

/** The text of the first open permission request or elicitation. @param {import('../types/wire.js').SessionInfo} info */
const askedFirst = ({ permissions, questions }) => permissions[0]?.title ?? questions[0]?.message;

const AWAY = 'The server is not reachable. Drafts are saved. Reconnecting…';
const ADVICE = TOUCH.matches
  ? 'A turn is running. Queue sends the message when it ends.'
  : 'Alt+Enter queues the message, Escape stops the turn.';
/** How long the advice is shown, in milliseconds. */
const ADVICE_MS = 6000;

/** @param {import('../types/wire.js').RunningTurn | undefined} turn @param {boolean} starting @param {boolean} asks @param {string} name @param {number} now */
function describe(turn, starting, asks, name, now) {
  if (starting) return `Starting ${name}…`;
  if (!turn) return '';
  const time = clock(now - Date.parse(turn.startedAt));
  if (turn.phase === 'cancelling') return `Stopping… ${time}`;
  if (asks) return `Waiting for your answer · ${time}`;
  if (turn.quietSince) return `Working ${time} · quiet for ${duration(now - Date.parse(turn.quietSince))}`;
  return `Working ${time}`;
}

/** @param {import('../shared/icons.js').IconName} shape @param {string} text @param {string} className */
function labelled(shape, text, className) {
  return h('button', { class: `button ${className}`, type: 'button' }, icon(shape), h('span', {}, text));
}
