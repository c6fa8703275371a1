/**
 * The exact time of something, in the words of this place, as a tooltip of whatever has `data-at`, below its
 * `data-label` if it has one. It is made when somebody points there: a browser needs longer for its first date than for all the rows of a conversation.
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
