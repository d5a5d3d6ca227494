// Every screen of a finished run: findings of axe, Chinese, a phone, hostile text; and putting files back.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { startModel } from './model';
import { openBrowser, openPage, PHONE, propose, seriousFindings, signIn, startServer, type Opened, type Server, type State } from './server';

let server: Server;
let browser: Browser;
let state: State;
let session: string;
/** The pages of an agent and of a task. */
let inside: string[];

before(async () => {
  [browser, server] = await Promise.all([openBrowser(), startServer()]);
  state = await signIn(browser, server);
  const { page, context } = await openPage(browser, server, state);
  session = await propose(page);
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  await page.getByText('Three coffees cost 750 again.').first().waitFor({ timeout: 60_000 });
  await page.locator('.session-head').getByText('idle').waitFor();
  assert.match((await page.locator('.plan-card .task-list li').nth(2).textContent())!, /done.*attempt 2.*verified/);
  const answer = async <T>(path: string) => (await (await page.request.get(`${server.url}/api/v1/${path}`)).json()) as T;
  const { agents } = await answer<{ agents: { agent: string }[] }>(`sessions/${session}`);
  const { plan } = (await answer<{ plans: { row: { plan: string } }[] }>('plans')).plans[0]!.row;
  const { tasks } = await answer<{ tasks: { id: string }[] }>(`plans/${plan}`);
  inside = [`s/${session}/agent/${agents.at(-1)!.agent}`, `s/${session}/plan/${plan}/${tasks[2]!.id}`];
  await context.close();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

async function withPage(options: BrowserContextOptions, body: (opened: Opened) => Promise<void>) {
  const opened = await openPage(browser, server, state, options);
  await body(opened);
  await opened.context.close();
  assert.deepEqual(opened.faults, []);
}

const TABS = ['chat', 'plan', 'timeline', 'replay', 'messages', 'team', 'review', 'trace'];
const places = () => ['now', 'inbox', 'new', 'cost', 'memory', 'audit', 'settings', ...TABS.map((tab) => `s/${session}/${tab}`), ...inside];

for (const [name, options] of [['light', {}], ['dark', { colorScheme: 'dark' }], ['a phone', PHONE]] as [string, BrowserContextOptions][]) {
  test(`no serious finding of axe on any screen (${name})`, () =>
    withPage(options, async ({ page, go }) => {
      const found: string[] = [];
      for (const where of places()) {
        await go(where);
        found.push(...(await seriousFindings(page)).map((one) => `${where}: ${one}`));
      }
      assert.deepEqual(found, []);
    }));
}

test('the interface speaks Chinese', () =>
  withPage({ locale: 'zh-CN' }, async ({ page, go }) => {
    await page.getByRole('link', { name: '待办' }).first().waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
    for (const where of places()) {
      await go(where);
      const chrome = (selector: string) => page.evaluate((of) => [...document.querySelectorAll(of)].map((one) => one.textContent ?? '').join(' '), selector);
      assert.doesNotMatch(await chrome('nav, h1, h2, button, legend'), /\b(Settings|Inbox|Approve|Send|Timeline|Rights|Allow|Spent|Search|Filter)\b/, where);
      assert.doesNotMatch(await chrome('.badge, .tag, .empty, legend, .legend'), /\b(done|idle|waiting|running|failed|verified|default|nothing|all|plan|task|cost)\b/i, where);
    }
    await page.getByRole('button', { name: 'Switch to English' }).first().click();
    await page.getByRole('link', { name: 'Inbox' }).first().waitFor();
  }));

test('every screen fits a phone', () =>
  withPage({ viewport: { width: 375, height: 720 }, isMobile: true, hasTouch: true }, async ({ page, go }) => {
    for (const where of places()) {
      await go(where);
      const over = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.querySelector('main')!.scrollWidth) - innerWidth);
      assert.ok(over <= 1, `${where} is ${over} pixels too wide`);
    }
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('heading', { name: 'Settings', exact: true }).waitFor();
  }));

