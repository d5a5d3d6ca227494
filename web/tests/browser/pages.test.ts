// The pages in a real browser, against a real server with recorded models.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { openBrowser, openPage, PROMPT, propose, startServer, type Server } from './server';

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
type State = BrowserContextOptions['storageState'];

let server: Server;
let browser: Browser;
let state: State;

before(async () => {
  browser = await openBrowser();
  server = await startServer();
  state = await signIn(server);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

async function signIn(at: Server): Promise<State> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(at.login);
  await page.getByRole('navigation', { name: 'Main' }).first().waitFor();
  assert.ok(!page.url().includes(at.login.split('#')[1]!), 'the code leaves the address');
  const kept = await context.storageState();
  await context.close();
  return kept;
}

async function open(options: BrowserContextOptions = {}, at = server, as = state) {
  const opened = await openPage(browser, at, as, options);
  return {
    ...opened,
    done: async () => {
      await opened.context.close();
      assert.deepEqual(opened.faults, []);
    },
  };
}

/** A server of its own: a recorded story is told once. */
async function withServer(body: (at: Server, open: () => ReturnType<typeof openOn>) => Promise<void>) {
  const own = await startServer();
  try {
    const as = await signIn(own);
    await body(own, () => openOn(own, as));
  } finally {
    await own.stop();
  }
}

const openOn = (at: Server, as: State) => open({}, at, as);

const finished = (page: Page) => page.locator('.session-head').getByText('idle').waitFor({ timeout: 60_000 });

async function isDone(page: Page) {
  await page.locator('.plan-card .badge', { hasText: 'done' }).waitFor({ timeout: 60_000 });
  await page.getByText('Three coffees cost 750 again.').first().waitFor({ timeout: 30_000 });
}

test('a plan is approved and carried out', async () => {
  const { page, done } = await open();
  await propose(page);
  const tasks = page.locator('.plan-card .task-list li');
  assert.equal(await tasks.count(), 4);
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  await isDone(page);
  assert.match((await tasks.nth(2).textContent())!, /done.*attempt 2.*verified/);
  await finished(page);
  await done();
});

test('files are put back one by one, after a preview', { skip: process.env.MAX_TEAM_URL ? 'the server is not ours' : false }, async () => {
  const { page, done } = await open();
  await page.goto(`${server.url}/#/s/${await aSession(page)}/review`);
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
  await done();
});

test('a link works once', { skip: process.env.MAX_TEAM_URL ? 'the server is not ours' : false }, async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(server.login);
  await page.getByRole('heading', { name: 'Sign in to Max Team' }).waitFor();
  await page.getByLabel('Link or token').fill('mt_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await context.close();
});

test('a plan is edited, asked about again, and rejected with a reason', async () => {
  await withServer(async (_, openHere) => {
    const { page, done } = await openHere();
    await propose(page);
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit the plan' });
    await dialog.getByLabel('Title').fill('Look at the log first');
    await dialog.getByText('1 change').waitFor();
    await dialog.getByRole('button', { name: 'Save the changes' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.locator('.plan-card').getByText('Look at the log first').waitFor();
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByRole('dialog').getByRole('textbox').fill('not today');
    await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
    await page.locator('.plan-card .badge', { hasText: 'rejected' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Approve', exact: true }).count(), 0);
    await done();
  });
});

test('an answer on another page closes the question here, and says who gave it', async () => {
  await withServer(async (at, openHere) => {
    const [one, other] = [await openHere(), await openHere()];
    await propose(one.page);
    await other.page.goto(`${at.url}/#/inbox`);
    await other.page.locator('.ask-card').last().getByRole('button', { name: 'Reject' }).click();
    await other.page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
    await one.page.getByRole('button', { name: 'Approve', exact: true }).waitFor({ state: 'detached' });
    await one.page.locator('.answer-row', { hasText: /rejected .*\(browser\)/ }).waitFor();
    await one.done();
    await other.done();
  });
});

test('two pages approve at once: the plan runs once, also through reloads', async () => {
  await withServer(async (_, openHere) => {
    const [one, other] = [await openHere(), await openHere()];
    await propose(one.page);
    await other.page.goto(one.page.url());
    const approve = (page: Page) => page.getByRole('button', { name: 'Approve', exact: true });
    await approve(other.page).waitFor();
    await Promise.all([approve(one.page).click(), approve(other.page).click({ timeout: 3000 }).catch(() => {})]);
    for (let nth = 0; nth < 4; nth += 1) {
      await other.page.waitForTimeout(700);
      await other.page.reload();
    }
    await Promise.all([isDone(one.page), isDone(other.page)]);
    await Promise.all([finished(one.page), finished(other.page)]);
    const text = async (page: Page) => (await page.locator('.chat-column').first().innerText()).trim();
    assert.equal(await text(other.page), await text(one.page), 'a page that was reloaded shows the same');
    assert.equal(await one.page.locator('.message', { hasText: 'Three coffees cost 750 again.' }).count(), 1);
    await one.done();
    await other.done();
  });
});

test('everything can be done with the keyboard', async () => {
  await withServer(async (at, openHere) => {
    const { page, done } = await openHere();
    await page.goto(`${at.url}/#/new`);
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    await page.keyboard.type(PROMPT);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await tabTo(page, 'Edit');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal(await focusName(page), 'Edit', 'the focus comes back');
    await tabTo(page, 'Approve', true);
    assert.ok(await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle !== 'none'), 'the focus can be seen');
    await page.keyboard.press('Enter');
    await isDone(page);
    await tabTo(page, 'Plan', true);
    await page.keyboard.press('Enter');
    await page.getByRole('group', { name: /Tasks and their dependencies/ }).waitFor();
    await tabTo(page, 'Since when');
    await page.keyboard.press('ArrowRight');
    assert.match(await focusName(page), /total/);
    await page.keyboard.press('Enter');
    await page.getByRole('complementary').waitFor();
    await done();
  });
});

const focusName = (page: Page) =>
  page.evaluate(() => {
    const focus = document.activeElement;
    return !focus || focus === document.body ? '' : (focus.getAttribute('aria-label') ?? focus.textContent ?? '').trim();
  });

async function tabTo(page: Page, name: string, back = false) {
  for (let nth = 0; nth < 90; nth += 1) {
    if ((await focusName(page)).includes(name)) return;
    await page.keyboard.press(back ? 'Shift+Tab' : 'Tab');
  }
  assert.fail(`no focus on ${name}`);
}

async function aSession(page: Page): Promise<string> {
  const first = page.locator('.session-link').first();
  await first.waitFor({ state: 'attached' });
  return /#\/s\/([^/]+)/.exec((await first.getAttribute('href'))!)![1]!;
}

function places(session: string): string[] {
  return ['now', 'inbox', 'new', 'cost', 'memory', 'audit', 'settings', ...['chat', 'plan', 'timeline', 'replay', 'messages', 'team', 'review', 'trace'].map((tab) => `s/${session}/${tab}`)];
}

for (const scheme of ['light', 'dark'] as const) {
  test(`no serious finding of axe on any screen (${scheme})`, async () => {
    const { page, done } = await open({ colorScheme: scheme, bypassCSP: true });
    const session = await aSession(page);
    const found: string[] = [];
    for (const where of places(session)) {
      await page.goto(`${server.url}/#/${where}`);
      await page.waitForTimeout(500);
      await page.addScriptTag({ path: axePath });
      const result = await page.evaluate(() => (globalThis as unknown as { axe: { run: (options: object) => Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> } }).axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice'] }));
      for (const one of result.violations) if (one.impact === 'serious' || one.impact === 'critical') found.push(`${where}: ${one.id}: ${one.nodes.slice(0, 2).map((node) => node.html.slice(0, 160)).join(' ')}`);
    }
    assert.deepEqual(found, []);
    await done();
  });
}

test('the interface speaks Chinese', async () => {
  const { page, done } = await open({ locale: 'zh-CN' });
  await page.getByRole('link', { name: '待办' }).first().waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
  const session = await aSession(page);
  for (const where of places(session)) {
    await page.goto(`${server.url}/#/${where}`);
    await page.waitForTimeout(250);
    const chrome = await page.evaluate(() => [...document.querySelectorAll('nav, h1, h2, button, legend')].map((one) => one.textContent ?? '').join(' '));
    assert.doesNotMatch(chrome, /\b(Settings|Inbox|Approve|Send|Timeline|Rights|Allow|Spent)\b/, where);
  }
  await page.getByRole('button', { name: 'Switch to English' }).first().click();
  await page.getByRole('link', { name: 'Inbox' }).first().waitFor();
  await done();
});

test('every screen fits a phone', async () => {
  const { page, done } = await open({ viewport: { width: 375, height: 720 }, isMobile: true, hasTouch: true });
  const session = await aSession(page);
  for (const where of places(session)) {
    await page.goto(`${server.url}/#/${where}`);
    await page.waitForTimeout(300);
    const over = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.querySelector('main')!.scrollWidth) - innerWidth);
    assert.ok(over <= 1, `${where} is ${over} pixels too wide`);
  }
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('heading', { name: 'Settings', exact: true }).waitFor();
  await done();
});

const HOSTILE = '<script>window.hit=1</script><img src=x onerror="window.hit=1">\n\n[click](javascript:window.hit=1) <svg onload="window.hit=1"></svg> <a href="javascript:window.hit=1">x</a>\n\n![beacon](https://evil.example/x.png)\n\n\u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007\u001b[2J\u202E';

test('hostile output of an agent stays text', async () => {
  const { page, context, done } = await open();
  const session = await aSession(page);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).host));
  await context.route('**/api/v1/sessions/*/events*', async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { events: Record<string, unknown>[] };
    const last = body.events.at(-1)!;
    const seq = (last.seq as number) + 0.5;
    const agent = { id: 'agt_evil', name: HOSTILE, lead: false };
    const lead = body.events.find((event) => (event.agent as { lead?: boolean } | undefined)?.lead)!.agent;
    const base = { v: 1, seq, session, at_ms: last.at_ms };
    body.events.push(
      { ...base, part: 1, agent: lead, type: 'tool_start', iteration: 1, tool_id: 'x', tool_name: HOSTILE, tool_args: JSON.stringify({ command: HOSTILE }), target: HOSTILE },
      { ...base, part: 2, agent: lead, type: 'tool_result', iteration: 1, tool_id: 'x', tool_name: HOSTILE, summary: HOSTILE, tool_result: HOSTILE, ending: 'ran', is_error: true, ms: 1 },
      { ...base, part: 3, agent: lead, type: 'final', iteration: 1, response: HOSTILE, done: true, end: 'answered' },
      { ...base, part: 4, agent, type: 'agent', state: 'busy', message: HOSTILE },
      { ...base, part: 5, type: 'plan', plan: 'pln_evil', state: 'proposed', goal: HOSTILE, tasks: [{ id: HOSTILE, agent: HOSTILE }], by: HOSTILE },
      { ...base, part: 6, type: 'mail', id: 'env_evil', from: HOSTILE, to: HOSTILE, kind: HOSTILE, message: HOSTILE },
    );
    await route.fulfill({ response: answer, json: body });
  });
  for (const tab of ['chat', 'plan', 'timeline', 'replay', 'messages', 'team', 'review']) {
    await page.goto(`${server.url}/#/now`);
    await page.goto(`${server.url}/#/s/${session}/${tab}`);
    await page.reload();
    await page.waitForTimeout(500);
    assert.equal(await page.evaluate(() => (window as unknown as { hit?: number }).hit), undefined, tab);
    assert.equal(await page.evaluate(() => document.querySelectorAll('main script, main img, main iframe, main a[href^="javascript"], main [onload], main [onerror]').length), 0, tab);
  }
  assert.deepEqual([...new Set(asked)], [new URL(server.url).host], 'nothing is loaded from elsewhere');
  await done();
});

