/** Browser contexts that have signed in, with an empty cache, so that a page is measured without the sign-in. */

/**
 * A browser's key cannot be copied, so each context signs in itself.
 * @param {import('@playwright/test').Browser} browser @param {string} url  with the token
 * @param {import('@playwright/test').BrowserContextOptions} [options]
 */
export async function signedInContext(browser, url, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await page.goto(url);
  await page.locator('.connection-dot.up').waitFor();
  const session = await context.newCDPSession(page);
  await session.send('Network.clearBrowserCache');
  await page.close();
  return context;
}
