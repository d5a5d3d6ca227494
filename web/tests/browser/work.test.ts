// Work with the team in a browser: plans, questions, answers from elsewhere, reloads and crashes.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { gate, planner, startModel, type Asked, type Model, type Reply } from './model';
import { openBrowser, openPage, PROMPT, propose, signIn, startServer, type Opened, type Server } from './server';

let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

interface Stage {
  server: Server;
  asked: Asked[];
  heard: Model['heard'];
  open: () => Promise<Opened>;
}

/** A model, a server and pages of its own for each test. */
async function withTeam(script: (asked: Asked) => Reply | undefined, body: (stage: Stage) => Promise<void>, ...words: string[]) {
  const model = await startModel(script);
  const server = await startServer(model, ...words);
  const opened: Opened[] = [];
  try {
    const state = await signIn(browser, server);
    const open = async () => {
      opened.push(await openPage(browser, server, state));
      return opened.at(-1)!;
    };
    await body({ server, asked: model.asked, heard: model.heard, open });
    assert.deepEqual(opened.flatMap((one) => one.faults), []);
  } finally {
    for (const one of opened) await one.context.close();
    await server.stop();
    model.stop();
  }
}

const approve = (page: Page) => page.getByRole('button', { name: 'Approve', exact: true });
const message = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const answer = (page: Page, text: string) => page.locator('.message', { hasText: text });
const conversation = async (page: Page) => (await page.locator('.chat-scroll .chat-column').innerText()).replace(/\s+/g, ' ').trim();

async function isDone(page: Page) {
  await page.locator('.plan-card .badge', { hasText: 'done' }).waitFor();
  await answer(page, 'Three coffees cost 750 again.').waitFor();
  await page.locator('.session-head').getByText('idle').waitFor();
}

async function say(page: Page, words: string) {
  await message(page).fill(words);
  await page.keyboard.press('Enter');
}

test('a plan is approved and carried out', () =>
  withTeam(planner(), async ({ server, open }) => {
    const { page } = await open();
    await propose(page);
    const tasks = page.locator('.plan-card .task-list li');
    assert.equal(await tasks.count(), 2);
    await approve(page).click();
    await isDone(page);
    assert.match((await tasks.nth(1).textContent())!, /done/);
    assert.equal(readFileSync(join(server.folder, 'total.txt'), 'utf8'), '750\n');
  }));

test('a plan is edited, asked about again, and rejected with a reason', () =>
  withTeam(planner(), async ({ open, server, asked }) => {
    const { page } = await open();
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
    await approve(page).waitFor({ state: 'detached' });
    assert.match(await server.terminal('inbox'), /nothing waits/);
    assert.ok(!asked.some((one) => one.first.includes('# Your task')), 'nothing ran');
  }));

test('an edited plan runs as it was edited', () =>
  withTeam(planner(), async ({ open, asked }) => {
    const { page } = await open();
    await propose(page);
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit the plan' });
    await dialog.getByLabel('Description').fill('Read the log of the till.');
    await dialog.getByRole('button', { name: 'Save the changes' }).click();
    await dialog.waitFor({ state: 'detached' });
    await approve(page).click();
    await isDone(page);
    assert.ok(asked.some((one) => one.first.includes('# Your task: look') && one.first.includes('Read the log of the till.')));
  }));

test('two pages approve at once: the plan runs once', () =>
  withTeam(planner(), async ({ open, asked }) => {
    const [one, other] = [await open(), await open()];
    await propose(one.page);
    await other.page.goto(one.page.url());
    await approve(other.page).waitFor();
    await Promise.all([approve(one.page).click(), approve(other.page).click({ timeout: 3000 }).catch(() => {})]);
    await Promise.all([isDone(one.page), isDone(other.page)]);
    assert.equal(await conversation(other.page), await conversation(one.page));
    assert.equal(asked.filter((each) => each.first.includes('# Your task: look')).length, 1);
  }));

