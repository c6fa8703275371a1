/** The theme button, which cycles through system, dark and light. */

import { icon } from './icons.js';
import { recall, remember } from './storage.js';

/** @typedef {'system' | 'dark' | 'light'} Theme */

const KEY = 'liminal:theme';
/** @type {Theme[]} */
const THEMES = ['system', 'dark', 'light'];
const NAMES = { system: 'as the system', dark: 'dark', light: 'light' };

/**
 * @param {HTMLButtonElement} button
 * @param {() => void} [onChange]
 */
export function startTheme(button, onChange) {
  let theme = recall(KEY, asTheme, /** @type {Theme} */ ('system'));

  const show = () => {
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const label = `Theme: ${NAMES[theme]}`;
    button.setAttribute('aria-label', label);
    button.title = label;
    button.replaceChildren(icon(theme));
    onChange?.();
  };
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    remember(KEY, theme);
    show();
  });
  // Another window of this browser changed the theme.
  addEventListener('storage', (event) => {
    if (event.key !== KEY) return;
    theme = recall(KEY, asTheme, /** @type {Theme} */ ('system'));
    show();
  });
  show();
}

/** The theme applied to this page; null follows the system. @returns {'dark' | 'light' | null} */
export function chosenTheme() {
  const { theme } = document.documentElement.dataset;
  return theme === 'dark' || theme === 'light' ? theme : null;
}

/** @param {unknown} value */
function asTheme(value) {
  return THEMES.find((theme) => theme === value);
}
