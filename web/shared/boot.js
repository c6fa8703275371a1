/**
 * A classic script that runs while the page is still parsed; a release build puts it inside the page. It sets the chosen
 * theme before the first paint, so that it never flashes in late, and starts the page's module after it, so that
 * loading it does not hold the first paint up. What the page will ask of the server is on its way meanwhile:
 * `data-socket` names an address to connect to, and `window.early` has the connection and what came over it.
 */
{
  try {
    const chosen = JSON.parse(localStorage.getItem('liminal:theme') ?? 'null');
    if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
  } catch {
    // No storage, or nonsense in it: the system's theme it is.
  }

  const { module = '', socket: address } = document.currentScript?.dataset ?? {};
  if (address) {
    const socket = new WebSocket(`ws://${location.host}${address}`);
    /** @type {string[]} */
    const frames = [];
    socket.onmessage = ({ data }) => frames.push(data);
    window.early = { socket, frames };
  }

  // The server went away while the page was loading: from the beginning, once it is back. Not again and again: a
  // module may fail for other reasons.
  const AGAIN = 'liminal:loaded-again';
  const beginAgain = () => {
    const last = Number(sessionStorage.getItem(AGAIN) ?? 0);
    if (Date.now() - last < 10_000) return;
    sessionStorage.setItem(AGAIN, String(Date.now()));
    location.reload();
  };
  const knock = () => fetch(module).then(beginAgain, () => setTimeout(knock, 500));

  let started = false;
  const start = () => {
    if (!started) import(module).catch(knock);
    started = true;
  };
  // A frame's callbacks run before it is painted, what they schedule runs after.
  requestAnimationFrame(() => setTimeout(start));
  // A window in the background is never painted, and works all the same.
  setTimeout(start, document.hidden ? 0 : 200);
}
