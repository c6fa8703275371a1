/**
 * The attempts of a hostile page; they run inside that page. Each function takes one argument, because Playwright
 * serializes it into the browser, and returns what it obtained.
 */

/** A picture of one white pixel, which our server accepts from its own page. */
export const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/**
 * Opens sockets; returns each path that received a message, with the message.
 * @param {{ target: string, paths: string[] }} where
 */
export async function openSockets({ target, paths }) {
  const tries = paths.map(
    (path) =>
      new Promise((resolve) => {
        const socket = new WebSocket(`${target.replace('http', 'ws')}${path}`);
        socket.onopen = () => socket.send(JSON.stringify({ type: 'project:add', path: '/', requestId: 'stolen' }));
        socket.onmessage = ({ data }) => resolve([path, data]);
        socket.onclose = () => resolve(null);
      }),
  );
  return /** @type {[string, string][]} */ ((await Promise.all(tries)).filter(Boolean));
}

/**
 * Posts as a page can without a preflight request, and with one.
 * @param {{ target: string, paths: string[], picture: string }} where
 */
export async function post({ target, paths, picture }) {
  const bytes = Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0));
  const json = JSON.stringify({ token: 'x', type: 'project:add', path: '/' });
  /** @type {RequestInit[]} */
  const ways = [
    { mode: 'no-cors', body: json },
    { mode: 'no-cors', body: new Blob([bytes], { type: 'text/plain' }) },
    { mode: 'no-cors', body: bytes },
    { mode: 'cors', body: json, headers: { 'content-type': 'application/json' } },
    { mode: 'cors', body: bytes, headers: { 'content-type': 'image/png' } },
  ];
  const accepted = [];
  for (const path of paths) {
    for (const way of ways) {
      try {
        const answer = await fetch(`${target}${path}`, { method: 'POST', credentials: 'include', ...way });
        if (answer.ok) accepted.push(path);
      } catch {
        // The browser does not report the reason.
      }
    }
    navigator.sendBeacon(`${target}${path}`, json);
  }
  return accepted;
}

/** Submits HTML forms in three encodings, each into a frame. @param {{ target: string, paths: string[] }} where */
export async function submitForms({ target, paths }) {
  for (const path of paths) {
    for (const enctype of ['text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded']) {
      const frame = document.createElement('iframe');
      frame.name = `answer-${Math.random()}`;
      const form = document.createElement('form');
      Object.assign(form, { method: 'POST', enctype, action: `${target}${path}`, target: frame.name });
      const field = document.createElement('input');
      // As text/plain the body reads {"token":"=x"}.
      Object.assign(field, { name: '{"token":"', value: 'x"}' });
      form.append(field);
      document.body.append(frame, form);
      const answered = new Promise((resolve) => {
        frame.onload = resolve;
      });
      form.submit();
      await Promise.race([answered, new Promise((resolve) => setTimeout(resolve, 1000))]);
      frame.remove();
      form.remove();
    }
  }
}

/** The responses that the page can read, by path. @param {{ target: string, paths: string[] }} where */
export async function read({ target, paths }) {
  /** @type {Record<string, { status: number, text: string }>} */
  const got = {};
  for (const path of paths) {
    for (const credentials of /** @type {const} */ (['include', 'omit'])) {
      try {
        const answer = await fetch(`${target}${path}`, { credentials });
        got[path] = { status: answer.status, text: await answer.text() };
      } catch {
        // The response is not readable for this page.
      }
    }
  }
  return got;
}

/** Loads each URL in its own frame. @param {{ target: string, paths: string[] }} where */
export async function frameAll({ target, paths }) {
  for (const path of paths) {
    const frame = document.createElement('iframe');
    frame.name = `held ${path}`;
    frame.src = `${target}${path}`;
    const loaded = new Promise((resolve) => {
      frame.onload = resolve;
    });
    document.body.append(frame);
    await Promise.race([loaded, new Promise((resolve) => setTimeout(resolve, 1000))]);
  }
}

/** Requests the port as a session's page does, and counts the ports received. */
export async function askForPort() {
  let ports = 0;
  addEventListener('message', (event) => {
    ports += event.ports.length;
  });
  const targets = [window.parent, window.top, window.opener, /** @type {any} */ (window).workspace];
  const others = targets.filter((target) => target && target !== window);
  for (const target of others) {
    target.postMessage({ type: 'portlet:ready' }, '*');
    target.postMessage({ type: 'request', id: 1, message: { type: 'session:send', content: 'say spoofed' } }, '*');
  }
  // A round trip takes one turn of each window's event loop; this is far more.
  await new Promise((resolve) => setTimeout(resolve, 500));
  return { asked: others.length > 0, ports };
}
