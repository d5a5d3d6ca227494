// Large plans and long runs. The processor time of the page's main thread is measured: other programs on the machine do not count.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { startModel, type Model } from './model';
import { openBrowser, openPage, propose, signIn, startServer, type Opened, type Server, type State } from './server';

const TASKS = Array.from({ length: 500 }, (_, nth) => ({ id: `t${nth}`, title: `Task number ${nth}`, agent: 'leo', description: 'Do it.', depends_on: nth < 20 ? [] : [`t${nth - 20}`] }));
/** Answers of the long run, and calls in each of them; a call has two events. */
const [ANSWERS, CALLS] = [10, 50];

let browser: Browser;
let model: Model;
let server: Server;
let state: State;

before(async () => {
  model = await startModel(({ last, spoken }) => {
    if (/please/i.test(last)) return { text: 'Large.', tool: ['submit_plan', { goal: 'A large plan', tasks: TASKS }] };
    return spoken < ANSWERS ? { tool: ['memory_read', { key: `k${spoken}` }], times: CALLS } : { text: 'That was long.' };
  });
  [browser, server] = await Promise.all([openBrowser(), startServer(model)]);
  state = await signIn(browser, server);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  model?.stop();
});

/** Milliseconds of processor time that the page's main thread has used. */
async function meter(page: Page): Promise<() => Promise<number>> {
  const cdp: CDPSession = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');
  return async () => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    return metrics.find((metric) => metric.name === 'ThreadTime')!.value * 1000;
  };
}

/** Milliseconds that a fixed drawing takes now. The limits are multiples of it: machines differ, and one machine differs from hour to hour. */
async function fixedDrawing(page: Page, used: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let nth = 0; nth < 5; nth += 1) {
    const start = await used();
    await page.evaluate(() => {
      const box = document.body.appendChild(document.createElement('div'));
      for (let line = 0; line < 400; line += 1) {
        const row = box.appendChild(document.createElement('p'));
        for (let part = 0; part < 5; part += 1) row.appendChild(document.createElement('span')).textContent = `part ${part} of line ${line} `;
      }
      box.getBoundingClientRect();
      box.remove();
      return new Promise(requestAnimationFrame);
    });
    times.push((await used()) - start);
  }
  return times.sort((a, b) => a - b)[2]!;
}

async function withPage(body: (opened: Opened) => Promise<void>) {
  const opened = await openPage(browser, server, state);
  await body(opened);
  await opened.context.close();
  assert.deepEqual(opened.faults, []);
}

test('a plan with 500 tasks is drawn in the time of three fixed drawings, and a scrolled frame in the time of two', () =>
  withPage(async ({ page, go }) => {
    const session = await propose(page);
    const used = await meter(page);
    const drawn: number[] = [];
    for (let nth = 0; nth < 3; nth += 1) {
      await go(`s/${session}/team`);
      const start = await used();
      await page.evaluate((to) => (location.hash = to), `#/s/${session}/plan`);
      await page.locator('.node').first().waitFor();
      drawn.push((await used()) - start);
    }
    const frames: number[] = [];
    for (let step = 0; step < 60; step += 1) {
      const start = await used();
      await page.locator('.graph-scroll').evaluate((box, nth) => {
        box.scrollTo(nth * 60, nth * 20);
        return new Promise(requestAnimationFrame);
      }, step);
      frames.push((await used()) - start);
    }
    const fixed = await fixedDrawing(page, used);
    assert.ok(Math.min(...drawn) < 3 * fixed, `drawn in ${Math.round(Math.min(...drawn))} ms; a fixed drawing takes ${Math.round(fixed)} ms`);
    assert.ok(Math.max(...frames) < 2 * fixed, `a frame took ${Math.round(Math.max(...frames))} ms; a fixed drawing takes ${Math.round(fixed)} ms`);
    await page.locator('.graph-scroll').evaluate((box) => box.scrollTo(box.scrollWidth, box.scrollHeight));
    await page.locator('.node', { hasText: 'Task number 499' }).waitFor();
  }));

test('a run of 1,000 events is replayed, each frame in the time of one fixed drawing', () =>
  withPage(async ({ page, go }) => {
    await page.goto(`${server.url}/#/new`);
    await page.getByRole('textbox', { name: 'Message' }).fill('go on for long');
    await page.keyboard.press('Enter');
    await page.locator('.message', { hasText: 'That was long.' }).waitFor({ timeout: 60_000 });
    const session = /#\/s\/([^/]+)/.exec(page.url())![1]!;
    await go(`s/${session}/replay`);
    const slider = page.getByRole('slider', { name: 'Moment of the run' });
    const count = Number(await slider.getAttribute('max'));
    assert.ok(count >= 1000, `${count} events`);
    const used = await meter(page);
    const moves = 60;
    const start = await used();
    await slider.evaluate(
      async (input: HTMLInputElement, [moves, count]) => {
        const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!;
        for (let nth = 0; nth < moves!; nth += 1) {
          // Back and forth over the whole run.
          set.call(input, String(Math.round((count! / 2) * (1 + 0.95 * Math.sin(nth / 4)))));
          input.dispatchEvent(new Event('input', { bubbles: true }));
          await new Promise(requestAnimationFrame);
        }
      },
      [moves, count],
    );
    const each = ((await used()) - start) / moves;
    const fixed = await fixedDrawing(page, used);
    assert.ok(each <= fixed, `${each.toFixed(1)} ms for a frame; a fixed drawing takes ${fixed.toFixed(1)} ms`);
  }));
