import { expect, test } from '../support/liminal.js';

test('files are compressed as requested, and a cached one gets a 304', async ({ liminal }) => {
  const url = `${liminal.origin}/shell/main.js`;
  const sizes = [];
  for (const [offered, got] of [
    ['br, gzip', 'br'],
    ['gzip', 'gzip'],
    ['identity', null],
  ]) {
    const response = await fetch(url, { headers: { 'accept-encoding': offered ?? '' } });
    expect(response.headers.get('content-encoding')).toBe(got);
    expect(await response.text()).toContain('import');
    sizes.push(Number(response.headers.get('content-length')));
  }
  expect(sizes.toSorted((a, b) => a - b)).toEqual(sizes);
  const etag = (await fetch(url)).headers.get('etag') ?? '';
  const again = await fetch(url, { headers: { 'if-none-match': etag } });
  expect(again.status).toBe(304);
});

test('the first load is small and requests nothing from other hosts', async ({ page, liminal }) => {
  const session = await page.context().newCDPSession(page);
  let bytes = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await session.send('Network.enable');
  /** @type {string[]} */
  const elsewhere = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(liminal.origin)) elsewhere.push(request.url());
  });
  await page.goto(liminal.url);
  await expect(page.getByRole('heading', { name: 'Start with a project' })).toBeVisible();
  expect(elsewhere).toEqual([]);
  expect(bytes).toBeLessThan(100 * 1024);
});
