/** Every route of our server, read from the router's source, so that attacks cover new routes without a change here. */

import { readdirSync, readFileSync } from 'node:fs';

const ROUTER = new URL('../../crates/liminal/src/http/mod.rs', import.meta.url);
const WEB = new URL('../../web/', import.meta.url);

/** @returns {string[]} the browser API's paths, and the path of one public file */
export function routes() {
  const source = readFileSync(ROUTER, 'utf8');
  const found = [...source.matchAll(/\.route\(\s*"([^"]+)"/g)].map(([, path]) => path.replace(/\{[^}]+\}/g, 'x'));
  const [style] = readdirSync(new URL('styles/', WEB)).filter((name) => name.endsWith('.css'));
  return [...new Set(found), `/styles/${style}`];
}
