/**
 * The plain way to show a conversation, as a baseline: the page renders markdown with the usual packages, holds all
 * entries, and rewrites a changed entry as a whole, once per frame. It uses the same protocol, so only the display
 * differs.
 */

import { addProvenSocket } from '../support/page-socket.js';

/** The paths from which the pages load packages, and the files in `node_modules`. */
export const PACKAGES = {
  'naive-marked': 'marked/lib/marked.umd.js',
  'naive-purify': 'dompurify/dist/purify.min.js',
  'naive-highlight': '@highlightjs/cdn-assets/highlight.min.js',
};

/** The page for the sessions in its query; each has its own element. */
export const NAIVE = `<!doctype html><meta charset="utf-8"><title>naive</title>
<link rel="stylesheet" href="/styles/theme.css"><link rel="stylesheet" href="/styles/prose.css">
<link rel="stylesheet" href="/styles/code.css">
<style>section { max-width: 820px; height: 90vh; overflow: auto; margin: auto; }</style>
<script src="/naive-marked"></script><script src="/naive-purify"></script><script src="/naive-highlight"></script>
<script type="module">(${addProvenSocket})(); (${naive})()</script>`;

/** A page with one frame for each session, all created at once. */
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

/** All sessions of all projects in one page. */
export const NAIVE_SIDEBAR = `<!doctype html><meta charset="utf-8"><title>naive sidebar</title>
<style>main { width: 300px; height: 90vh; overflow: auto; } li { height: 30px; }</style><main></main>
<script type="module">
(${addProvenSocket})();
const socket = await provenSocket();
const place = document.querySelector('main');
socket.send('{"type":"project:list"}');
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

async function naive() {
  const { marked, DOMPurify, hljs } = /** @type {any} */ (window);
  marked.use({
    gfm: true,
    renderer: {
      code({ text = '', lang = '' }) {
        const known = hljs.getLanguage(lang);
        const code = known ? hljs.highlight(text, { language: lang }).value : text.replaceAll('<', '&lt;');
        return `<pre><code>${code}</code></pre>`;
      },
    },
  });
  const ids = new URLSearchParams(location.search).getAll('session');
  /** @type {Map<string, HTMLElement>} */
  const places = new Map();
  /** @type {Map<string, string>} */
  const texts = new Map();
  const show = (/** @type {any} */ entry) => {
    const text = typeof entry.content === 'string' ? entry.content : (entry.name ?? '');
    texts.set(entry.entryId, text);
    return DOMPurify.sanitize(marked.parse(text));
  };
  const box = (/** @type {any} */ entry) =>
    `<article class="prose" data-entry-id="${entry.entryId}">${show(entry)}</article>`;
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
  const socket = await /** @type {any} */ (window).provenSocket();
  for (const sessionId of ids) socket.send(JSON.stringify({ type: 'session:open', sessionId, requestId: sessionId }));
  /** @type {any} */ (window).send = (/** @type {string} */ content) => {
    for (const sessionId of ids) socket.send(JSON.stringify({ type: 'session:send', sessionId, content }));
  };
  socket.onmessage = (/** @type {MessageEvent} */ { data }) => {
    const message = JSON.parse(data);
    const place = places.get(message.sessionId);
    if (!place) return;
    if (message.type === 'session:history') {
      place.innerHTML = message.entries.map(box).join('');
    } else if (message.type === 'session:update') {
      const known = place.querySelector(`[data-entry-id="${message.entry.entryId}"]`);
      if (known) known.innerHTML = show(message.entry);
      else place.insertAdjacentHTML('beforeend', box(message.entry));
    } else if (message.type === 'session:chunk') {
      const content = (texts.get(message.entryId) ?? '') + message.content;
      texts.set(message.entryId, content);
      // Once per frame: rendering for each chunk would take a second for each of the last ones.
      if (waiting.size === 0) requestAnimationFrame(flush);
      waiting.set(`${message.sessionId} ${message.entryId}`, () => {
        const known = place.querySelector(`[data-entry-id="${message.entryId}"]`);
        if (known) known.innerHTML = show({ entryId: message.entryId, content: texts.get(message.entryId) });
        place.scrollTop = place.scrollHeight;
      });
      return;
    } else {
      return;
    }
    place.scrollTop = place.scrollHeight;
  };
}
