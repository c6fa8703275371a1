/** The view of a permission request: its title, its options with the agent's names, and their shortcut keys. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { exact, titled } from './markup.js';
import { screenReaderText } from './view-context.js';

/** @typedef {import('../types/wire.js').PermissionQuestion} PermissionQuestion */

/** Number of options that have a shortcut key. */
const KEYS = 4;

/** @param {PermissionQuestion} question @param {import('./view-context.js').ViewContext} context */
export function questionView(question, context) {
  const problem = h('p', { class: 'field-error', role: 'alert' });
  let answering = false;
  const buttons = question.options.map((option, index) => {
    const allows = option.kind.startsWith('allow');
    const answer = async () => {
      if (answering) return;
      // `aria-disabled` instead of `disabled`, so that the button keeps the focus.
      answering = true;
      for (const button of buttons) button.setAttribute('aria-disabled', 'true');
      try {
        await context.permit(question.permissionId, option.optionId);
      } catch (error) {
        problem.textContent = error instanceof Error ? error.message : String(error);
        for (const button of buttons) button.removeAttribute('aria-disabled');
        answering = false;
      }
    };
    const key = index < KEYS && h('kbd', { 'aria-hidden': 'true' }, String(index + 1));
    return h(
      'button',
      { class: `button${allows ? ' allows' : ''}`, type: 'button', onclick: answer, 'data-option': option.optionId },
      ...exact(option.name || option.optionId),
      key,
    );
  });
  return h(
    'section',
    { class: 'question', 'aria-label': `${context.agentName()} asks`, 'data-permission': question.permissionId },
    h(
      'p',
      { class: 'question-title' },
      icon('question'),
      h('strong', {}, `${context.agentName()} asks`),
      screenReaderText(': '),
      h('span', {}, ...titled(question.title || 'for permission')),
    ),
    h('div', { class: 'question-options' }, ...buttons),
    h(
      'p',
      { class: 'hint' },
      reasonOf(question),
      ...(buttons.length > 1 ? ['Keys ', h('kbd', {}, '1'), '–'] : ['Key ']),
      h('kbd', {}, String(Math.min(buttons.length, KEYS))),
      ', while typing with ',
      h('kbd', {}, 'Alt+Shift'),
      '.',
    ),
    problem,
  );
}

/** The reason why a permission request is shown to the user. @param {PermissionQuestion} question */
function reasonOf(question) {
  if (question.guarded) return 'Always needs approval: other programs execute this file. ';
  const otherwise = narrowestAllowOption(question);
  return otherwise ? `The policy “allow” would choose “${otherwise.name}”. ` : '';
}

/** The narrowest option that allows the action. @param {PermissionQuestion} question */
function narrowestAllowOption({ options }) {
  return options.find(({ kind }) => kind === 'allow_once') ?? options.find(({ kind }) => kind === 'allow_always');
}
