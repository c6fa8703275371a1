/** The early connection that `shared/boot.js` opens for the page's module, and the frames received over it. */

export {};

declare global {
  interface Window {
    early?: { socket: WebSocket; nonce: string; frames: string[] };
  }
}
