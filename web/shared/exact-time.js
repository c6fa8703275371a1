/**
 * Tooltips with the exact local time for elements with a `data-at` attribute, below their `data-label` if present.
 * A tooltip is created when the pointer enters the element, because formatting the first date takes a browser longer
 * than building all rows of a conversation.
 */

/** @param {string} iso */
function exactTime(iso) {
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? '' : time.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'medium' });
}

document.addEventListener('pointerover', ({ target }) => {
  const timed = target instanceof Element ? target.closest('[data-at]') : null;
  if (!(timed instanceof HTMLElement)) return;
  const { at = '', label = '' } = timed.dataset;
  timed.title = [label, exactTime(at)].filter(Boolean).join('\n');
});
