/** The view of an elicitation: a form or a link while it is open, a collapsed line with the answers afterwards. */

import { h } from '../shared/dom.js';
import { icon } from '../shared/icons.js';
import { initialValue, labelOf, rulesOf, validate, valueText } from './form.js';
import { exact } from './markup.js';
import { copyButton, disclosure, screenReaderText } from './view-context.js';

/**
 * @typedef {import('./view-context.js').ViewContext} ViewContext
 * @typedef {import('./form.js').FormField} FormField
 * @typedef {import('./form.js').Filled} Filled
 * @typedef {Extract<import('../types/wire.js').ChatEntry, { type: 'question' }>} Question
 * @typedef {import('../types/wire.js').QuestionAction} Action
 * @typedef {{ element: HTMLElement, showError: (problem: string) => void, focus: () => void }} FieldView
 */

/** A single choice with more options than this uses a drop-down list instead of radio buttons. */
const RADIOS_MAX = 7;
/** Text fields limited to this many characters have one line. */
const ONE_LINE = 120;

const OUTCOMES = {
  accepted: 'answered',
  declined: 'declined',
  cancelled: 'cancelled',
  interrupted: 'interrupted',
};

/** @param {ViewContext} context @returns {import('./view-context.js').View} */
export function questionEntryView(context) {
  const element = h('div', { class: 'question-place' });
  const fold = disclosure(context, 'answered');
  let shown = '';
  return {
    element,
    update: (item) => {
      const question = /** @type {Question} */ (item.entry);
      const state = `${question.questionId} ${question.outcome ?? ''}`;
      if (question.outcome) showAnswers(fold, question);
      // An unchanged elicitation is not rendered again, so that the user's input is kept.
      if (state === shown) return;
      shown = state;
      const had = element.contains(document.activeElement);
      element.replaceChildren(question.outcome ? fold.element : openView(question, context));
      if (had && question.outcome) fold.summary.focus();
    },
  };
}

/** @param {ReturnType<typeof disclosure>} fold @param {Question} question */
function showAnswers(fold, question) {
  const { outcome = 'cancelled', ask, answers } = question;
  const fields = ask.type === 'form' ? ask.fields : [];
  const answered = fields.flatMap((field) => {
    const value = answers?.[field.name];
    return value === undefined ? [] : [{ label: labelOf(field), words: valueText(field, value) }];
  });
  const word =
    ask.type === 'link' && outcome === 'accepted' ? (ask.finished ? 'finished' : 'accepted') : OUTCOMES[outcome];
  fold.element.dataset.outcome = outcome;
  fold.summary.replaceChildren(
    icon('question', 'kind'),
    h('span', { class: 'tool-name' }, ...exact(question.message)),
    h('span', { class: 'tool-detail' }, ...exact(answered.map(({ words }) => words).join(' · '))),
    h('span', { class: 'tool-time' }),
    h('span', { class: 'tool-state' }, icon(outcome === 'accepted' ? 'done' : 'remove'), h('span', {}, word)),
    icon('chevron', 'opener'),
  );
  fold.show(`question-${question.entryId}`, false, () => {
    fold.body.replaceChildren(
      h('p', { class: 'plain' }, ...exact(question.message)),
      ask.type === 'link' ? linkOf(ask.url) : '',
      h(
        'dl',
        { class: 'answers' },
        ...answered.flatMap(({ label, words }) => [h('dt', {}, ...exact(label)), h('dd', {}, ...exact(words))]),
      ),
      answered.length === 0 && ask.type === 'form' ? h('p', { class: 'hint' }, 'No field was filled in.') : '',
    );
  });
}

