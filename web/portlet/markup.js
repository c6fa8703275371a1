/**
 * The only place where text becomes elements. The server has made it safe: a short list of elements,
 * no script, no style; the page's policy would let none run either.
 */

/**
 * @typedef {{ createHTML: (text: string) => string }} Policy
 * @typedef {{ createPolicy: (name: string, rules: Policy) => Policy }} TrustedTypes
 */

const trusted = /** @type {{ trustedTypes?: TrustedTypes }} */ (globalThis).trustedTypes;
const policy = trusted?.createPolicy('liminal-markup', { createHTML: (text) => text });

/** @param {string} html  from the server @returns {DocumentFragment} */
export function fragment(html) {
  const template = document.createElement('template');
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
}
