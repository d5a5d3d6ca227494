// What a person decides besides talking: forks, worktrees, permissions and the memory.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startModel, type Asked, type Reply } from './model';
import { openBrowser, openPage, PHONE, seriousFindings, signIn, startServer, type Opened, type Server } from './server';

let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

async function withPage(script: (asked: Asked) => Reply | undefined, body: (opened: Opened & { server: Server; asked: Asked[] }) => Promise<void>, ...words: string[]) {
  const model = await startModel(script);
  const server = await startServer(model, ...words);
  try {
    const opened = await openPage(browser, server, await signIn(browser, server), PHONE);
    await body({ ...opened, server, asked: model.asked });
    await opened.context.close();
    assert.deepEqual(opened.faults, []);
  } finally {
    await server.stop();
    model.stop();
  }
}

async function say(page: Page, words: string) {
  await page.getByRole('textbox', { name: 'Message' }).fill(words);
  await page.keyboard.press('Enter');
}

const answer = (page: Page, text: string) => page.locator('.message', { hasText: text });
const sessionIn = (page: Page) => /#\/s\/([^/]+)/.exec(page.url())![1]!;

function repository(folder: string, files: Record<string, string>) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const git = (...words: string[]) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.invalid', ...words], { cwd: folder });
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'first');
}

test('a fork begins at the moment that the slider shows, and opens', () =>
  withPage(
    ({ last }) => ({ text: /now red/.test(last) ? 'Red it is.' : /which/.test(last) ? 'It was blue.' : 'Blue it is.' }),
    async ({ page, go, server, asked }) => {
      await go('new');
      await say(page, 'paint it blue');
      await answer(page, 'Blue it is.').waitFor();
      await say(page, 'now red');
      await answer(page, 'Red it is.').waitFor();
      const session = sessionIn(page);
      await go(`s/${session}/replay`);
      const slider = page.getByRole('slider', { name: 'Moment of the run' });
      const event = page.locator('.replay-event');
      for (let at = 1; !(await event.innerText()).includes('Blue it is.'); at += 1) await slider.fill(String(at));
      const fork = page.getByRole('button', { name: 'Fork from here' });
      await fork.click();
      const dialog = page.getByRole('dialog', { name: 'Fork from here' });
      assert.deepEqual(await seriousFindings(page), []);
      // The folder is no repository, so there can be no worktree of it.
      await dialog.getByRole('button', { name: 'Fork', exact: true }).click();
      await dialog.getByRole('alert').getByText('git init').waitFor();
      await dialog.getByRole('radio', { name: /The project itself/ }).check();
      await dialog.getByLabel('First message').fill('which colour was it?');
      await dialog.getByRole('button', { name: 'Fork', exact: true }).click();
      await answer(page, 'It was blue.').waitFor();
      assert.notEqual(sessionIn(page), session);
      await page.getByText('Continues from event').waitFor();
      assert.match(asked.at(-1)!.last, /which colour was it\?/);
      assert.match(asked.at(-1)!.first, /paint it blue/);
      assert.equal(asked.at(-1)!.spoken, 1, 'the later answer is not part of it');
      await page.getByText('Continues from event').getByRole('link').click();
      await answer(page, 'Red it is.').waitFor();

      repository(server.folder, { 'a.txt': 'one\n' });
      await go(`s/${session}/replay`);
      await fork.click();
      await dialog.getByRole('button', { name: 'Fork', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.waitForURL((url) => !url.hash.includes(session));
      await say(page, 'which one?');
      await answer(page, 'It was blue.').waitFor();
    },
    '--solo',
  ));

test('a permission is tested: the verdict, its rule and where that is written', () =>
  withPage(
    () => undefined,
    async ({ page, go, server }) => {
      mkdirSync(join(server.folder, '.claude'));
      writeFileSync(join(server.folder, '.claude/settings.json'), JSON.stringify({ permissions: { deny: ['Bash(rm:*)'] } }));
      await go('settings');
      const card = page.getByRole('region', { name: 'Test a permission' });
      const input = card.getByLabel('Command line, path or address');
      await input.fill('rm -rf build');
      await page.keyboard.press('Enter');
      const told = card.getByRole('status');
      await told.getByText('denied').waitFor();
      assert.deepEqual(await seriousFindings(page), []);
      assert.match(await told.innerText(), /Bash\(rm:\*\)[^]*\.claude\/settings\.json[^]*the project/);
      await card.getByLabel('Tool').selectOption('write_file');
      assert.equal(await told.innerText(), '', 'an answer belongs to its question');
      await input.fill('src/a.txt');
      await card.getByLabel('Agent').selectOption('max');
      await card.getByRole('button', { name: 'Test' }).click();
      await told.getByText('max does not have the tool write_file.').waitFor();
      await card.getByLabel('Agent').selectOption('');
      await card.getByLabel('Permission mode').selectOption('acceptEdits');
      await card.getByRole('button', { name: 'Test' }).click();
      await told.getByText('allowed').waitFor();
    },
  ));

const SCRIBE = '---\nname: scribe\nrole: scribe\ndescription: Writes\nisolation: worktree\ntools: [write_file]\n---\nWrite.\n';
const delegating = ({ first, spoken }: Asked): Reply => {
  if (/please/.test(first)) return spoken === 0 ? { tool: ['dispatch_task', { agent: 'scribe', description: 'Write.' }] } : { text: 'The scribe is done.' };
  return spoken < 2 ? { tool: ['write_file', { path: spoken === 0 ? 'a.txt' : 'b.txt', content: 'copy\n' }] } : { text: 'Written.' };
};

test('changes in a worktree are accepted and rejected by file, and a conflict is shown', () =>
  withPage(delegating, async ({ page, go, server }) => {
    const text = (name: string) => readFileSync(join(server.folder, name), 'utf8');
    repository(server.folder, { 'a.txt': 'one\n', 'b.txt': 'one\n', '.max-team/agents/scribe.md': SCRIBE });
    await go('new');
    await say(page, 'change it, please');
    await page.locator('.dock .ask-card').getByRole('button', { name: 'Take over' }).waitFor();
    writeFileSync(join(server.folder, 'b.txt'), 'mine\n');
    await go(`s/${sessionIn(page)}/review`);
    const card = page.getByRole('article', { name: /^scribe/ });
    await card.getByRole('button', { name: 'Accept all' }).click();
    await card.getByRole('alert').getByText('1 file could not be merged').waitFor();
    assert.deepEqual([text('a.txt'), text('b.txt')], ['copy\n', 'mine\n']);
    await card.getByText('in the project').first().waitFor();
    await card.getByText('<<<<<<< yours').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.equal(await card.getByRole('button', { name: 'Accept b.txt' }).isDisabled(), true);
    await card.getByRole('button', { name: 'Reject b.txt' }).click();
    await card.waitFor({ state: 'detached' });
    assert.equal(text('b.txt'), 'mine\n');
    // The question about the worktree is answered with it.
    await go(`s/${sessionIn(page)}/chat`);
    await answer(page, 'The scribe is done.').waitFor();
    assert.match(await server.terminal('worktrees', 'list'), /there are no worktrees/);
  }));

test('a whole worktree is rejected after a second question', () =>
  withPage(delegating, async ({ page, go, server }) => {
    repository(server.folder, { 'a.txt': 'one\n', 'b.txt': 'one\n', '.max-team/agents/scribe.md': SCRIBE });
    writeFileSync(join(server.folder, '.max-team/settings.json'), JSON.stringify({ permissions: {} }));
    await server.terminal('-p', 'change it, please', '--permission-mode', 'acceptEdits');
    await go('now');
    const session = await page.evaluate(async () => ((await (await fetch('/api/v1/sessions')).json()) as { sessions: { session: string }[] }).sessions[0]!.session);
    await go(`s/${session}/review`);
    const card = page.getByRole('article', { name: /^scribe/ });
    await card.getByRole('button', { name: 'Accept a.txt' }).waitFor();
    await card.getByRole('button', { name: 'Reject all' }).click();
    await page.getByRole('dialog', { name: 'Reject all' }).getByRole('button', { name: 'Reject all' }).click();
    await card.waitFor({ state: 'detached' });
    assert.equal(readFileSync(join(server.folder, 'a.txt'), 'utf8'), 'one\n');
    assert.match(await server.terminal('worktrees', 'list'), /there are no worktrees/);
  }));

test('a fact is added, told to the model, changed and forgotten', () =>
  withPage(
    () => ({ text: 'Hello.' }),
    async ({ page, go, server }) => {
      await go('memory');
      await page.getByText('Nothing is remembered yet.').waitFor();
      await page.getByRole('button', { name: 'Add a fact' }).click();
      const add = page.getByRole('dialog', { name: 'Add a fact' });
      await add.getByLabel('Name').fill('drink');
      await add.getByLabel('Value').fill('green tea');
      await add.getByRole('button', { name: 'Save' }).click();
      const fact = page.getByRole('button', { name: /preferences\.drink/ });
      await fact.getByText('green tea').waitFor();
      await go('new');
      await say(page, 'hello there');
      await answer(page, 'Hello.').waitFor();

      await go('memory');
      await fact.click();
      await page.getByText('about you: told in every turn').waitFor();
      await page.getByText('“hello there”').waitFor();
      assert.deepEqual(await seriousFindings(page), []);
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      const edit = page.getByRole('dialog', { name: 'Edit' });
      await edit.getByLabel('Value').fill('black tea');
      await edit.getByRole('button', { name: 'Save' }).click();
      await fact.getByText('black tea').waitFor();
      await page.getByText('an earlier value').waitFor();
      assert.match(await server.terminal('memory', 'show', 'preferences.drink'), /black tea/);

      await page.getByRole('button', { name: 'Forget', exact: true }).click();
      const forget = page.getByRole('dialog', { name: 'Forget' });
      await forget.getByText('It is still in what a model was told').waitFor();
      await forget.getByRole('button', { name: 'Forget', exact: true }).click();
      await fact.waitFor({ state: 'detached' });
      assert.doesNotMatch(await server.terminal('memory', 'list'), /(green|black) tea/);
    },
    '--solo',
  ));
