/**
 * What a page of somebody else's tries, run inside that page. Each takes what it needs as one argument, as it is
 * carried over to the browser, and says what it got.
 */

/** A picture of one white dot: something our server would take from a page of its own. */
export const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Sockets that opened, and what they heard. @param {{ target: string, paths: string[] }} where */
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

/** Posts as a page can without asking, and as one that asks. @param {{ target: string, paths: string[], picture: string }} where */
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
  const heard = [];
  for (const path of paths) {
    for (const way of ways) {
      try {
        const answer = await fetch(`${target}${path}`, { method: 'POST', credentials: 'include', ...way });
        if (answer.ok) heard.push(path);
      } catch {
        // The browser does not say why.
      }
    }
    navigator.sendBeacon(`${target}${path}`, json);
  }
  return heard;
}

/** The forms of the old web: three encodings, each into a frame. @param {{ target: string, paths: string[] }} where */
export async function submitForms({ target, paths }) {
  for (const path of paths) {
    for (const enctype of ['text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded']) {
      const frame = document.createElement('iframe');
      frame.name = `answer-${Math.random()}`;
      const form = document.createElement('form');
      Object.assign(form, { method: 'POST', enctype, action: `${target}${path}`, target: frame.name });
      const field = document.createElement('input');
      // As text it reads {"token":"=x"}.
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

/** What can be read, path by path. @param {{ target: string, paths: string[] }} where */
export async function read({ target, paths }) {
  /** @type {Record<string, { status: number, text: string }>} */
  const got = {};
  for (const path of paths) {
    for (const credentials of /** @type {const} */ (['include', 'omit'])) {
      try {
        const answer = await fetch(`${target}${path}`, { credentials });
        got[path] = { status: answer.status, text: await answer.text() };
      } catch {
        // Not for us.
      }
    }
  }
  return got;
}

/** Puts each address in a frame of its own. @param {{ target: string, paths: string[] }} where */
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

/** Asks for the port as a session's page does, and says how many came. */
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
  // There and back again takes one turn of each window's loop; this is very many.
  await new Promise((resolve) => setTimeout(resolve, 500));
  return { asked: others.length > 0, ports };
}