test('a lost server is told, and nothing that was written is lost', { skip: process.env.MAX_TEAM_URL ? 'the server is not ours' : false }, async () => {
  await withServer(async (at, openHere) => {
    const { page, done } = await openHere();
    await propose(page);
    await at.crash();
    await page.getByText('The server cannot be reached. What you see').waitFor();
    assert.equal(await page.locator('.plan-card').count(), 1, 'the conversation can still be read');
    await page.getByRole('textbox', { name: 'Message' }).fill('Are you there?');
    await page.keyboard.press('Enter');
    await page.getByText('Nothing was sent').waitFor();
    assert.equal(await page.getByRole('textbox', { name: 'Message' }).inputValue(), 'Are you there?');
    await at.restart();
    await page.getByText('The server cannot be reached. What you see').waitFor({ state: 'detached', timeout: 30_000 });
    await done();
  });
});

test('a plan with 500 tasks is drawn quickly and scrolls smoothly', async () => {
  const { page, context, done } = await open();
  const session = await aSession(page);
  const plan = 'pln_large';
  const ids = Array.from({ length: 500 }, (_, nth) => `task${nth}`);
  await context.route('**/api/v1/sessions/*/events*', async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { events: Record<string, unknown>[] };
    const last = body.events.at(-1)!;
    body.events.push({ v: 1, seq: (last.seq as number) + 0.5, session, at_ms: last.at_ms, type: 'plan', plan, state: 'proposed', goal: 'A large plan', tasks: ids.map((id) => ({ id, agent: 'leo' })), by: 'max' });
    await route.fulfill({ response: answer, json: body });
  });
  await context.route(`**/api/v1/plans/${plan}`, (route) => route.fulfill({ json: largePlan(plan, session, ids) }));
  await page.goto(`${server.url}/#/s/${session}/plan/${plan}`);
  await page.locator('.node').first().waitFor();
  const pass = () =>
    page.evaluate(async () => {
      const box = document.querySelector('.graph-scroll')!;
      box.scrollTo(0, 0);
      let longest = 0;
      const observer = new PerformanceObserver((list) => list.getEntries().forEach((entry) => (longest = Math.max(longest, entry.duration))));
      observer.observe({ type: 'long-animation-frame' });
      for (let step = 0; step < 60; step += 1) {
        box.scrollBy(60, 20);
        await new Promise(requestAnimationFrame);
      }
      await new Promise((done) => setTimeout(done, 100));
      observer.disconnect();
      return longest;
    });
  // Other programs on the machine can delay a frame: the best of three passes counts.
  const worst = Math.min(await pass(), await pass(), await pass());
  assert.ok(worst < 100, `a frame took ${Math.round(worst)} ms`);
  await page.locator('.graph-scroll').evaluate((box) => box.scrollTo(box.scrollWidth, box.scrollHeight));
  await page.locator('.node', { hasText: 'Task number 499' }).waitFor();
  await done();
});

