/**
 * Installing an agent: the command that would run, its output while it runs, then the session the user wanted to start.
 * The installation continues on the server if this window shows something else.
 *
 * @typedef {import('../types/wire.js').Project} Project
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('./workspace.js').Agent} Agent
 *
 * @typedef {object} View  the part of the main area that shows the installation
 * @property {(...content: HTMLElement[]) => void} show
 * @property {() => boolean} isShown
 * @property {() => void} hide
 *
 * @typedef {object} Dependencies
 * @property {import('./socket.js').Socket} socket
 * @property {import('./toasts.js').Toasts} toasts
 * @property {(text: string) => void} copy
 * @property {(cliType: string) => Agent | undefined} agentOf
 */

import { h } from '../shared/dom.js';

/** Maximum characters of output kept in the page. */
const SHOWN_MAX = 64 * 1024;

/** @param {Dependencies} needs */
export function startInstall({ socket, toasts, copy, agentOf }) {
  /** Progress handlers of running installations, by agent id. @type {Map<string, (message: Progress) => void>} */
  const handlers = new Map();

  /** @typedef {Extract<ServerMessage, { type: 'agent:install' }>} Progress */

  /**
   * @param {Agent} agent
   * @param {View} view
   * @param {{ start?: () => void, place: string }} then  what happens after the installation, and a text that says so
   */
  const offer = (agent, view, then) => {
    const { name, about, install, cannotInstall, node, found } = agent;
    if (agent.installing) return void run(agent, view, then);
    const begin = button('Install', () => run(agent, view, then), 'primary');
    view.show(
      h('h2', {}, `${name} is not installed`),
      h('p', { class: 'hint' }, about ? `${about}. ${then.place}` : then.place),
      ...(node ? [h('p', { class: 'install-warning' }, node)] : []),
      ...(install === undefined
        ? [h('p', { class: 'field-error' }, cannotInstall ?? 'It cannot be installed on this machine.')]
        : [h('p', { class: 'hint' }, 'Install runs only this command:'), commandBlock(install, copy)]),
      actions(
        install !== undefined && begin,
        found && then.start && button('Start it without installing', then.start),
        button('Close', view.hide),
      ),
    );
    if (install !== undefined) begin.focus();
  };

  /** @param {Agent} agent @param {View} view @param {{ start?: () => void, place: string }} then */
  const run = async (agent, view, then) => {
    const { cliType, name } = agent;
    const output = h('pre', {
      class: 'install-output',
      role: 'log',
      tabindex: '0',
      'aria-label': `Output of installing ${name}`,
    });
    const quiet = h('p', { class: 'hint' }, 'No output yet.');
    const cancel = button('Cancel', () => {
      cancel.disabled = true;
      socket.request({ type: 'agent:install-cancel', cliType }).catch(() => {});
    });
    view.show(
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
    /** @param {Progress} progress */
    const onProgress = (progress) => {
      add(progress.output);
      if (progress.state === 'running') return;
      handlers.delete(cliType);
      const inView = view.isShown();
      if (progress.state === 'installed') {
        if (inView && then.start) then.start();
        else if (inView) showDone(agent, view, then);
        else toasts.show(`${name} is installed.`, then.start && { label: 'New session', run: then.start });
      } else if (progress.state === 'cancelled') {
        if (inView) offer(agentOf(cliType) ?? agent, view, then);
      } else if (inView) showFailed(agent, view, then, progress.message ?? '', output);
      else toasts.show(`${name} was not installed. ${progress.message ?? ''}`);
    };
    handlers.set(cliType, onProgress);
    try {
      const answer = await socket.request({ type: 'agent:install', cliType });
      if (answer.type === 'agent:install') add(answer.output);
    } catch (error) {
      handlers.delete(cliType);
      if (view.isShown()) showFailed(agent, view, then, error instanceof Error ? error.message : String(error), output);
    }
  };

  /** @param {Agent} agent @param {View} view @param {{ place: string }} then */
  const showDone = ({ name }, view, then) => {
    const close = button('Close', view.hide, 'primary');
    view.show(
      h('h2', {}, `${name} is installed`),
      h('p', { class: 'hint', role: 'status' }, then.place),
      actions(close),
    );
    close.focus();
  };

  /**
   * @param {Agent} agent @param {View} view @param {{ start?: () => void, place: string }} then
   * @param {string} message @param {HTMLElement} output
   */
  const showFailed = (agent, view, then, message, output) => {
    const again = button('Try again', () => run(agentOf(agent.cliType) ?? agent, view, then), 'primary');
    const outputText = output.textContent ?? '';
    view.show(
      h('h2', {}, `${agent.name} was not installed`),
      h('p', { class: 'field-error', role: 'alert' }, message),
      ...(outputText === '' ? [] : [output]),
      actions(
        again,
        outputText !== '' && button('Copy the output', () => copy(outputText)),
        agent.install !== undefined && button('Copy the command', () => copy(agent.install ?? '')),
        button('Close', view.hide),
      ),
    );
    output.scrollTop = output.scrollHeight;
    again.focus();
  };

  return {
    offer,
    /** @param {ServerMessage} message */
    receive: (message) => {
      if (message.type === 'agent:install') handlers.get(message.cliType)?.(message);
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
