/**
 * Bringing an agent here: what would be run, then its output as it comes, then the session that was wanted. The server
 * goes on with it whatever this window shows.
 *
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('./workspace.js').Agent} Agent
 *
 * @typedef {object} Stage  what is in view is its owner's business
 * @property {(...content: HTMLElement[]) => void} show
 * @property {() => boolean} isShown
 * @property {() => void} hide
 *
 * @typedef {object} Needs
 * @property {import('./socket.js').Socket} socket
 * @property {import('./toasts.js').Toasts} toasts
 * @property {(text: string) => void} copy
 * @property {(cliType: string) => Agent | undefined} agentOf
 */

import { h } from '../shared/dom.js';

/** Characters of output that are kept in the page. */
const SHOWN_MAX = 64 * 1024;

/** @param {Needs} needs */
export function startInstall({ socket, toasts, copy, agentOf }) {
  /** What each one under way does with its news. @type {Map<string, (message: News) => void>} */
  const waiting = new Map();

  /** @typedef {Extract<ServerMessage, { type: 'agent:install' }>} News */

  /**
   * @param {Agent} agent
   * @param {Stage} stage
   * @param {{ start?: () => void, place: string }} then  what follows, and where
   */
  const offer = (agent, stage, then) => {
    const { name, about, install, cannotInstall, node, found } = agent;
    if (agent.installing) return void run(agent, stage, then);
    const begin = button('Install', () => run(agent, stage, then), 'primary');
    stage.show(
      h('h2', {}, `${name} is not installed`),
      h('p', { class: 'hint' }, about ? `${about}. ${then.place}` : then.place),
      ...(node ? [h('p', { class: 'install-warning' }, node)] : []),
      ...(install === undefined
        ? [h('p', { class: 'field-error' }, cannotInstall ?? 'There is no way to install it here.')]
        : [h('p', { class: 'hint' }, 'This will be run, and nothing else:'), commandBlock(install, copy)]),
      actions(
        install !== undefined && begin,
        found && then.start && button('Start it without installing', then.start),
        button('Close', stage.hide),
      ),
    );
    if (install !== undefined) begin.focus();
  };

  /** @param {Agent} agent @param {Stage} stage @param {{ start?: () => void, place: string }} then */
  const run = async (agent, stage, then) => {
    const { cliType, name } = agent;
    const output = h('pre', {
      class: 'install-output',
      role: 'log',
      tabindex: '0',
      'aria-label': `Output of installing ${name}`,
    });
    const quiet = h('p', { class: 'hint' }, 'Nothing has been said yet.');
    const cancel = button('Cancel', () => {
      cancel.disabled = true;
      socket.request({ type: 'agent:install-cancel', cliType }).catch(() => {});
    });
    stage.show(
      h(
        'div',
        { class: 'launch-line', role: 'status' },
        h('span', { class: 'working' }),
        h('h2', {}, `Installing ${name}…`),
      ),
      quiet,
      output,
      actions(cancel),
    );
    cancel.focus();

    /** @param {string} [text] */
    const add = (text) => {
      if (!text) return;
      quiet.remove();
      const atEnd = output.scrollTop + output.clientHeight >= output.scrollHeight - 8;
      output.append(text);
      if ((output.textContent?.length ?? 0) > SHOWN_MAX)
        output.textContent = output.textContent?.slice(-SHOWN_MAX) ?? '';
      if (atEnd) output.scrollTop = output.scrollHeight;
    };
    /** @param {News} news */
    const hear = (news) => {
      add(news.output);
      if (news.state === 'running') return;
      waiting.delete(cliType);
      const inView = stage.isShown();
      if (news.state === 'installed') {
        if (inView && then.start) then.start();
        else if (inView) showDone(agent, stage, then);
        else toasts.show(`${name} is installed.`, then.start && { label: 'New session', run: then.start });
      } else if (news.state === 'cancelled') {
        if (inView) offer(agentOf(cliType) ?? agent, stage, then);
      } else if (inView) showFailed(agent, stage, then, news.message ?? '', output);
      else toasts.show(`${name} was not installed. ${news.message ?? ''}`);
    };
    waiting.set(cliType, hear);
    try {
      const answer = await socket.request({ type: 'agent:install', cliType });
      if (answer.type === 'agent:install') add(answer.output);
    } catch (error) {
      waiting.delete(cliType);
      if (stage.isShown())
        showFailed(agent, stage, then, error instanceof Error ? error.message : String(error), output);
    }
  };

  /** @param {Agent} agent @param {Stage} stage @param {{ place: string }} then */
  const showDone = ({ name }, stage, then) => {
    const close = button('Close', stage.hide, 'primary');
    stage.show(
      h('h2', {}, `${name} is installed`),
      h('p', { class: 'hint', role: 'status' }, then.place),
      actions(close),
    );
    close.focus();
  };

  /**
   * @param {Agent} agent @param {Stage} stage @param {{ start?: () => void, place: string }} then
   * @param {string} message @param {HTMLElement} output
   */
  const showFailed = (agent, stage, then, message, output) => {
    const again = button('Try again', () => run(agentOf(agent.cliType) ?? agent, stage, then), 'primary');
    const said = output.textContent ?? '';
    stage.show(
      h('h2', {}, `${agent.name} was not installed`),
      h('p', { class: 'field-error', role: 'alert' }, message),
      ...(said === '' ? [] : [output]),
      actions(
        again,
        said !== '' && button('Copy the output', () => copy(said)),
        agent.install !== undefined && button('Copy the command', () => copy(agent.install ?? '')),
        button('Close', stage.hide),
      ),
    );
    output.scrollTop = output.scrollHeight;
    again.focus();
  };

  return {
    offer,
    /** @param {ServerMessage} message */
    receive: (message) => {
      if (message.type === 'agent:install') waiting.get(message.cliType)?.(message);
    },
  };
}

/** @param {string} label @param {() => void} run @param {string} [look] */
function button(label, run, look = '') {
  return h('button', { class: `button ${look}`.trim(), type: 'button', onclick: run }, label);
}

/** @param {...(HTMLElement | false | undefined)} buttons */
function actions(...buttons) {
  return h('div', { class: 'launch-actions' }, ...buttons);
}

/** @param {string} command @param {(text: string) => void} copy */
export function commandBlock(command, copy) {
  return h(
    'div',
    { class: 'command-block' },
    h('code', { tabindex: '0' }, command),
    h('button', { class: 'link-button', type: 'button', onclick: () => copy(command) }, 'Copy'),
  );
}
