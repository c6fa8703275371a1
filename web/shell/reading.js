/**
 * The position up to which a session's stream has been received, so that it can be resumed after a reconnect. Pure.
 *
 * Events before the history are dropped, because the history contains them. A gap in the numbers means that events are
 * missing, and the session must be requested again. While a request is open, only its own response is accepted, because
 * other parts of this window may request a shorter history of the same session.
 *
 * @typedef {import('../types/wire.js').ServerMessage} ServerMessage
 * @typedef {import('../types/wire.js').Position} Position
 *
 * @typedef {object} Reading
 * @property {Position | null} position  null before the first history
 * @property {string | null} asking  id of the open request; the server answers with a history or `session:resumed`
 */

/** @type {Reading} */
export const UNREAD = { position: null, asking: null };

/** The state after a request for the session was sent. @param {Reading} reading @param {string} requestId @returns {Reading} */
export function requested({ position }, requestId) {
  return { position, asking: requestId };
}

/**
 * @param {Reading} reading
 * @param {ServerMessage} message  about this session
 * @returns {{ reading: Reading, pass: boolean, gap: boolean }}  pass: deliver the message; gap: request the session again
 */
export function receive(reading, message) {
  const drop = { reading, pass: false, gap: false };
  switch (message.type) {
    case 'session:history': {
      if (reading.asking !== null && message.requestId !== reading.asking) return drop;
      const position = { bootId: message.bootId, seq: message.seq };
      return { reading: { position, asking: null }, pass: true, gap: false };
    }
    case 'session:resumed':
      if (reading.position === null || message.requestId !== reading.asking) return drop;
      return { reading: { ...reading, asking: null }, pass: true, gap: false };
    case 'session:update':
    case 'session:chunk':
    case 'session:complete':
    case 'session:cancelled': {
      const { position } = reading;
      if (reading.asking !== null || position === null || message.seq <= position.seq) return drop;
      if (message.seq !== position.seq + 1) return { reading, pass: false, gap: true };
      return { reading: { ...reading, position: { ...position, seq: message.seq } }, pass: true, gap: false };
    }
    default:
      return { reading, pass: reading.position !== null && reading.asking === null, gap: false };
  }
}
