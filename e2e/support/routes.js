/** Every address our server answers at, read from where it says so: a new route is attacked without being told of. */

import { readdirSync, readFileSync } from 'node:fs';

const ROUTER = new URL('../../crates/liminal/src/http/mod.rs', import.meta.url);
const WEB = new URL('../../web/', import.meta.url);

/** @returns {string[]} paths of the browser door, and one of its files */
export function routes() {
  const source = readFileSync(ROUTER, 'utf8');
  const found = [...source.matchAll(/\.route\(\s*"([^"]+)"/g)].map(([, path]) => path.replace(/\{[^}]+\}/g, 'x'));
  const [style] = readdirSync(new URL('styles/', WEB)).filter((name) => name.endsWith('.css'));
  return [...new Set(found), `/styles/${style}`];
}
