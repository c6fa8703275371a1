/**
 * Keyboard shortcuts of a session's page. Keys that it does not use are passed to the shell.
 *
 * @typedef {import('../types/wire.js').PermissionQuestion} PermissionQuestion
 *
 * @typedef {object} Actions
 * @property {() => boolean} find  returns false to leave the key to the browser
 * @property {() => PermissionQuestion | undefined} question  the open permission request
 * @property {(question: PermissionQuestion, option: PermissionQuestion['options'][number]) => void} answer
 * @property {() => boolean} stop  returns false if no turn is running
 * @property {(key: Pick<Extract<import('../types/bridge.js').FromPortlet, { type: 'key' }>, 'key' | 'code' | 'ctrl' | 'meta' | 'alt' | 'shift'>) => void} pass  to the shell
 */

/** @param {Actions} actions */
export function startKeys({ find, question, answer, stop, pass }) {
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const { key, code, ctrlKey: ctrl, metaKey: meta, altKey: alt, shiftKey: shift } = event;
    const writing = isField(event.target);
    const digit = /^Digit([1-4])$/.exec(code)?.[1];
    const open = question();
    // In a text field the shortcut needs Alt+Shift: a digit alone is text, and Alt with a digit selects a tab.
    if (digit && open && !ctrl && !meta && alt === shift && (alt || !writing)) {
      event.preventDefault();
      const option = open.options[Number(digit) - 1];
      if (option) answer(open, option);
      return;
    }
    if (key === 'Escape' && stop()) return event.preventDefault();
    const plain = (ctrl || meta) && !shift && !alt;
    if (plain && code === 'KeyF') {
      if (find()) event.preventDefault();
      return;
    }
    const forShell = ctrl || meta || alt || (!writing && key.length === 1) || key === 'Escape' || /^F\d+$/.test(key);
    if (!forShell) return;
    // Without this the browser would handle Ctrl+K itself.
    if (plain && code === 'KeyK') event.preventDefault();
    pass({ key, code, ctrl, meta, alt, shift });
  });
}

/** Whether keys pressed in this element are text input. @param {EventTarget | null} target */
function isField(target) {
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
