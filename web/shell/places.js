/**
 * Where each session was read, also after its tab was closed and over a reload of the page. In the storage of this
 * window: two windows may read the same session in different places.
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
    /** @param {string} sessionId @param {ScrollPlace | null} place  null at the end, where everybody begins */
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

/** @param {unknown} value @returns {[string, ScrollPlace][]}  as far as it makes sense */
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
    // Full or forbidden: they then last as long as the page.
  }
}
