/**
 * A classic script that runs while the page is still parsed. It sets the chosen theme before the
 * first paint, so that it never flashes in late, and starts the page's module after it, so that
 * loading a dozen modules does not hold the first paint up.
 */
{
  try {
    const chosen = JSON.parse(localStorage.getItem('liminal:theme') ?? 'null');
    if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
  } catch {
    // No storage, or nonsense in it: the system's theme it is.
  }

  const module = document.currentScript?.dataset.module ?? '';
  let started = false;
  const start = () => {
    if (!started) import(module);
    started = true;
  };
  // A frame's callbacks run before it is painted, what they schedule runs after.
  requestAnimationFrame(() => setTimeout(start));
  // A window in the background is never painted, and works all the same.
  setTimeout(start, document.hidden ? 0 : 200);
}
