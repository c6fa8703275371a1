/**
 * The global keyboard shortcuts, as data. Key presses come from this window or, while a session's page has the focus,
 * over its bridge.
 *
 * The shortcuts do not conflict with those of browsers: Alt with letters that open no browser menu, and Ctrl alone only
 * for Ctrl+K. Letters are matched by `code`, because Option on a Mac changes the `key` of a letter.
 *
 * @typedef {{ key: string, code: string, ctrl: boolean, meta: boolean, alt: boolean, shift: boolean }} Key
 *
 * @typedef {object} Shortcut
 * @property {string} command
 * @property {string} shown  text in the help sheet
 * @property {string} label
 * @property {(key: Key) => boolean} matches
 */

/** @param {string} code */
const alt = (code) => (/** @type {Key} */ key) => key.alt && !key.ctrl && !key.meta && !key.shift && key.code === code;

/** @param {string} code */
const altShift = (code) => (/** @type {Key} */ key) =>
  key.alt && key.shift && !key.ctrl && !key.meta && key.code === code;

/** @param {string} code */
const ctrlAlt = (code) => (/** @type {Key} */ key) =>
  key.alt && key.ctrl && !key.meta && !key.shift && key.code === code;

/** @type {Shortcut[]} */
export const SHORTCUTS = [
  {
    command: 'palette',
    shown: 'Ctrl+K',
    label: 'Find a session, a project or an action',
    matches: ({ key, ctrl, meta, alt, shift }) => (ctrl || meta) && !alt && !shift && key.toLowerCase() === 'k',
  },
  { command: 'new-session', shown: 'Alt+N', label: 'New session', matches: alt('KeyN') },
  { command: 'waiting', shown: 'Alt+A', label: 'Inbox', matches: alt('KeyA') },
  {
    command: 'next-tab',
    shown: 'Ctrl+Alt+→',
    label: 'Next tab (also Alt+Page Down)',
    matches: (key) => ctrlAlt('ArrowRight')(key) || alt('PageDown')(key),
  },
  {
    command: 'previous-tab',
    shown: 'Ctrl+Alt+←',
    label: 'Previous tab (also Alt+Page Up)',
    matches: (key) => ctrlAlt('ArrowLeft')(key) || alt('PageUp')(key),
  },
  {
    command: 'numbered-tab',
    shown: 'Alt+1 … 9',
    label: 'Go to a tab by number, 9 for the last',
    matches: (key) => /^Digit[1-9]$/.test(key.code) && alt(key.code)(key),
  },
  { command: 'tab-right', shown: 'Alt+Shift+Page Down', label: 'Move the tab right', matches: altShift('PageDown') },
  { command: 'tab-left', shown: 'Alt+Shift+Page Up', label: 'Move the tab left', matches: altShift('PageUp') },
  { command: 'close-tab', shown: 'Alt+W', label: 'Close the tab', matches: alt('KeyW') },
  { command: 'input', shown: 'Alt+I', label: 'Go to the message field', matches: alt('KeyI') },
  { command: 'stop', shown: 'Alt+.', label: 'Stop the turn in view', matches: alt('Period') },
  { command: 'filter', shown: 'Alt+K', label: 'Filter the sessions in the sidebar', matches: alt('KeyK') },
  { command: 'sidebar', shown: 'Alt+L', label: 'Show or hide the sidebar', matches: alt('KeyL') },
  {
    command: 'help',
    shown: '?',
    label: 'This help',
    matches: ({ key, ctrl, meta, alt }) => key === '?' && !ctrl && !meta && !alt,
  },
];

/** The content of the help sheet. Keys that work only in one part of the page are handled there. */
export const HELP = [
  { where: 'Everywhere', keys: SHORTCUTS.map(({ shown, label }) => [shown, label]) },
  {
    where: 'In a conversation',
    keys: [
      ['Enter', 'Send the message, Shift+Enter for a new line'],
      ['Alt+Enter', 'Queue the message until the turn ends'],
      ['Esc', 'Stop the turn'],
      ['↑ ↓', 'Recall earlier messages in an empty input'],
      ['1 … 4', 'Answer a permission request (with Alt+Shift while typing)'],
      ['Ctrl+F', 'Find in the conversation (press twice for the browser’s search)'],
    ],
  },
  {
    where: 'In the sidebar and the tabs',
    keys: [
      ['↑ ↓', 'Move between projects and sessions'],
      ['← →', 'Collapse or expand a project, move between tabs'],
      ['Enter', 'Open the session'],
      ['F2', 'Rename the session'],
      ['Delete', 'Archive the session, remove the project, close the tab'],
      ['Shift+F10', 'Open the context menu'],
      ['Ctrl+Z', 'Undo the last archive, delete, remove or close'],
    ],
  },
];

/** The shortcut of a command as shown to the user. @param {string} command */
export function keysOf(command) {
  return SHORTCUTS.find((shortcut) => shortcut.command === command)?.shown;
}

/** The command of a key press. @param {Key} key */
export function shortcutFor(key) {
  return SHORTCUTS.find(({ matches }) => matches(key))?.command;
}

/** @param {KeyboardEvent} event @returns {Key} */
export function keyOf({ key, code, ctrlKey, metaKey, altKey, shiftKey }) {
  return { key, code, ctrl: ctrlKey, meta: metaKey, alt: altKey, shift: shiftKey };
}
