/** The view of a command's output with terminal colours, updated while the command runs. */

import { Terminal } from '../shared/ansi.js';
import { h } from '../shared/dom.js';
import { lineOf } from '../shared/terminal-lines.js';

/** @typedef {Extract<import('../types/wire.js').ToolContent, { type: 'terminal' }>} Output */

const LINES_SHOWN = 20;
const LINES_MAX = 2000;

/** @param {import('./view-context.js').ViewContext} context @param {string} key */
export function terminalView(context, key) {
  const screen = h('pre', { class: 'output terminal', tabindex: '0', 'aria-label': 'Output' });
  const more = h('button', { class: 'link-button', type: 'button' });
  const exit = h('p', { class: 'exit' });
  const element = h('div', { class: 'capped' }, more, screen, exit);
  let terminal = new Terminal();
  let generation = 0;
  let fed = 0;
  /** Number of the first line shown, counted from the first line of the output. */
  let top = 0;

  const render = () => {
    const all = context.opened.get(key) ?? false;
    const lines = terminal.lines.at(-1)?.length === 0 ? terminal.lines.slice(0, -1) : terminal.lines;
    const from = Math.max(0, lines.length - (all ? LINES_MAX : LINES_SHOWN));
    // Keep the elements of lines above the first change, unless the first shown line is a different one.
    const stays = from + terminal.dropped === top ? Math.max(0, Math.min(terminal.changed, lines.length) - from) : 0;
    top = from + terminal.dropped;
    while (screen.children.length > stays) screen.lastChild?.remove();
    for (const line of lines.slice(from + screen.children.length)) screen.append(lineOf(line));
    terminal.changed = Infinity;
    more.hidden = lines.length <= LINES_SHOWN;
    more.textContent = all
      ? `Show the last ${LINES_SHOWN} lines`
      : `Show ${lines.length > LINES_MAX ? `the last ${LINES_MAX}` : `all ${lines.length}`} lines`;
    screen.hidden = lines.length === 0;
  };
  more.addEventListener('click', () => {
    context.opened.set(key, !(context.opened.get(key) ?? false));
    terminal.changed = 0;
    top = -1;
    render();
  });

  return {
    element,
    /** @param {Output} output @param {import('./transcript.js').Item} item */
    update: (output, item) => {
      const written = item.output.get(output.terminalId) ?? 0;
      const fresh = written - fed;
      if (item.generation !== generation || fresh > output.output.length) {
        terminal = new Terminal();
        top = -1;
        terminal.feed(output.output);
        generation = item.generation;
      } else if (fresh > 0) {
        terminal.feed(output.output.slice(-fresh));
      }
      fed = written;
      render();
      exit.hidden = !output.exit;
      if (output.exit) exit.textContent = exitText(output.exit);
      exit.classList.toggle('bad', Boolean(output.exit && output.exit.code !== 0));
    },
  };
}

/** @param {import('../types/wire.js').TerminalExit} exit */
function exitText({ code, signal }) {
  if (signal) return `Ended by ${signal}`;
  return code === 0 ? 'Exit code 0' : `Failed with exit code ${code ?? 'unknown'}`;
}
