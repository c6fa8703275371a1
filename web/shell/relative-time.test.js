import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shortAge } from './relative-time.js';

test('TC-2.1a: an age is abbreviated and never in the future', () => {
  const now = Date.parse('2026-06-15T12:00:00.000Z');
  for (const [iso, age] of [
    ['2026-06-15T12:00:30.000Z', 'now'],
    ['2026-06-15T11:59:01.000Z', 'now'],
    ['2026-06-15T11:58:00.000Z', '2m'],
    ['2026-06-15T11:00:01.000Z', '59m'],
    ['2026-06-15T11:00:00.000Z', '1h'],
    ['2026-06-13T12:00:00.000Z', '2d'],
    ['2026-06-08T12:00:00.000Z', '1w'],
    ['2025-06-16T12:00:00.000Z', '52w'],
    ['2023-06-01T12:00:00.000Z', '3y'],
    ['nonsense', ''],
  ]) {
    assert.equal(shortAge(iso, now), age, iso);
  }
});
