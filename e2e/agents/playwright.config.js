import { defineConfig } from '@playwright/test';
import { LAUNCH } from '../support/browser.js';

export default defineConfig({
  testDir: '.',
  outputDir: '../results/agents',
  forbidOnly: true,
  // The agents and their stand-in model mostly wait, so more tests than cores can run at once.
  workers: 3,
  timeout: 120_000,
  expect: { timeout: 30_000 },
  reporter: process.env.REPORT ? [['list'], ['json', { outputFile: process.env.REPORT }]] : [['list']],
  use: {
    launchOptions: LAUNCH,
    viewport: { width: 1440, height: 900 },
    trace: process.env.TRACE ? 'retain-on-failure' : 'off',
  },
});
