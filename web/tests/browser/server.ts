// The server under test: `max-team serve --demo`, or one that runs already (MAX_TEAM_URL).
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';

export interface Server {
  url: string;
  /** The project that the team works in. */
  folder: string;
  /** A link to sign in with; it works once. */
  login: string;
  /** Kills the server without a warning. */
  crash: () => Promise<void>;
  /** Starts it again at the same address, with the same home. */
  restart: () => Promise<void>;
  stop: () => Promise<void>;
}

export async function startServer(): Promise<Server> {
  const running = process.env.MAX_TEAM_URL;
  const nothing = async () => {};
  if (running) return { url: running, folder: '', login: `${running}/login#code`, crash: nothing, restart: nothing, stop: nothing };
  const program = process.env.MAX_TEAM_BIN;
  if (!program) throw new Error('set MAX_TEAM_BIN to the program, or MAX_TEAM_URL to a running server');
  const home = mkdtempSync(join(tmpdir(), 'max-team-web-'));
  let child: ChildProcess;
  const start = async (port: number) => {
    child = spawn(program, ['serve', '--port', String(port), '--json', '--demo'], { env: { ...process.env, MAX_TEAM_HOME: home }, stdio: ['ignore', 'pipe', 'inherit'] });
    return JSON.parse(await firstLine(child)) as { url: string; login: string; port: number; folder: string };
  };
  const end = async (signal: NodeJS.Signals) => {
    const over = new Promise((done) => child.once('exit', done));
    child.kill(signal);
    await over;
  };
  const said = await start(0);
  return {
    url: said.url,
    folder: said.folder,
    login: said.login,
    crash: () => end('SIGKILL'),
    restart: async () => {
      await start(said.port);
    },
    stop: async () => {
      await end('SIGTERM');
      rmSync(home, { recursive: true, force: true });
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

/** A page with its own cookies that fails the test for errors, dialogs and breaches of the content security policy. */
export async function openPage(browser: Browser, server: Server, state: BrowserContextOptions['storageState'], options: BrowserContextOptions = {}): Promise<{ page: Page; context: BrowserContext; faults: string[] }> {
  const context = await browser.newContext({ locale: 'en-US', viewport: { width: 1280, height: 860 }, ...options, storageState: state });
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
  page.setDefaultTimeout(15_000);
  await page.goto(`${server.url}/#/now`);
  return { page, context, faults };
}

/** Begins a session with the demo's prompt and waits for the plan. */
export async function propose(page: Page): Promise<string> {
  await page.goto(`${new URL(page.url()).origin}/#/new`);
  await page.getByRole('textbox', { name: 'Message' }).fill(PROMPT);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Approve', exact: true }).first().waitFor();
  return /#\/s\/([^/]+)/.exec(page.url())![1]!;
}

export const PROMPT = 'Three coffees cost as much as one since this morning. Please find out why, fix it and test it.';
