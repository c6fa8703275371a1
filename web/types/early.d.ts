/** What `shared/boot.js` leaves for the page's module: a connection, and the frames that came over it. */

export {};

declare global {
  interface Window {
    early?: { socket: WebSocket; frames: string[] };
  }
}
