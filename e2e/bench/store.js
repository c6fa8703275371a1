/** A data directory with conversations in it, as if they had been held. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const NOW = '2026-01-01T00:00:00.000Z';
const TEXT =
  'The reader hands on **one line** at a time; `length` does not fit.\n\n- the first has no end\n- the second no beginning\n\n```rust\nlet end = buffer.find(b"\\n")?;\n```\n';

/**
 * @param {string} home  whose data directory it is
 * @param {number[]} lengths  how many entries each conversation has
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
    // The scripted agent knows it too.
    writeFileSync(join(home, '.agent', 'memory', `kept-${number}`), '');
    return { id, ...meta, archived: false, title: `Session ${number}`, lastActiveAt: NOW };
  });
  writeFileSync(join(data, 'sessions.json'), JSON.stringify({ version: 1, sessions }));
  return sessions.map(({ id }) => id);
}

/** A question, an answer and three calls in turn. @param {number} n */
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
