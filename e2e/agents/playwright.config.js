import { defineConfig } from '@playwright/test';
import { LAUNCH } from '../support/browser.js';

export default defineConfig({
  testDir: '.',
  outputDir: '../results/agents',
  forbidOnly: true,
  // One for each agent: what they wait for is mostly the other.
  workers: 2,
  timeout: 120_000,
  expect: { timeout: 30_000 },
  reporter: [['list']],
  use: {
    launchOptions: LAUNCH,
    viewport: { width: 1440, height: 900 },
    trace: process.env.TRACE ? 'retain-on-failure' : 'off',
  },
});