/** @param {Question} question @param {ViewContext} context */
function openView(question, context) {
  const { ask, questionId, entryId } = question;
  const problem = h('p', { class: 'field-error', role: 'alert' });
  const fields = ask.type === 'form' ? ask.fields : [];
  const drafts = draftOf(context, questionId, fields);
  const views = fields.map((field, at) => fieldView(field, `${entryId}-${at}`, drafts));
  /** @type {HTMLButtonElement[]} */
  const buttons = [];

  /** @param {Action} action @param {Record<string, import('./form.js').Value>} [content] */
  const answer = async (action, content) => {
    problem.textContent = '';
    for (const button of buttons) button.disabled = true;
    try {
      await context.answer(questionId, action, content);
      context.drafts.delete(questionId);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const at = fields.findIndex((field) => message.startsWith(`“${labelOf(field)}”`));
      if (at >= 0) {
        views[at].showError(message);
        views[at].focus();
      } else {
        problem.textContent = message;
      }
      for (const button of buttons) button.disabled = false;
    }
  };

  const submit = () => {
    /** @type {Record<string, import('./form.js').Value>} */
    const content = {};
    /** @type {FieldView | undefined} */
    let wrong;
    for (const [at, field] of fields.entries()) {
      const { value, problem = '' } = validate(field, drafts.get(field.name) ?? '');
      views[at].showError(problem);
      if (problem) wrong ??= views[at];
      else if (value !== undefined) content[field.name] = value;
    }
    if (wrong) wrong.focus();
    else answer('accept', ask.type === 'form' ? content : undefined);
  };

  const named = ask.type === 'form' ? 'Submit' : 'Accept';
  buttons.push(
    h('button', { class: 'button primary', type: 'button', onclick: submit }, named),
    h('button', { class: 'button', type: 'button', onclick: () => answer('decline') }, 'Decline'),
    h('button', { class: 'button', type: 'button', onclick: () => answer('cancel') }, 'Cancel'),
  );
  const needed = fields.some(({ required }) => required);
  const titleId = `${entryId}-title`;
  // Not a `form` element: the sandbox of this frame does not allow form submission.
  const form = h(
    'div',
    { class: 'question', role: 'form', 'aria-labelledby': titleId, 'data-question': questionId },
    h(
      'p',
      { class: 'question-title', id: titleId },
      icon('question'),
      h('strong', {}, `${context.agentName()} asks`),
      screenReaderText(': '),
      h('span', { class: 'question-message' }, ...exact(question.message)),
    ),
    ask.type === 'form' && ask.title ? h('p', { class: 'form-title' }, ...exact(ask.title)) : '',
    ask.type === 'form' && ask.description ? h('p', { class: 'hint' }, ...exact(ask.description)) : '',
    ask.type === 'link' ? linkOf(ask.url, context) : '',
    ...views.map((view) => view.element),
    h('div', { class: 'question-options' }, ...buttons),
    problem,
    h('p', { class: 'hint' }, ...hints(ask.type, needed)),
  );
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && event.target instanceof HTMLElement) {
      // Escape would otherwise stop the turn, and the form with it.
      event.preventDefault();
      context.leave();
    }
    const field = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
    if (event.key === 'Enter' && field && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      buttons[0].click();
    }
  });
  return form;
}

/** @param {'form' | 'link'} type @param {boolean} needed */
function hints(type, needed) {
  if (type === 'link') return ['The page opens only when you click the link. Accept, so that the agent continues.'];
  const keys = [h('kbd', {}, 'Enter'), ' submits, ', h('kbd', {}, 'Esc'), ' returns to the message input.'];
  return needed ? [h('span', { class: 'needed', 'aria-hidden': 'true' }, '*'), ' is required. ', ...keys] : keys;
}

/** A link with its full address, after its host. @param {string} url @param {ViewContext} [context]  adds a copy button */
function linkOf(url, context) {
  const host = URL.canParse(url) ? new URL(url).host : '';
  return h(
    'p',
    { class: 'question-link' },
    'A page of ',
    h('strong', {}, ...exact(host)),
    ': ',
    h('a', { href: url, class: 'mono', rel: 'noreferrer' }, ...exact(url)),
    context ? copyButton(context, () => url, 'address') : '',
  );
}

/**
 * The content of the form's fields, kept while the form is scrolled out of the page.
 * @param {ViewContext} context @param {string} id @param {FormField[]} fields
 */
function draftOf(context, id, fields) {
  const known = context.drafts.get(id);
  if (known) return known;
  /** @type {Map<string, Filled>} */
  const draft = new Map(fields.map((field) => [field.name, initialValue(field)]));
  context.drafts.set(id, draft);
  return draft;
}

/** @param {FormField} field @param {string} id @param {Map<string, Filled>} drafts @returns {FieldView} */
function fieldView(field, id, drafts) {
  const problem = h('p', { class: 'field-error', id: `${id}-problem` });
  const about = [field.description, rulesOf(field)].filter(Boolean).join(' ');
  const hint = about ? h('p', { class: 'hint', id: `${id}-hint` }, ...exact(about)) : '';
  const described = { 'aria-describedby': `${about ? `${id}-hint ` : ''}${id}-problem` };
  const mark = field.required ? h('span', { class: 'needed', 'aria-hidden': 'true' }, ' *') : '';
  const label = [...exact(labelOf(field)), mark];
  const filled = drafts.get(field.name) ?? '';
  const keep = /** @param {Filled} now */ (now) => {
    drafts.set(field.name, now);
    showError('');
  };
  const { controls, element } = controlsOf(field, id, label, described, filled, keep);
  /** @param {string} text */
  const showError = (text) => {
    if (problem.textContent !== text) problem.textContent = text;
    for (const control of controls) control.setAttribute('aria-invalid', String(text !== ''));
  };
  element.append(hint, problem);
  return { element, showError, focus: () => (controls.find(({ checked }) => checked) ?? controls[0]).focus() };
}

