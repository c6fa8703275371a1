/**
 * A classic script that runs while the page is still parsed; a release build puts it inside the page. It sets the chosen
 * theme before the first paint, so that it never flashes in late. What the page will ask of the server is on its way
 * meanwhile: `data-socket` names an address to connect to, and `window.early` has the connection and what came over it.
 */
{
  try {
    const chosen = JSON.parse(localStorage.getItem('liminal:theme') ?? 'null');
    if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
  } catch {
    // No storage, or nonsense in it: the system's theme it is.
  }

  const address = document.currentScript?.dataset.socket;
  if (address) {
    const socket = new WebSocket(`ws://${location.host}${address}`);
    /** @type {string[]} */
    const frames = [];
    socket.onmessage = ({ data }) => frames.push(data);
    window.early = { socket, frames };
  }

  // The server went away while the page was loading: from the beginning, once it is back. Not again and again: it may
  // be there and have no such file.
  const AGAIN = 'liminal:loaded-again';
  const beginAgain = () => {
    const last = Number(sessionStorage.getItem(AGAIN) ?? 0);
    if (Date.now() - last < 10_000) return;
    sessionStorage.setItem(AGAIN, String(Date.now()));
    location.reload();
  };
  /** @param {string} file */
  const knock = (file) => fetch(file).then(beginAgain, () => setTimeout(knock, 500, file));
  const failed = (/** @type {Event} */ { target }) => {
    if (target instanceof HTMLScriptElement) knock(target.src);
  };
  addEventListener('error', failed, true);
}
