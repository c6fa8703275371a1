/**
 * The scroll position of each session, kept after its tab is closed and across reloads. Stored in `sessionStorage`,
 * because two windows may show the same session at different positions.
 *
 * @typedef {import('../types/bridge.js').ScrollPlace} ScrollPlace
 */

export const KEY = 'liminal:places';
const PLACES_MAX = 200;

export function startPlaces() {
  const places = recallPlaces();
  return {
    /** @param {string} sessionId */
    of: (sessionId) => places.get(sessionId) ?? null,
    /** @param {string} sessionId @param {ScrollPlace | null} place  null at the end of the conversation, the default */
    keep: (sessionId, place) => {
      if (place === null && !places.has(sessionId)) return;
      places.delete(sessionId);
      if (place) places.set(sessionId, place);
      const oldest = places.size > PLACES_MAX ? places.keys().next().value : undefined;
      if (oldest !== undefined) places.delete(oldest);
      write(places);
    },
  };
}

/** @typedef {ReturnType<typeof startPlaces>} Places */

/** @param {unknown} value @returns {[string, ScrollPlace][]}  the valid entries of the stored value */
export function fromStored(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value)
    .flatMap(([id, place]) => {
      const { entryId, offset } = place ?? {};
      const known = typeof entryId === 'string' && Number.isFinite(offset);
      /** @type {[string, ScrollPlace][]} */
      const pair = known ? [[id, { entryId, offset }]] : [];
      return pair;
    })
    .slice(-PLACES_MAX);
}

function recallPlaces() {
  try {
    return new Map(fromStored(JSON.parse(sessionStorage.getItem(KEY) ?? 'null')));
  } catch {
    return new Map();
  }
}

/** @param {Map<string, ScrollPlace>} places */
function write(places) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(Object.fromEntries(places)));
  } catch {
    // Storage is full or not allowed: the positions are then lost with the page.
  }
}
