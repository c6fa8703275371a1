/**
 * A classic script that runs while the page is still being parsed; a release build inlines it into the page. It applies
 * the stored theme before the first paint, so that the page does not flash in the other theme. It also opens the
 * WebSocket named by `data-socket` early: `window.early` holds the connection and the frames received so far.
 */
{
  try {
    const chosen = JSON.parse(localStorage.getItem('liminal:theme') ?? 'null');
    if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage is unavailable or its content is invalid: use the system theme.
  }

  const address = document.currentScript?.dataset.socket;
  if (address) {
    const socket = new WebSocket(`ws://${location.host}${address}`);
    /** @type {string[]} */
    const frames = [];
    socket.onmessage = ({ data }) => frames.push(data);
    window.early = { socket, frames };
  }

  // A script failed to load, usually because the server stopped: reload the page once the server answers. At most one
  // reload per 10 seconds, because the server may be running and not have this file.
  const RELOADED_AT = 'liminal:loaded-again';
  const reload = () => {
    const last = Number(sessionStorage.getItem(RELOADED_AT) ?? 0);
    if (Date.now() - last < 10_000) return;
    sessionStorage.setItem(RELOADED_AT, String(Date.now()));
    location.reload();
  };
  /** @param {string} file */
  const reloadWhenReachable = (file) => fetch(file).then(reload, () => setTimeout(reloadWhenReachable, 500, file));
  const onError = (/** @type {Event} */ { target }) => {
    if (target instanceof HTMLScriptElement) reloadWhenReachable(target.src);
  };
  addEventListener('error', onError, true);
}
