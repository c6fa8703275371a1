/** Writes a data directory with conversations, as the server would have written them. */

import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const NOW = '2026-01-01T00:00:00.000Z';
const TEXT =
  'The reader hands on **one line** at a time; `length` does not fit.\n\n- the first has no end\n- the second no beginning\n\n```rust\nlet end = buffer.find(b"\\n")?;\n```\n';

/**
 * @param {string} home  the home that contains the data directory
 * @param {number[]} lengths  number of entries of each conversation
 * @returns {string[]} the ids of the sessions
 */
export function fill(home, lengths) {
  const data = join(home, '.liminal-builder');
  const path = join(home, 'app');
  mkdirSync(join(data, 'sessions'), { recursive: true, mode: 0o700 });
  mkdirSync(path, { recursive: true });
  mkdirSync(join(home, '.agent', 'memory'), { recursive: true });
  const projectId = '00000000-0000-4000-9000-000000000000';
  const project = { id: projectId, name: 'app', path, addedAt: NOW };
  writeFileSync(join(data, 'projects.json'), JSON.stringify({ version: 1, projects: [project] }));
  const sessions = lengths.map((length, number) => {
    const key = `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
    const meta = { key, cliType: 'claude-code', projectId, projectPath: path, createdAt: NOW };
    const id = `claude-code:kept-${number}`;
    const lines = [JSON.stringify({ session: { version: 1, session: id, ...meta } })];
    for (let n = 1; n <= length; n += 1) lines.push(JSON.stringify({ n, entry: entry(n) }));
    writeFileSync(join(data, 'sessions', `${key}.jsonl`), `${lines.join('\n')}\n`);
    // The scripted agent must know the session, too.
    writeFileSync(join(home, '.agent', 'memory', `kept-${number}`), '');
    return { id, ...meta, archived: false, title: `Session ${number}`, lastActiveAt: NOW };
  });
  writeFileSync(join(data, 'sessions.json'), JSON.stringify({ version: 1, sessions }));
  return sessions.map(({ id }) => id);
}

/** A question, three calls and an answer, repeatedly. @param {number} n */
function entry(n) {
  const entryId = `e${n}`;
  if (n % 5 === 1) return { type: 'user', entryId, content: `Question ${n}: why does it not fit?`, timestamp: NOW };
  if (n % 5 === 0) return { type: 'assistant', entryId, content: `Answer ${n}. ${TEXT}`, timestamp: NOW };
  return {
    type: 'tool-call',
    entryId,
    toolCallId: `t${n}`,
    name: `Read file-${n}.rs`,
    kind: 'read',
    status: 'complete',
  };
}

/**
 * Many projects with many short sessions each.
 * @param {string} home @param {number} projects @param {number} sessions  in each
 */
export function fillSidebar(home, projects, sessions) {
  const data = join(home, '.liminal-builder');
  mkdirSync(join(data, 'sessions'), { recursive: true, mode: 0o700 });
  /** @type {object[]} */
  const index = [];
  const added = Array.from({ length: projects }, (_, number) => {
    const name = `project-${String(number).padStart(3, '0')}`;
    const path = join(home, name);
    mkdirSync(path);
    const id = `00000000-0000-4000-9000-${String(number).padStart(12, '0')}`;
    for (let n = 0; n < sessions; n += 1) {
      const count = number * sessions + n;
      const key = `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`;
      const meta = { key, cliType: 'claude-code', projectId: id, projectPath: path, createdAt: NOW };
      const session = `claude-code:kept-${count}`;
      const lines = [{ session: { version: 1, session, ...meta } }, { n: 1, entry: entry(1) }];
      const file = join(data, 'sessions', `${key}.jsonl`);
      writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      // As old as the index says, or the server would read the file again at start.
      utimesSync(file, new Date(NOW), new Date(NOW));
      index.push({ id: session, ...meta, archived: false, title: `Session ${count}`, lastActiveAt: NOW });
    }
    return { id, name, path, addedAt: new Date(Date.parse(NOW) + number).toISOString() };
  });
  writeFileSync(join(data, 'projects.json'), JSON.stringify({ version: 1, projects: added }));
  writeFileSync(join(data, 'sessions.json'), JSON.stringify({ version: 1, sessions: index }));
}
