/**
 * Validation of an elicitation form: which values a field allows, and what the user filled in. Pure.
 *
 * The server validates everything again. Patterns are checked only there, because a regular expression from an agent
 * could block this page.
 *
 * @typedef {import('../types/wire.js').FormField} FormField
 *
 * Current content of a field: typed text, the state of a checkbox, or the values of the ticked checkboxes.
 * @typedef {string | boolean | string[]} Filled
 * @typedef {string | number | boolean | string[]} Value
 */

/** @param {FormField} field */
export const labelOf = ({ title, name }) => title || name;

/** Initial content of a field: its default, or empty. @param {FormField} field @returns {Filled} */
export function initialValue({ input }) {
  switch (input.type) {
    case 'boolean':
      return input.default ?? false;
    case 'choices':
      return input.default ?? [];
    case 'number':
      return input.default === undefined ? '' : String(input.default);
    case 'text':
      return input.format === 'date-time' ? localTime(input.default ?? '') : (input.default ?? '');
    default:
      return input.default ?? '';
  }
}

/**
 * The value of a field, or the validation error. An optional field that is empty has neither.
 * @param {FormField} field @param {Filled} filled @returns {{ value?: Value, problem?: string }}
 */
export function validate(field, filled) {
  const { input, required } = field;
  if (filled === '' || (Array.isArray(filled) && filled.length === 0)) {
    if (required) return { problem: input.type.startsWith('choice') ? 'Choose an answer.' : 'This field is required.' };
    return {};
  }
  if (input.type === 'text') return readText(input, String(filled));
  if (input.type === 'number') return readNumber(input, String(filled));
  if (input.type === 'choices' && Array.isArray(filled)) {
    const { minItems = 0, maxItems = Infinity } = input;
    if (filled.length < minItems) return { problem: `Choose at least ${minItems}.` };
    if (filled.length > maxItems) return { problem: `Choose at most ${maxItems}.` };
  }
  return { value: filled };
}

/** @param {Extract<FormField['input'], { type: 'text' }>} input @param {string} text */
function readText({ format, minLength = 0, maxLength = Infinity }, text) {
  // Counted in code points, as on the server, not in UTF-16 code units.
  const { length } = [...text];
  if (length < minLength) return { problem: `Enter at least ${characters(minLength)}.` };
  if (length > maxLength) return { problem: `Enter at most ${characters(maxLength)}. The text has ${length}.` };
  if (format === 'email' && !/^[^@ ]+@[^@ ]+$/.test(text)) return { problem: 'Enter an e-mail address.' };
  if (format === 'uri' && !/^[a-z][a-z0-9+.-]*:\S+$/i.test(text)) {
    return { problem: 'Enter an address such as https://example.com.' };
  }
  if (format === 'date' && Number.isNaN(Date.parse(text))) return { problem: 'Choose a date.' };
  if (format !== 'date-time') return { value: text };
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? { problem: 'Choose a date and a time.' } : { value: time.toISOString() };
}

/** @param {number} count */
const characters = (count) => `${count} character${count === 1 ? '' : 's'}`;

/** @param {Extract<FormField['input'], { type: 'number' }>} input @param {string} text */
function readNumber({ whole, minimum = -Infinity, maximum = Infinity }, text) {
  const value = Number(text.trim());
  if (text.trim() === '' || !Number.isFinite(value)) return { problem: 'Enter a number.' };
  if (whole && !Number.isInteger(value)) return { problem: 'Enter a whole number.' };
  if (value < minimum) return { problem: `Enter a number of at least ${minimum}.` };
  if (value > maximum) return { problem: `Enter a number of at most ${maximum}.` };
  return { value };
}

/** A hint with the limits of a field; empty if the field has none. @param {FormField} field */
export function rulesOf({ input }) {
  if (input.type === 'number') {
    const { whole, minimum, maximum } = input;
    const kind = whole ? 'A whole number' : 'A number';
    if (minimum !== undefined && maximum !== undefined) return `${kind} from ${minimum} to ${maximum}.`;
    if (minimum !== undefined) return `${kind}, at least ${minimum}.`;
    if (maximum !== undefined) return `${kind}, at most ${maximum}.`;
    return whole ? 'A whole number.' : '';
  }
  if (input.type === 'choices') {
    const { minItems, maxItems } = input;
    if (minItems && maxItems)
      return minItems === maxItems ? `Choose ${minItems}.` : `Choose ${minItems} to ${maxItems}.`;
    if (minItems) return `Choose at least ${minItems}.`;
    return maxItems ? `Choose at most ${maxItems}.` : '';
  }
  return '';
}

/** The value as readable text; options are shown by title. @param {FormField} field @param {Value} value */
export function valueText({ input }, value) {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No';
  const titleOf = /** @param {string} one */ (one) =>
    ('options' in input && input.options.find((option) => option.value === one)?.title) || one;
  return Array.isArray(value) ? value.map(titleOf).join(', ') : titleOf(String(value));
}

/** Converts an ISO time to the format of a `datetime-local` input. @param {string} text */
function localTime(text) {
  const time = new Date(text);
  if (text === '' || Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
