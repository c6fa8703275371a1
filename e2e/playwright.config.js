import { defineConfig } from '@playwright/test';
import { LAUNCH } from './support/browser.js';

export default defineConfig({
  testDir: 'tests',
  outputDir: 'results',
  forbidOnly: true,
  // Each test has a server, an agent and a browser of its own; two at once slow each other down.
  workers: 1,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: [['list']],
  use: {
    launchOptions: LAUNCH,
    viewport: { width: 1440, height: 900 },
    trace: process.env.TRACE ? 'retain-on-failure' : 'off',
  },
});
