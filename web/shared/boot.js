/**
 * A classic script that runs while the page is still being parsed; a release build inlines it into the page. It applies
 * the stored theme before the first paint, so that the page does not flash in the other theme. It also opens the
 * WebSocket named by `data-socket` early: `window.early` holds the connection and the frames received so far. A browser
 * that has not signed in, or whose address contains a token, goes to the login page.
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
    /** @type {string | undefined} */
    let id;
    try {
      id = JSON.parse(localStorage.getItem('liminal:browser') ?? 'null')?.id;
    } catch {
      // As without an id.
    }
    if (!id || location.hash.includes('token=')) location.replace(`/login${location.hash}`);
    else {
      const bytes = [...crypto.getRandomValues(new Uint8Array(32))];
      const nonce = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('');
      const socket = new WebSocket(`ws://${location.host}${address}&browser=${id}&nonce=${nonce}`);
      /** @type {string[]} */
      const frames = [];
      socket.onmessage = ({ data }) => frames.push(data);
      window.early = { socket, nonce, frames };
    }
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
  const reloadWhenReachable = (file) =>
    // Past the cache, which may hold the file of another program that answered at this address.
    fetch(file, { cache: 'reload' }).then(reload, () => setTimeout(reloadWhenReachable, 500, file));
  const onError = (/** @type {Event} */ { target }) => {
    if (target instanceof HTMLScriptElement) reloadWhenReachable(target.src);
  };
  addEventListener('error', onError, true);
}