test('files are put back one by one, after a preview', () =>
  withPage({}, async ({ page, go }) => {
    await go(`s/${session}/review`);
    await page.getByRole('button', { name: 'Put files back…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Put files back' });
    await dialog.getByRole('button', { name: /Three coffees/ }).click();
    await dialog.getByRole('checkbox', { name: 'tests/cart_test.sh' }).uncheck();
    assert.equal(existsSync(join(server.folder, 'tests/cart_test.sh')), true);
    assert.match(readFileSync(join(server.folder, 'lib/total.sh'), 'utf8'), /count/);
    await dialog.getByRole('button', { name: 'Put 1 file back' }).click();
    await page.getByText('1 file put back').waitFor();
    assert.equal(existsSync(join(server.folder, 'tests/cart_test.sh')), true, 'left out');
    assert.doesNotMatch(readFileSync(join(server.folder, 'lib/total.sh'), 'utf8'), /count/, 'put back');
  }));

test('the next session of a demo plays the recording again, in a project of its own', () =>
  withPage({}, async ({ page, go }) => {
    const next = await propose(page);
    assert.notEqual(next, session);
    await go(`s/${next}/chat`);
    assert.equal(await page.getByRole('textbox', { name: 'Message' }).isEnabled(), true);
    assert.equal(await page.getByText('not continued').count(), 0);
    await page.getByRole('button', { name: 'Reject' }).first().waitFor();
  }));

test('a link works once', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(server.login);
  await page.getByRole('heading', { name: 'Sign in to Max Team' }).waitFor();
  assert.deepEqual(await seriousFindings(page), []);
  await page.getByLabel('Link or token').fill('mt_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await context.close();
});

const HOSTILE = '<script>window.hit=1</script><img src=x onerror="window.hit=1">\n\n[click](javascript:window.hit=1) <svg onload="window.hit=1"><a href="javascript:window.hit=1">x</a></svg>\n\n![beacon](https://evil.example/x.png)\n\n```html\n<iframe src="javascript:window.hit=1"></iframe>\n```\n\n\u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007\u001b[2J\u202E';

test('hostile output of an agent, its tools, plans and files stays text', async () => {
  const tasks = [{ id: 'evil', title: HOSTILE, agent: 'leo', description: HOSTILE }];
  const model = await startModel(({ first, last, spoken }) => {
    if (first.includes('# Your task')) return spoken === 0 ? { text: HOSTILE, tool: ['write_file', { path: 'evil.html', content: HOSTILE }] } : spoken === 1 ? { tool: ['read_file', { path: 'evil.html' }] } : { text: HOSTILE };
    return /please/i.test(last) ? { text: HOSTILE, tool: ['submit_plan', { goal: HOSTILE, tasks }] } : { text: HOSTILE };
  });
  const own = await startServer(model);
  try {
    const { page, go, faults } = await openPage(browser, own, await signIn(browser, own));
    const asked = new Set<string>();
    page.on('request', (request) => asked.add(new URL(request.url()).host));
    const id = await propose(page, `please ${HOSTILE}`);
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    await page.locator('.plan-card .badge', { hasText: 'done' }).waitFor();
    await page.locator('.session-head').getByText('idle').waitFor();
    const plan = await page.evaluate(async () => ((await (await fetch('/api/v1/plans')).json()) as { plans: { row: { plan: string } }[] }).plans[0]!.row.plan);
    const agent = await page.evaluate(async (of) => ((await (await fetch(`/api/v1/sessions/${of}`)).json()) as { agents: { agent: string }[] }).agents.at(-1)!.agent, id);
    for (const where of [...TABS.map((tab) => `s/${id}/${tab}`), `s/${id}/plan/${plan}/evil`, `s/${id}/agent/${agent}`, 'now', 'audit', 'cost', 'inbox']) {
      await go(where);
      await page.evaluate(() => document.querySelectorAll<HTMLElement>('main [aria-expanded="false"], main summary').forEach((fold) => fold.click()));
      assert.equal(await page.evaluate(() => (window as unknown as { hit?: number }).hit), undefined, where);
      assert.equal(await page.evaluate(() => document.querySelectorAll('script:not([src]), main img, iframe, a[href^="javascript"], [onload], [onerror]').length), 0, where);
      assert.doesNotMatch(await page.locator('main').innerText(), /[\u001b\u202e]/, where);
    }
    assert.deepEqual([[...asked], faults], [[new URL(own.url).host], []], 'nothing is loaded from elsewhere');
    await page.context().close();
  } finally {
    await own.stop();
    model.stop();
  }
});
