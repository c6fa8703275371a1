/**
 * The keys of a session's page: its own, and those it has no use for, which are the shell's.
 *
 * @typedef {import('../types/wire.js').PermissionQuestion} PermissionQuestion
 *
 * @typedef {object} Does
 * @property {() => boolean} find  false leaves the key to the browser
 * @property {() => PermissionQuestion | undefined} question  the one that is open
 * @property {(question: PermissionQuestion, option: PermissionQuestion['options'][number]) => void} answer
 * @property {() => boolean} stop  false if there is nothing to stop
 * @property {(key: Pick<Extract<import('../types/bridge.js').FromPortlet, { type: 'key' }>, 'key' | 'code' | 'ctrl' | 'meta' | 'alt' | 'shift'>) => void} pass  to the shell
 */

/** @param {Does} does */
export function startKeys({ find, question, answer, stop, pass }) {
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const { key, code, ctrlKey: ctrl, metaKey: meta, altKey: alt, shiftKey: shift } = event;
    const writing = isField(event.target);
    const digit = /^Digit([1-4])$/.exec(code)?.[1];
    const open = question();
    // Who writes needs two more keys: one alone writes, and with Alt it is a tab's.
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
    // The browser has a use of its own for this one, which would win.
    if (plain && code === 'KeyK') event.preventDefault();
    pass({ key, code, ctrl, meta, alt, shift });
  });
}

/** Whether a key pressed there writes something. @param {EventTarget | null} target */
function isField(target) {
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
