/**
 * The agent's config options, parsed from ACP: lists (flat or grouped) and switches. Pure; an invalid or unknown option
 * is omitted.
 *
 * @typedef {{ value: string, name: string, description: string }} Option
 *
 * @typedef {object} Choice
 * @property {string} id
 * @property {string} name
 * @property {string} description
 * @property {string} category
 * @property {'select' | 'boolean'} kind
 * @property {string | boolean} current
 * @property {{ name: string, options: Option[] }[]} groups  options of a flat list are in one group with an empty name
 */

/** @param {Record<string, unknown>[]} options @returns {Choice[]} */
export function choices(options) {
  return options.flatMap(choice);
}

/** @param {Record<string, unknown>} option @returns {Choice[]} */
function choice(option) {
  const { id, name, type, currentValue } = option;
  if (typeof id !== 'string') return [];
  const base = {
    id,
    name: text(name) || id,
    description: text(option.description),
    category: text(option.category),
  };
  if (type === 'boolean') return [{ ...base, kind: 'boolean', current: currentValue === true, groups: [] }];
  if (type !== 'select' || !Array.isArray(option.options)) return [];
  const groups = grouped(option.options);
  if (groups.every((group) => group.options.length === 0)) return [];
  return [{ ...base, kind: 'select', current: text(currentValue), groups }];
}

/** @param {unknown[]} list */
function grouped(list) {
  /** @type {Choice['groups']} */
  const groups = [];
  for (const entry of list) {
    if (typeof entry !== 'object' || entry === null) continue;
    const one = /** @type {Record<string, unknown>} */ (entry);
    if (Array.isArray(one.options)) {
      groups.push({ name: text(one.name) || text(one.group), options: one.options.flatMap(optionOf) });
      continue;
    }
    if (groups.at(-1)?.name !== '') groups.push({ name: '', options: [] });
    groups.at(-1)?.options.push(...optionOf(one));
  }
  return groups;
}

/** @param {unknown} entry @returns {Option[]} */
function optionOf(entry) {
  const { value, name, description } = /** @type {Record<string, unknown>} */ (entry ?? {});
  return typeof value === 'string' ? [{ value, name: text(name) || value, description: text(description) }] : [];
}

/** @param {unknown} value */
const text = (value) => (typeof value === 'string' ? value : '');
