// Takes the pictures of the documentation from the recorded team: MAX_TEAM_BIN=… npm run screenshots
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { openBrowser, openPage, propose, startServer } from '../tests/browser/server';

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url));
mkdirSync(folder, { recursive: true });

const server = await startServer();
const browser = await openBrowser();
try {
  const context = await browser.newContext();
  const first = await context.newPage();
  await first.goto(server.login);
  await first.getByRole('navigation').first().waitFor();
  const state = await context.storageState();
  const light = (await openPage(browser, server, state)).page;
  const dark = (await openPage(browser, server, state, { colorScheme: 'dark' })).page;
  const phone = (await openPage(browser, server, state, { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 })).page;
  const take = (page: Page, name: string) => page.screenshot({ path: `${folder}web-${name}.png` });

  const session = await propose(light);
  await light.waitForTimeout(500);
  await take(light, 'chat');
  await phone.goto(`${server.url}/#/inbox`);
  await phone.getByRole('button', { name: 'Approve', exact: true }).waitFor();
  await phone.waitForTimeout(300);
  await take(phone, 'phone');
  await light.getByRole('button', { name: 'Approve', exact: true }).click();
  await dark.goto(`${server.url}/#/s/${session}/plan`);
  await dark.locator('.node.running').first().waitFor();
  await dark.waitForTimeout(1200);
  const toast = dark.locator('.toast');
  await toast.getByRole('button', { name: 'Close' }).click();
  await toast.waitFor({ state: 'detached' });
  await take(dark, 'plan');
  await light.getByText('Three coffees cost 750 again.').first().waitFor({ timeout: 60_000 });
  await light.locator('.session-head').getByText('idle').waitFor({ timeout: 60_000 });
  await light.goto(`${server.url}/#/s/${session}/timeline`);
  await light.waitForTimeout(800);
  await take(light, 'timeline');
} finally {
  await browser.close();
  await server.stop();
}
