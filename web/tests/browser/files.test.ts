// Files of a message: chosen, pasted, dropped, removed, refused, sent; and downloads of what agents write.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startModel, type Model } from './model';
import { openBrowser, openPage, PHONE, seriousFindings, signIn, startServer, type Opened, type Server } from './server';

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const PAGE = '<script>document.title = "hit"</script>\n';

let browser: Browser;
let model: Model;
let server: Server;
let opened: Opened;

before(async () => {
  browser = await openBrowser();
  model = await startModel(({ last, spoken }) => {
    if (last.includes('write a page') && spoken % 2 === 0) return { tool: ['write_file', { path: '@files/out/page.html', content: PAGE }] };
    return { text: last.includes('look at') ? 'I have seen it.' : 'It is in @files/out/page.html.' };
  });
  server = await startServer(model, '--solo');
  opened = await openPage(browser, server, await signIn(browser, server), PHONE);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  model?.stop();
});

const message = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const chips = (page: Page) => page.getByRole('list', { name: 'Attached files' }).getByRole('listitem');
const choose = (page: Page, name: string, mimeType: string, buffer: Buffer) => page.locator('input[type=file]').setInputFiles({ name, mimeType, buffer });

/** Lets a file come from the clipboard or a drag, as a browser would. */
const bring = (page: Page, how: 'paste' | 'drop', name: string, text: string) =>
  message(page).evaluate(
    (field, given) => {
      const data = new DataTransfer();
      data.items.add(new File([given.text], given.name, { type: 'text/plain' }));
      const event = given.how === 'paste' ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
      field.dispatchEvent(event);
    },
    { how, name, text },
  );

test('files come into a new session with the message that mentions them', async () => {
  const { page, go, faults } = opened;
  await go('new');
  await choose(page, 'till.png', 'image/png', PNG);
  await bring(page, 'paste', 'my notes.txt', 'the till was changed\n');
  await bring(page, 'drop', 'wrong.txt', 'not this one\n');
  assert.deepEqual(await chips(page).locator('.ellipsis').allInnerTexts(), ['till.png', 'my notes.txt', 'wrong.txt']);
  await page.getByRole('button', { name: 'Remove wrong.txt' }).focus();
  await page.keyboard.press('Enter');
  assert.equal(await chips(page).count(), 2);
  assert.equal(await message(page).evaluate((field) => field === document.activeElement), true, 'the focus comes back');
  await choose(page, 'large.bin', 'application/octet-stream', Buffer.alloc((10 << 20) + 1));
  await page.getByText(/large\.bin has .*; at most 10/).waitFor();
  await choose(page, 'large.png', 'image/png', Buffer.alloc((5 << 20) + 1));
  await page.getByText(/large\.png has .*; at most 5/).waitFor();
  await choose(page, 'empty.txt', 'text/plain', Buffer.alloc(0));
  await page.getByText('empty.txt is empty').waitFor();
  assert.equal(await chips(page).count(), 2);
  assert.deepEqual(await seriousFindings(page), []);
  await message(page).fill('look at these');
  await page.keyboard.press('Enter');
  await page.locator('.agent-message', { hasText: 'I have seen it.' }).waitFor();
  const told = model.asked.find((one) => one.last.includes('look at these'))!.last;
  assert.match(told, /"type":"image".*iVBORw0KGgo/);
  assert.match(told, /the till was changed/);
  assert.doesNotMatch(told, /not this one/);
  assert.equal(await chips(page).count(), 0);
  const sent = page.locator('.user-message');
  assert.match(await sent.innerText(), /look at these\s+@files\/till\.png @"files\/my notes\.txt"/);
  const [download] = await Promise.all([page.waitForEvent('download'), sent.getByRole('link', { name: 'my notes.txt' }).click()]);
  assert.equal(download.suggestedFilename(), 'my notes.txt');
  assert.equal(readFileSync(await download.path(), 'utf8'), 'the till was changed\n');
  assert.deepEqual(faults, []);
});

test('a message whose files cannot be sent stays as it was', async () => {
  const { page } = opened;
  await server.crash();
  await page.getByText('The server cannot be reached. What you see').waitFor();
  await choose(page, 'later.txt', 'text/plain', Buffer.from('later\n'));
  await message(page).fill('look at this later');
  await page.keyboard.press('Enter');
  await page.getByText('Nothing was sent').waitFor();
  assert.equal(await message(page).inputValue(), 'look at this later');
  assert.equal(await chips(page).count(), 1);
  await server.restart();
  await page.getByText('The server cannot be reached. What you see').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('.user-message', { hasText: 'look at this later' }).waitFor();
  await page.locator('.agent-message', { hasText: 'I have seen it.' }).nth(1).waitFor();
  assert.equal(model.asked.filter((one) => one.last.includes('look at this later')).length, 1);
});

test('what is typed during an upload that fails stays behind the message', async () => {
  const { page } = opened;
  let refuse = () => {};
  await page.route('**/files?name=*', async (route) => {
    await new Promise<void>((done) => (refuse = done));
    await route.fulfill({ status: 503, json: { error: { code: 'unavailable', message: 'no room' } } });
  });
  await choose(page, 'late.txt', 'text/plain', Buffer.from('late\n'));
  await message(page).fill('look at this');
  const [asked] = await Promise.all([page.waitForRequest('**/files?name=*'), page.keyboard.press('Enter')]);
  await message(page).fill('and one more thing');
  refuse();
  await Promise.all([page.getByText('no room').waitFor(), asked.response()]);
  assert.equal(await message(page).inputValue(), 'look at this\n\nand one more thing');
  await page.unroute('**/files?name=*');
  await page.getByRole('button', { name: 'Remove late.txt' }).click();
  await message(page).fill('');
});

test('a page that an agent wrote is downloaded and never opened', async () => {
  const { page, faults } = opened;
  await message(page).fill('write a page');
  await page.keyboard.press('Enter');
  const link = page.locator('.agent-message').getByRole('link', { name: '@files/out/page.html' });
  await link.waitFor();
  const address = await link.evaluate((one) => (one as HTMLAnchorElement).href);
  await page.getByRole('link', { name: 'Team', exact: true }).click();
  await page.getByRole('heading', { name: 'Files of this session' }).waitFor();
  assert.deepEqual(await page.locator('.session-files a').allInnerTexts(), ['@files/later.txt', '@files/my notes.txt', '@files/out/page.html', '@files/till.png']);
  const title = await page.title();
  const [download] = await Promise.all([page.waitForEvent('download'), page.evaluate((to) => void (location.href = to), address)]);
  assert.equal(readFileSync(await download.path(), 'utf8'), PAGE);
  assert.equal(await page.title(), title, 'no script has run');
  assert.deepEqual(faults, []);
});
