/**
 * Export of recorded traffic as text for tests. Pure.
 *
 * @typedef {import('../types/wire.js').TrafficFrame} TrafficFrame
 */

/** One JSON object per frame and line, in both directions. @param {TrafficFrame[]} frames */
export function asJsonLines(frames) {
  const line = (/** @type {TrafficFrame} */ { at, from, bytes, cut, text }) =>
    JSON.stringify({ at: new Date(at).toISOString(), from, bytes, ...(cut && { cut }), message: parsed(text) ?? text });
  return frames.map((frame) => `${line(frame)}\n`).join('');
}

/**
 * The agent's messages as commands for `scripted-agent`. Each block of lines is the prompt of one turn.
 * @param {TrafficFrame[]} frames
 */
export function asScript(frames) {
  /** @type {string[]} */
  const lines = [];
  for (const { from, label, text } of frames) {
    const message = parsed(text);
    if (from !== 'agent' || !message) continue;
    if (message.method === 'session/update') lines.push(`update ${JSON.stringify(message.params.update)}`);
    else if (message.method !== undefined) {
      const { sessionId: _, ...params } = message.params ?? {};
      lines.push(`ask ${message.method} ${JSON.stringify(params)}`);
    } else if (label.endsWith(' to session/prompt')) {
      const { error, result } = message;
      lines.push(error ? `fail ${error.code} ${error.message}` : `stop ${result?.stopReason ?? 'end_turn'}`, '');
    }
  }
  return lines.length === 0 ? '' : `${lines.join('\n').trimEnd()}\n`;
}

/** @param {string} text @returns {any} */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // The frame was truncated and is no longer valid JSON.
  }
}

/**
 * Frames whose label or text contains every word of the query.
 * @param {TrafficFrame[]} frames @param {string} query @param {string} side  'both', 'agent' or 'client'
 */
export function filtered(frames, query, side) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return frames.filter(({ from, label, text }) => {
    if (side !== 'both' && from !== side) return false;
    const all = `${label} ${text}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