/**
 * @param {FormField} field @param {string} id @param {import('../shared/dom.js').Child[]} label
 * @param {{ 'aria-describedby': string }} described @param {Filled} filled @param {(now: Filled) => void} keep
 * @returns {{ element: HTMLElement, controls: (HTMLElement & { checked?: boolean })[] }}
 */
function controlsOf(field, id, label, described, filled, keep) {
  const { input } = field;
  const required = field.required ? { 'aria-required': 'true' } : {};
  if (input.type === 'boolean') {
    const box = h('input', { type: 'checkbox', id, ...described });
    box.checked = filled === true;
    box.addEventListener('change', () => keep(box.checked));
    return {
      element: h('div', { class: 'form-field' }, h('label', { class: 'option' }, box, ...label)),
      controls: [box],
    };
  }
  if (input.type === 'choices' || (input.type === 'choice' && input.options.length <= RADIOS_MAX)) {
    return groupOf(field, id, label, described, filled, keep);
  }
  const control = input.type === 'choice' ? selectOf(input, filled) : textOf(input, filled);
  for (const [name, value] of Object.entries({ id, ...described, ...required })) control.setAttribute(name, value);
  control.addEventListener('input', () => keep(control.value));
  return {
    element: h('div', { class: 'form-field' }, h('label', { for: id }, ...label), control),
    controls: [control],
  };
}

/** @param {Extract<FormField['input'], { type: 'choice' }>} input @param {Filled} filled */
function selectOf({ options }, filled) {
  const select = h('select', { class: 'field' }, h('option', { value: '' }, 'Choose…'));
  for (const { value, title, description } of options) {
    select.append(h('option', { value }, description ? `${title} – ${description}` : title));
  }
  select.value = String(filled);
  return select;
}

/** @param {FormField['input']} input @param {Filled} filled */
function textOf(input, filled) {
  const format = input.type === 'text' ? input.format : undefined;
  const long = input.type === 'text' && !format && (input.maxLength ?? Infinity) > ONE_LINE;
  const kinds = { email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local' };
  const control = long
    ? h('textarea', { class: 'field', rows: '1', autocomplete: 'off' })
    : h('input', { class: 'field', type: format ? kinds[format] : 'text', autocomplete: 'off' });
  // Not `type="number"`, because its value is empty while the text is not a number.
  if (input.type === 'number') control.setAttribute('inputmode', input.whole ? 'numeric' : 'decimal');
  if (format === 'date-time') control.setAttribute('step', '1');
  control.value = String(filled);
  return control;
}

/**
 * A group of radio buttons or checkboxes.
 * @param {FormField} field @param {string} id @param {import('../shared/dom.js').Child[]} label
 * @param {{ 'aria-describedby': string }} described @param {Filled} filled @param {(now: Filled) => void} keep
 */
function groupOf(field, id, label, described, filled, keep) {
  const { input } = field;
  const options = 'options' in input ? input.options : [];
  const several = input.type === 'choices';
  const chosen = new Set(Array.isArray(filled) ? filled : [String(filled)]);
  const clear = h('button', { class: 'link-button', type: 'button' }, 'Clear');
  const controls = options.map(({ value }) => {
    const control = h('input', { type: several ? 'checkbox' : 'radio', name: id, value, ...described });
    control.checked = chosen.has(value);
    return control;
  });
  const changed = () => {
    const now = controls.filter(({ checked }) => checked).map(({ value }) => value);
    clear.hidden = several || Boolean(field.required) || now.length === 0;
    keep(several ? now : (now[0] ?? ''));
  };
  clear.hidden = several || Boolean(field.required) || filled === '';
  clear.addEventListener('click', () => {
    for (const control of controls) control.checked = false;
    changed();
    controls[0].focus();
  });
  const element = h(
    'fieldset',
    {
      class: 'form-field',
      role: several ? 'group' : 'radiogroup',
      'aria-required': several ? false : String(Boolean(field.required)),
    },
    h('legend', {}, ...label),
    ...options.map(({ title, description }, at) =>
      h(
        'label',
        { class: 'option' },
        controls[at],
        h('span', {}, ...exact(title), description ? h('span', { class: 'hint' }, ' ', ...exact(description)) : ''),
      ),
    ),
    clear,
  );
  element.addEventListener('change', changed);
  return { element, controls };
}
