/** What a session says before anything was said in it. */

import { h } from '../shared/dom.js';

/** @param {string} agentName @param {string} place  where it works */
export function welcome(agentName, place) {
  return [
    h('p', { class: 'empty-title' }, `A new session with ${agentName}`),
    h('p', { class: 'hint' }, `It works in ${place}. Say what you want done.`),
    h(
      'p',
      { class: 'hint' },
      h('kbd', {}, 'Enter'),
      ' sends, ',
      h('kbd', {}, 'Shift Enter'),
      ' breaks the line, ',
      h('kbd', {}, '/'),
      ' lists commands, ',
      h('kbd', {}, '@'),
      ' names a file.',
    ),
  ];
}
