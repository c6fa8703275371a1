/** The status line under the input: the agent's config options, its context usage and the turn's elapsed time. */

import { h } from '../shared/dom.js';
import { choices } from './choices.js';
import { clock, short } from './format.js';

/**
 * @typedef {import('../types/wire.js').SessionInfo} SessionInfo
 * @typedef {import('./choices.js').Choice} Choice
 *
 * @typedef {object} Actions
 * @property {(modeId: string) => Promise<unknown>} setMode
 * @property {(optionId: string, value: string | boolean) => Promise<unknown>} setOption
 * @property {(policy: 'allow' | 'ask') => Promise<unknown>} setPolicy
 * @property {(message: string) => void} showError
 */

/** @param {HTMLElement} place @param {Actions} actions */
export function startStatusLine(place, actions) {
  const agent = h('span', { class: 'status-agent' });
  const chosen = h('span', { class: 'status-choices' });
  const usage = h('span', { class: 'usage' });
  const meter = h('meter', { class: 'usage-meter', min: '0', max: '1', low: '0.7', high: '0.9', optimum: '0' });
  meter.setAttribute('aria-label', 'Context used');
  const usageText = h('span', {});
  usage.append(meter, usageText);
  const elapsed = h('span', { class: 'elapsed' });
  place.append(agent, chosen, usage, elapsed);
  let shown = '';

  /** @param {() => Promise<unknown>} change */
  const attempt = async (change) => {
    try {
      await change();
    } catch (error) {
      // The change failed: render again, so that the control shows the current value.
      shown = '';
      actions.showError(error instanceof Error ? error.message : String(error));
    }
  };

  /** @param {Choice} choice @param {(value: string | boolean) => Promise<unknown>} change @param {boolean} disabled */
  const control = (choice, change, disabled) => {
    if (choice.kind === 'boolean') {
      const box = h('input', { type: 'checkbox', disabled });
      box.checked = choice.current === true;
      box.addEventListener('change', () => attempt(() => change(box.checked)));
      return h('label', { class: 'status-switch', title: choice.description || choice.name }, box, choice.name);
    }
    const select = h('select', { class: 'status-select', 'aria-label': choice.name, disabled });
    select.title = choice.description || choice.name;
    for (const group of choice.groups) {
      const options = group.options.map(({ value, name, description }) =>
        h('option', { value, title: description || undefined, selected: value === choice.current }, name),
      );
      select.append(...(group.name ? [h('optgroup', { label: group.name }, ...options)] : options));
    }
    select.addEventListener('change', () => attempt(() => change(select.value)));
    return select;
  };

  return {
    /** @param {SessionInfo} info @param {string} agentName @param {boolean} online */
    show: (info, agentName, online) => {
      agent.textContent = agentName;
      const { usage: used } = info;
      usage.hidden = !used || used.size === 0;
      if (used && used.size > 0) {
        const part = used.used / used.size;
        meter.value = part;
        usageText.textContent = `${Math.round(part * 100)} %${used.cost ? ` · ${used.cost}` : ''}`;
        usage.title = `${short(used.used)} of ${short(used.size)} tokens of context used`;
      }
      // The controls are rendered only after a change, because rendering closes an open list.
      const state = JSON.stringify([info.modes, info.options, info.policy, online]);
      if (state === shown) return;
      shown = state;
      const options = choices(info.options);
      const modes = info.modes;
      const hasMode = options.some(({ category }) => category === 'mode');
      const controls = options.map((choice) =>
        control(choice, (value) => actions.setOption(choice.id, value), !online),
      );
      if (modes && modes.available.length > 0 && !hasMode) {
        const named = modes.available.map(({ id, name, description = '' }) => ({ value: id, name, description }));
        const mode = selectChoice('mode', 'Mode', modes.current, named);
        controls.push(control(mode, (value) => actions.setMode(String(value)), !online));
      }
      const policies = [
        { value: 'allow', name: 'Allows everything', description: 'Approves every permission request automatically' },
        { value: 'ask', name: 'Asks you', description: 'You answer each permission request' },
      ];
      const policy = selectChoice('policy', 'Permissions', info.policy, policies);
      controls.push(control(policy, (value) => actions.setPolicy(value === 'ask' ? 'ask' : 'allow'), !online));
      const inside = /** @type {(Element | null)[]} */ ([...chosen.querySelectorAll('select, input')]);
      const focused = inside.indexOf(document.activeElement);
      chosen.replaceChildren(...controls);
      const again = chosen.querySelectorAll('select, input')[focused];
      if (again instanceof HTMLElement) again.focus();
    },
    /** @param {number | null} milliseconds */
    tick: (milliseconds) => {
      elapsed.textContent = milliseconds === null ? '' : clock(milliseconds);
    },
  };
}

/** @param {string} id @param {string} name @param {string} current @param {import('./choices.js').Option[]} options @returns {Choice} */
function selectChoice(id, name, current, options) {
  return { id, name, description: '', category: '', kind: 'select', current, groups: [{ name: '', options }] };
}
