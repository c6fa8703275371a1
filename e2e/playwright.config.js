import { defineConfig } from '@playwright/test';
import { LAUNCH } from './support/browser.js';

/**
 * Tests that count frames or flood need the machine to themselves: the files of this name and the tests with this tag.
 */
const ALONE = /fire-faults\.spec\.js|@alone/;

export default defineConfig({
  testDir: 'tests',
  outputDir: 'results',
  forbidOnly: true,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: process.env.REPORT ? [['list'], ['json', { outputFile: process.env.REPORT }]] : [['list']],
  use: {
    launchOptions: LAUNCH,
    viewport: { width: 1440, height: 900 },
    trace: process.env.TRACE ? 'retain-on-failure' : 'off',
  },
  projects: [
    { name: 'together', grepInvert: ALONE },
    { name: 'alone', grep: ALONE },
  ],
});
