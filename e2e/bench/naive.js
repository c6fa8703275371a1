/**
 * The plain way to show a conversation: everything is in the page, and an entry that changes is written again as a
 * whole, once a frame. It speaks the same protocol and gets the same ready HTML, so only the way of showing differs.
 */

/** The page, for sessions named in its address; each in an element of its own. */
export const NAIVE = `<!doctype html><meta charset="utf-8"><title>naive</title>
<link rel="stylesheet" href="/styles/theme.css"><link rel="stylesheet" href="/styles/prose.css">
<link rel="stylesheet" href="/styles/code.css">
<style>section { max-width: 820px; height: 90vh; overflow: auto; margin: auto; }</style>
<script type="module">(${naive})()</script>`;

/** A page of frames, one for each session, all made at once. */
export const NAIVE_TABS = `<!doctype html><meta charset="utf-8"><title>naive tabs</title>
<style>iframe { width: 100%; height: 800px; border: 0 }</style>
<script type="module">
for (const id of new URLSearchParams(location.search).getAll('session')) {
  const frame = document.createElement('iframe');
  frame.src = '/naive?session=' + encodeURIComponent(id);
  if (document.querySelector('iframe')) frame.style.display = 'none';
  document.body.append(frame);
}
</script>`;

/** Every session of every project in the page. */
export const NAIVE_SIDEBAR = `<!doctype html><meta charset="utf-8"><title>naive sidebar</title>
<style>main { width: 300px; height: 90vh; overflow: auto; } li { height: 30px; }</style><main></main>
<script type="module">
const socket = new WebSocket('ws://' + location.host + '/ws');
const place = document.querySelector('main');
socket.onopen = () => socket.send('{"type":"project:list"}');
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.type === 'project:list') {
    for (const { id, name } of message.projects) {
      place.insertAdjacentHTML('beforeend', '<h3>' + name + '</h3><ul id="p' + id + '"></ul>');
      socket.send(JSON.stringify({ type: 'session:list', projectId: id }));
    }
  } else if (message.type === 'session:list') {
    document.getElementById('p' + message.projectId).innerHTML = message.sessions
      .map(({ title, lastActiveAt }) => '<li>' + title + ' <time>' + lastActiveAt + '</time></li>')
      .join('');
  }
};
</script>`;

function naive() {
  const socket = new WebSocket(`ws://${location.host}/ws?html=1`);
  const ids = new URLSearchParams(location.search).getAll('session');
  /** @type {Map<string, HTMLElement>} */
  const places = new Map();
  /** @type {Map<string, string>} */
  const finished = new Map();
  const htmlOf = (/** @type {any} */ rendered, /** @type {string} */ what) =>
    (rendered?.[what] ?? []).map((/** @type {any} */ part) => part.html).join('');
  const escaped = (/** @type {string} */ text) => text.replace(/[&<]/g, (one) => (one === '&' ? '&amp;' : '&lt;'));
  const show = (/** @type {any} */ entry, /** @type {any} */ html) => {
    if (!html) return escaped(entry.content ?? entry.name ?? '');
    finished.set(entry.entryId, htmlOf(html, 'finished'));
    return finished.get(entry.entryId) + htmlOf(html, 'tail');
  };
  const box = (/** @type {any} */ entry, /** @type {any} */ html) =>
    `<article class="prose" data-entry-id="${entry.entryId}">${show(entry, html)}</article>`;
  /** @type {Map<string, () => void>} */
  const waiting = new Map();
  const flush = () => {
    const all = [...waiting.values()];
    waiting.clear();
    for (const write of all) write();
  };
  for (const id of ids) {
    const place = document.createElement('section');
    places.set(id, place);
    document.body.append(place);
  }
  socket.onopen = () => {
    for (const sessionId of ids) socket.send(JSON.stringify({ type: 'session:open', sessionId, requestId: sessionId }));
  };
  /** @type {any} */ (window).send = (/** @type {string} */ content) => {
    for (const sessionId of ids) socket.send(JSON.stringify({ type: 'session:send', sessionId, content }));
  };
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    const place = places.get(message.sessionId);
    if (!place) return;
    if (message.type === 'session:history') {
      place.innerHTML = message.entries.map((/** @type {any} */ one) => box(one, message.html?.[one.entryId])).join('');
    } else if (message.type === 'session:update') {
      const known = place.querySelector(`[data-entry-id="${message.entry.entryId}"]`);
      if (known) known.innerHTML = show(message.entry, message.html);
      else place.insertAdjacentHTML('beforeend', box(message.entry, message.html));
    } else if (message.type === 'session:chunk') {
      const whole = (finished.get(message.entryId) ?? '') + htmlOf(message.html, 'finished');
      finished.set(message.entryId, whole);
      // Once a frame: once a chunk would be a second for each of the last ones.
      if (waiting.size === 0) requestAnimationFrame(flush);
      waiting.set(`${message.sessionId} ${message.entryId}`, () => {
        const known = place.querySelector(`[data-entry-id="${message.entryId}"]`);
        if (known) known.innerHTML = (finished.get(message.entryId) ?? '') + htmlOf(message.html, 'tail');
        place.scrollTop = place.scrollHeight;
      });
      return;
    } else {
      return;
    }
    place.scrollTop = place.scrollHeight;
  };
}
