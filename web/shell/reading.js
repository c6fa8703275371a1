/**
 * How far one session has been read, so that after a lost connection it goes on exactly there. Pure.
 *
 * Nothing of a session counts before its history: what comes earlier is in there. A number that is not the next
 * one means that something is missing, and the server is asked again. While it is asked, only the answer to that
 * very request counts: others in this window ask about the same session, for less.
 *
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').Position} Position
 *
 * @typedef {object} Reading
 * @property {Position | null} position  null before the first history
 * @property {string | null} asking  the request for which the server owes a history, or the word to go on
 */

/** @type {Reading} */
export const UNREAD = { position: null, asking: null };

/** The server was asked to show it. @param {Reading} reading @param {string} requestId @returns {Reading} */
export function asked({ position }, requestId) {
  return { position, asking: requestId };
}

/**
 * @param {Reading} reading
 * @param {ServerMessage} message  about this session
 * @returns {{ reading: Reading, pass: boolean, gap: boolean }}  whether the reader gets it, and whether to ask again
 */
export function read(reading, message) {
  const refuse = { reading, pass: false, gap: false };
  switch (message.type) {
    case 'session:history': {
      if (reading.asking !== null && message.requestId !== reading.asking) return refuse;
      const position = { bootId: message.bootId, seq: message.seq };
      return { reading: { position, asking: null }, pass: true, gap: false };
    }
    case 'session:resumed':
      if (reading.position === null || message.requestId !== reading.asking) return refuse;
      return { reading: { ...reading, asking: null }, pass: true, gap: false };
    case 'session:update':
    case 'session:chunk':
    case 'session:complete':
    case 'session:cancelled': {
      const { position } = reading;
      if (reading.asking !== null || position === null || message.seq <= position.seq) return refuse;
      if (message.seq !== position.seq + 1) return { reading, pass: false, gap: true };
      return { reading: { ...reading, position: { ...position, seq: message.seq } }, pass: true, gap: false };
    }
    default:
      return { reading, pass: reading.position !== null && reading.asking === null, gap: false };
  }
}
