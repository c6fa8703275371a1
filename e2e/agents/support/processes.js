/** The processes of an agent, read from /proc. */

import { readdirSync, readFileSync } from 'node:fs';

/** @param {string | number} pid @param {string} name */
const read = (pid, name) => {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return ''; // The process ended in the meantime.
  }
};

const all = () => readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));

/** The adapter's own process ids, in this home. @param {string} command @param {string} home @returns {number[]} */
export function adapters(command, home) {
  const words = command.split(' ');
  const runs = (/** @type {string} */ pid) => read(pid, 'cmdline').split('\0').slice(0, words.length).join(' ');
  const here = (/** @type {string} */ pid) => read(pid, 'environ').split('\0').includes(`HOME=${home}`);
  return all()
    .filter((pid) => runs(pid) === command && here(pid))
    .map(Number);
}

/** Resident memory of a process and its descendants, in MiB. @param {number} pid */
export function treeMemory(pid) {
  const parents = all().map((one) => ({
    pid: Number(one),
    parent: Number(/PPid:\s*(\d+)/.exec(read(one, 'status'))?.[1]),
  }));
  const tree = new Set([pid]);
  for (let grown = true; grown; ) {
    const children = parents.filter((one) => tree.has(one.parent) && !tree.has(one.pid));
    for (const child of children) tree.add(child.pid);
    grown = children.length > 0;
  }
  const kib = [...tree].map((one) => Number(/VmRSS:\s*(\d+)/.exec(read(one, 'status'))?.[1] ?? 0));
  return kib.reduce((sum, one) => sum + one, 0) / 1024;
}