test('two agents ask at once: each gets its own answer', () => {
  const tasks = ['left', 'right'].map((id) => ({ id, title: id, agent: 'leo', description: id }));
  const script = ({ first, last, spoken }: Asked): Reply => {
    const task = /# Your task: (left|right)/.exec(first)?.[1];
    if (task) return spoken === 0 ? { tool: ['need_clarify', { question: `Which way is ${task}?` }] } : { text: `${task} heard ${/west|east/.exec(last)?.[0]}` };
    if (/please/i.test(last)) return { text: 'A plan.', tool: ['submit_plan', { goal: 'Both ways', tasks }] };
    return { text: 'All right.' };
  };
  return withTeam(script, async ({ open, asked }) => {
    const { page } = await open();
    await propose(page);
    await approve(page).click();
    await page.getByText('1 of 2').waitFor();
    const card = page.locator('.dock .ask-card');
    const reply = async (words: string) => {
      await card.getByRole('textbox').fill(words);
      await card.getByRole('button', { name: 'Send' }).click();
    };
    const way = async () => ((await card.textContent())!.includes('Which way is left?') ? 'west' : 'east');
    const first = await way();
    await reply(first);
    await card.getByText(first === 'west' ? 'Which way is right?' : 'Which way is left?').waitFor();
    await reply(await way());
    await page.locator('.plan-card .badge', { hasText: 'done' }).waitFor();
    for (const [task, words] of [['left', 'west'], ['right', 'east']] as const) assert.ok(asked.some((one) => one.first.includes(`# Your task: ${task}`) && one.last.includes(words)), task);
  });
});

const writer = ({ last, spoken }: Asked): Reply => (spoken === 0 || /more/.test(last) ? { tool: ['write_file', { path: 'a.txt', content: `${spoken}\n` }] } : { text: 'Written.' });

test('an answer in a terminal closes the question here and says who gave it; and the other way round', () =>
  withTeam(
    writer,
    async ({ server, open }) => {
      const { page } = await open();
      await page.goto(`${server.url}/#/new`);
      await say(page, 'write it');
      const card = page.locator('.ask-card');
      await card.getByRole('button', { name: 'Allow' }).waitFor();
      await card.getByText('a.txt').first().waitFor();
      await server.terminal('approve', '-m', 'go ahead');
      await card.waitFor({ state: 'detached' });
      await page.locator('.answer-row', { hasText: /allowed .*\(command line\)/i }).waitFor();
      await answer(page, 'Written.').waitFor();

      await say(page, 'more');
      await card.getByRole('button', { name: 'Deny' }).click();
      await page.locator('.answer-row', { hasText: /\(browser\)/ }).waitFor();
      assert.match(await server.terminal('inbox'), /nothing waits/);
      assert.equal(readFileSync(join(server.folder, 'a.txt'), 'utf8'), '0\n', 'the second change was denied');
    },
    '--solo',
  ));

test('an answer on another page closes the question here, and says who gave it', () =>
  withTeam(planner(), async ({ server, open }) => {
    const [one, other] = [await open(), await open()];
    await propose(one.page);
    await other.page.goto(`${server.url}/#/inbox`);
    await other.page.locator('.ask-card').last().getByRole('button', { name: 'Reject' }).click();
    await other.page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
    await approve(one.page).waitFor({ state: 'detached' });
    await one.page.locator('.answer-row', { hasText: /rejected .*\(browser\)/ }).waitFor();
  }));

test('a reload in the middle of an answer loses nothing and repeats nothing', () => {
  const rest = gate();
  const text = `Counts are ${'read, then '.repeat(30)}ignored.`;
  return withTeam(
    () => ({ text, until: rest.opened }),
    async ({ server, open }) => {
      const [one, other] = [await open(), await open()];
      await one.page.goto(`${server.url}/#/new`);
      await say(one.page, 'why?');
      await one.page.locator('.streaming', { hasText: 'Counts are read' }).waitFor();
      await one.page.reload();
      await one.page.locator('.streaming', { hasText: text.slice(0, text.length / 2 - 15) }).waitFor();
      await other.page.goto(one.page.url());
      await other.page.locator('.streaming', { hasText: 'Counts are read' }).waitFor();
      rest.open();
      for (const { page } of [one, other]) {
        await answer(page, 'ignored.').waitFor();
        await page.locator('.session-head').getByText('idle').waitFor();
        assert.equal(await page.locator('.agent-message .md').innerText(), text);
      }
      assert.equal(await conversation(other.page), await conversation(one.page));
    },
  );
});