function largePlan(id: string, session: string, ids: string[]) {
  const usage = { input: 0, output: 0, cache_read: 0, cache_write: 0 };
  const spent = { nano: 0, usage, ms: 0 };
  return {
    id, session, goal: 'A large plan', created_at: '2026-11-18T15:22:44.411Z', approved: false, state: 'waiting', ended: null, forecast: null, questions: [],
    tally: { tasks: 500, ran: 0, done: 0, verified: 0, failed: 0, skipped: 0, cancelled: 0, spent },
    tasks: ids.map((task, nth) => ({ id: task, title: `Task number ${nth}`, description: 'x', agent_name: 'leo', depends_on: nth >= 20 ? [ids[nth - 20]] : [], status: 'planned', retry_count: 0, max_retries: 2, critical: nth % 20 === 0, spent })),
    layout: { columns: 25, rows: 20, nodes: ids.map((task, nth) => ({ task, column: Math.floor(nth / 20), row: nth % 20 })), edges: ids.slice(20).map((task, nth) => ({ from: ids[nth], to: task, via: [] })) },
  };
}

test('a run of 1,000 events is replayed at 30 frames a second', async () => {
  const { page, context, done } = await open();
  const session = await aSession(page);
  await context.route('**/api/v1/sessions/*/events*', async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { events: Record<string, unknown>[]; next?: string };
    const last = body.events.at(-1)!;
    const lead = body.events.find((event) => (event.agent as { lead?: boolean } | undefined)?.lead)!.agent;
    let seq = (last.seq as number) + 0.001;
    while (body.events.length < 1000) {
      seq += 0.0001;
      const tool = { v: 1, session, at_ms: last.at_ms, agent: lead, iteration: 1, tool_id: `r${body.events.length}`, tool_name: 'read_file' };
      body.events.push({ ...tool, seq, type: 'tool_start', tool_args: '{"path":"a"}', target: 'a' });
      seq += 0.0001;
      body.events.push({ ...tool, seq, type: 'tool_result', summary: 'ok', tool_result: 'ok', ending: 'ran', is_error: false, ms: 1 });
    }
    await route.fulfill({ response: answer, json: body });
  });
  await page.goto(`${server.url}/#/s/${session}/replay`);
  await page.reload();
  const slider = page.getByRole('slider', { name: 'Moment of the run' });
  await slider.waitFor();
  const pass = () => slider.evaluate(async (input: HTMLInputElement) => {
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!;
    const start = performance.now();
    const moves = 60;
    for (let nth = 0; nth < moves; nth += 1) {
      // Back and forth over the whole run.
      set.call(input, String(Math.round(500 + 480 * Math.sin(nth / 4))));
      input.dispatchEvent(new Event('input', { bubbles: true }));
      await new Promise(requestAnimationFrame);
    }
    return (moves * 1000) / (performance.now() - start);
  });
  const rate = Math.max(await pass(), await pass(), await pass());
  assert.ok(rate >= 30, `${rate.toFixed(1)} frames a second`);
  await done();
});
