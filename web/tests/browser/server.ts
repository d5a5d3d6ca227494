// The server under test, with a home and a project of its own.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page, type Request } from 'playwright-core';
import type { Model } from './model';

export interface Server {
  url: string;
  /** The project that the team works in. */
  folder: string;
  /** A link to sign in with; it works once. */
  login: string;
  /** What a terminal in the project prints for a command of the program. */
  terminal: (...words: string[]) => Promise<string>;
  /** Kills the server without a warning. */
  crash: () => Promise<void>;
  /** Starts it again at the same address, with the same home. */
  restart: () => Promise<void>;
  stop: () => Promise<void>;
}

/** With a model of the test; without one, the recorded team of `--demo`. */
export async function startServer(model?: Model, ...words: string[]): Promise<Server> {
  const program = process.env.MAX_TEAM_BIN;
  if (!program) throw new Error('set MAX_TEAM_BIN to the program');
  const root = mkdtempSync(join(tmpdir(), 'max-team-web-'));
  const project = join(root, 'project');
  mkdirSync(project);
  const models = model ? { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'sk-test-0123456789abcdef' } : {};
  const options = { cwd: project, env: { PATH: process.env.PATH, HOME: root, MAX_TEAM_HOME: join(root, 'home'), ...models } };
  let child: ChildProcess;
  const start = async (port: number) => {
    child = spawn(program, ['serve', '--port', String(port), '--json', ...(model ? words : ['--demo'])], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
    return JSON.parse(await firstLine(child)) as { url: string; login: string; port: number; folder: string };
  };
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const over = new Promise((done) => child.once('exit', done));
    child.kill(signal);
    await over;
  };
  const said = await start(0);
  return {
    url: said.url,
    folder: said.folder,
    login: said.login,
    terminal: (...words) =>
      new Promise((done, fail) => {
        execFile(program, words, options, (error, out, err) => (error ? fail(new Error(`max-team ${words.join(' ')}: ${err}`)) : done(out)));
      }),
    crash: () => end('SIGKILL'),
    restart: async () => {
      await start(said.port);
    },
    stop: async () => {
      await end('SIGTERM');
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((done, fail) => {
    child.once('exit', (code) => fail(new Error(`the server ended with ${code} before it said where it is`)));
    createInterface({ input: child.stdout! }).once('line', done);
  });
}

export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
}

export type State = Exclude<BrowserContextOptions['storageState'], string | undefined>;

/** Opens the link to sign in, and keeps the cookie. */
export async function signIn(browser: Browser, server: Server): Promise<State> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(server.login);
  await page.getByRole('navigation', { name: 'Main' }).first().waitFor();
  if (page.url().includes(server.login.split('#')[1]!)) throw new Error('the code stays in the address');
  const state = await context.storageState();
  await context.close();
  return state;
}

export interface Opened {
  page: Page;
  context: BrowserContext;
  /** Errors, dialogs and breaches of the content security policy. */
  faults: string[];
  /** Shows a screen, and waits until what it fetches is there. */
  go: (where: string) => Promise<void>;
}

/** A page with its own cookies, for an English-speaking user at a desk unless told otherwise. */
export async function openPage(browser: Browser, server: Server, state: State, options: BrowserContextOptions = {}): Promise<Opened> {
  const context = await browser.newContext({ locale: 'en-US', viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce', ...options, storageState: state });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    if (/Content Security Policy|Refused to/.test(message.text())) faults.push(message.text());
  });
  page.setDefaultTimeout(20_000);
  const idle = whenIdle(page);
  const go = async (where: string) => {
    await page.goto(`${server.url}/#/${where}`);
    await idle();
  };
  await go('now');
  return { page, context, faults, go };
}

/** The width of a phone, with a keyboard. */
export const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 780 } };

interface Axe {
  run: (options: object) => Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }>;
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The serious and critical findings of axe on what the page shows. */
export async function seriousFindings(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: Axe }).axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice'], resultTypes: ['violations'] }));
  const serious = violations.filter((one) => one.impact === 'serious' || one.impact === 'critical');
  return serious.map((one) => `${one.id}: ${one.nodes.slice(0, 2).map((node) => node.html.slice(0, 160)).join(' ')}`);
}

/** Waits until the page has drawn what it asked for; the event stream never ends and does not count. */
function whenIdle(page: Page): () => Promise<void> {
  let open = 0;
  const counts = (url: string) => url.includes('/api/v1/') && !url.includes('/api/v1/events');
  page.on('request', (request) => counts(request.url()) && (open += 1));
  const ended = (request: Request) => counts(request.url()) && (open -= 1);
  page.on('requestfinished', ended);
  page.on('requestfailed', ended);
  const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
  return async () => {
    await page.locator('main').waitFor();
    do {
      await frames();
      while (open > 0) await Promise.race([page.waitForEvent('requestfinished'), page.waitForEvent('requestfailed')]);
      await frames();
    } while (open > 0);
  };
}

/** Begins a session with these words and waits for the plan. */
export async function propose(page: Page, words = PROMPT): Promise<string> {
  await page.goto(`${new URL(page.url()).origin}/#/new`);
  await page.getByRole('textbox', { name: 'Message' }).fill(words);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Approve', exact: true }).first().waitFor();
  return /#\/s\/([^/]+)/.exec(page.url())![1]!;
}

export const PROMPT = 'Three coffees cost as much as one since this morning. Please find out why, fix it and test it.';