test('the server is killed in the middle of a plan: the page goes on with the restarted one', () => {
  const first = gate();
  let killed = false;
  const script = planner(({ first: task }) => {
    if (!task.includes('# Your task: mend') || killed) return undefined;
    return { text: 'I begin to mend', until: first.opened };
  });
  return withTeam(script, async ({ server, open, asked, heard }) => {
    const { page } = await open();
    const session = await propose(page);
    await approve(page).click();
    await page.getByRole('list', { name: 'At work' }).getByText('leo').waitFor();
    await heard((one) => one.first.includes('# Your task: mend'));
    await server.crash();
    killed = true;
    first.open();
    await page.getByText('The server cannot be reached. What you see').waitFor();
    assert.equal(await page.locator('.plan-card').count(), 1, 'the conversation can still be read');
    await say(page, 'Are you there?');
    await page.getByText('Nothing was sent').waitFor();
    assert.equal(await message(page).inputValue(), 'Are you there?');
    await message(page).fill('');
    await server.restart();
    await page.getByText('The server cannot be reached. What you see').waitFor({ state: 'detached' });
    await isDone(page);
    assert.equal(asked.filter((one) => one.first.includes('# Your task: look')).length, 1, 'what was done is not done again');
    assert.equal(existsSync(join(server.folder, 'total.txt')), true);
    const seen = await conversation(page);
    await page.reload();
    await isDone(page);
    assert.equal(await conversation(page), seen, session);
  });
});

test('the server is killed while a question waits and while an answer is written: the same page goes on', () => {
  const half = gate();
  let killed = false;
  const script = ({ last, spoken }: Asked): Reply => {
    if (/tell/.test(last)) return killed ? { text: 'Counts are ignored since Monday.' } : { text: 'Counts were read on Sunday, and since then they are', until: half.opened };
    return spoken === 0 ? { tool: ['write_file', { path: 'a.txt', content: 'once\n' }] } : { text: 'Written.' };
  };
  return withTeam(
    script,
    async ({ server, open }) => {
      const { page } = await open();
      let loads = 0;
      page.on('framenavigated', () => (loads += 1));
      const again = async () => {
        await server.crash();
        await page.getByText('The server cannot be reached. What you see').waitFor();
        await server.restart();
        await page.getByText('The server cannot be reached. What you see').waitFor({ state: 'detached' });
      };
      await page.goto(`${server.url}/#/new`);
      await say(page, 'write it');
      const allow = page.locator('.ask-card').getByRole('button', { name: 'Allow' });
      await allow.waitFor();
      const before = loads;
      await again();
      await allow.click();
      await answer(page, 'Written.').waitFor();
      assert.equal(readFileSync(join(server.folder, 'a.txt'), 'utf8'), 'once\n');
      await say(page, 'tell me why');
      await page.locator('.streaming', { hasText: 'Counts were read' }).waitFor();
      await server.crash();
      killed = true;
      half.open();
      await server.restart();
      await answer(page, 'ignored since Monday').waitFor();
      await page.locator('.session-head').getByText('idle').waitFor();
      assert.doesNotMatch(await conversation(page), /Counts were read/, 'the lost half is not shown');
      assert.equal(await page.locator('.agent-message', { hasText: 'ignored since Monday' }).count(), 1);
      assert.equal(loads, before, 'the page was not loaded again');
    },
    '--solo',
  );
});

test('everything can be done with the keyboard', () =>
  withTeam(planner(), async ({ open, server }) => {
    const { page } = await open();
    await page.goto(`${server.url}/#/new`);
    await message(page).waitFor();
    await page.keyboard.type(PROMPT);
    await page.keyboard.press('Enter');
    await approve(page).waitFor();
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
    await tabTo(page, 'look');
    await page.keyboard.press('ArrowRight');
    assert.match(await focusName(page), /mend/);
    await page.keyboard.press('Enter');
    await page.getByRole('complementary').waitFor();
  }));

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
