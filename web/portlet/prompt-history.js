/** One's own prompts again, with Up in an empty input, as in a shell. Pure. */

/** @param {() => string[]} prompts  oldest first */
export function promptHistory(prompts) {
  /** How far back; 0 is what is being written. */
  let back = 0;
  let shown = '';
  return {
    /** What the input should hold now, or null when the key is not for us. @param {'ArrowUp' | 'ArrowDown'} key @param {string} text */
    step: (key, text) => {
      // Whoever has changed a recalled prompt is writing, and Up is the caret's again.
      if (text !== (back === 0 ? '' : shown)) return null;
      const all = prompts();
      const wanted = Math.max(0, Math.min(all.length, back + (key === 'ArrowUp' ? 1 : -1)));
      if (wanted === back) return null;
      back = wanted;
      shown = back === 0 ? '' : all[all.length - back];
      return shown;
    },
    reset: () => {
      back = 0;
      shown = '';
    },
  };
}
