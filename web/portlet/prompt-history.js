/** Recall of the user's earlier prompts with Up in an empty input, as in a shell. Pure. */

/** @param {() => string[]} prompts  oldest first */
export function promptHistory(prompts) {
  /** Number of steps back in the history; 0 is the text being written. */
  let back = 0;
  let shown = '';
  return {
    /**
     * The new text of the input, or null to leave the key to the input.
     * @param {'ArrowUp' | 'ArrowDown'} key @param {string} text
     */
    step: (key, text) => {
      // After the user edits a recalled prompt, Up moves the caret again.
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
