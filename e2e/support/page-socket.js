/** A second connection of a page's browser to the server, for tests that act beside the workspace. */

/**
 * Runs in a page of a browser that has signed in: adds `window.provenSocket`, which opens a connection as the workspace
 * does and resolves once the proof is sent. The greeting is the next message.
 */
export function addProvenSocket() {
  const text = (/** @type {ArrayBuffer} */ bytes) =>
    btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replaceAll('=', '');
  const result = (/** @type {IDBRequest} */ request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  Object.assign(window, {
    provenSocket: async (options = '') => {
      const database = await result(indexedDB.open('liminal', 1));
      const { id, privateKey } = await result(database.transaction('identity').objectStore('identity').get('browser'));
      database.close();
      const nonce = crypto.randomUUID();
      const socket = new WebSocket(`ws://${location.host}/ws?browser=${id}&nonce=${nonce}${options}`);
      const first = await new Promise((resolve) => {
        socket.onmessage = ({ data }) => resolve(JSON.parse(data));
      });
      const fields = ['Liminal Builder browser 1', location.host, id, nonce, first.nonce];
      const signed = new TextEncoder().encode(fields.join('\n'));
      const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, privateKey, signed);
      socket.send(JSON.stringify({ type: 'proof', signature: text(signature) }));
      return socket;
    },
  });
}
