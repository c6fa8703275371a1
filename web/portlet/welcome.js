/** The hints shown in a session without entries. */

import { h } from '../shared/dom.js';

/** @param {string} agentName @param {string} place  path or name of the project */
export function welcome(agentName, place) {
  return [
    h('p', { class: 'empty-title' }, `A new session with ${agentName}`),
    h('p', { class: 'hint' }, `It works in ${place}. Describe a task.`),
    h(
      'p',
      { class: 'hint' },
      h('kbd', {}, 'Enter'),
      ' sends, ',
      h('kbd', {}, 'Shift Enter'),
      ' starts a new line, ',
      h('kbd', {}, '/'),
      ' lists commands, ',
      h('kbd', {}, '@'),
      ' mentions a file.',
    ),
  ];
}
