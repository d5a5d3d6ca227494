// The types in src/lib/types.ts against what the server sends and against its OpenAPI document.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { openBrowser, openPage, propose, signIn, startServer, type Opened, type Server } from './server';

const source = readFileSync(new URL('../../src/lib/types.ts', import.meta.url), 'utf8').replace(/\/\*\*[^]*?\*\/|\/\/.*$/gm, '');
const declared = new Map<string, string>();
for (const [, name, body] of source.matchAll(/^export interface (\w+) (\{[^]*?^\})/gm)) declared.set(name!, body!);
for (const [, name, body] of source.matchAll(/^export type (\w+) =([^]*?);$/gm)) declared.set(name!, body!);

/** The parts of a text between these marks, outside of brackets. */
function split(text: string, mark: RegExp): string[] {
  const parts = [''];
  let depth = 0;
  for (const letter of text) {
    if ('{[(<'.includes(letter)) depth += 1;
    if ('}])>'.includes(letter)) depth -= 1;
    if (depth === 0 && mark.test(letter)) parts.push('');
    else parts[parts.length - 1] += letter;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

/** What keeps a value from being of a type; `null` if nothing does. */
function breach(value: unknown, type: string, where: string): string | null {
  const [first, ...others] = split(type, /\|/);
  if (others.length > 0) {
    const breaches = [first!, ...others].map((one) => breach(value, one, where));
    return breaches.includes(null) ? null : breaches.find((one) => !one!.startsWith(`${where}:`)) ?? breaches[0]!;
  }
  const one = first!;
  const wrong = `${where}: ${JSON.stringify(value)?.slice(0, 80)} is no ${one.slice(0, 80)}`;
  if (one.endsWith('[]')) {
    if (!Array.isArray(value)) return wrong;
    const item = one.slice(0, -2).replace(/^\(([^]*)\)$/, '$1');
    return value.map((part, at) => breach(part, item, `${where}[${at}]`)).find((found) => found !== null) ?? null;
  }
  if (one.startsWith('[')) return Array.isArray(value) ? null : wrong;
  if (one.startsWith('{')) {
    if (typeof value !== 'object' || value === null) return wrong;
    for (const field of split(one.slice(1, -1), /;/)) {
      const [, name, optional, kind] = /^(\w+)(\??): ([^]*)$/.exec(field)!;
      const given = (value as Record<string, unknown>)[name!];
      if (given === undefined && optional) continue;
      const found = given === undefined ? `${where}: ${name} is missing` : breach(given, kind!, `${where}.${name}`);
      if (found) return found;
    }
    return null;
  }
  if (one.startsWith('Record<')) return typeof value === 'object' && value !== null ? null : wrong;
  if (one.startsWith("'")) return value === one.slice(1, -1) ? null : wrong;
  if (one === 'null') return value === null ? null : wrong;
  if (one === 'unknown') return null;
  if (['string', 'number', 'boolean'].includes(one)) return typeof value === one ? null : wrong;
  assert.ok(declared.has(one), `types.ts has no ${one}`);
  return breach(value, declared.get(one)!, where);
}

let browser: Browser;
let server: Server;
let opened: Opened;
let session: string;

before(async () => {
  [browser, server] = await Promise.all([openBrowser(), startServer()]);
  opened = await openPage(browser, server, await signIn(browser, server));
  const { page } = opened;
  session = await propose(page);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const fetched = async (path: string) => (await opened.page.request.get(`${server.url}/api/v1${path}`)).json() as Promise<Record<string, unknown>>;

async function assertTypes() {
  const plan = ((await fetched('/plans')) as { plans: { row: { plan: string } }[] }).plans[0]!.row.plan;
  const table: [string, string][] = [
    ['/me', 'Me'],
    ['/now', 'Now'],
    ['/inbox', '{ inbox: Pending[] }'],
    ['/sessions', '{ sessions: SessionRow[] }'],
    ['/plans', '{ plans: PlanLine[] }'],
    [`/plans/${plan}`, 'PlanView'],
    [`/plans/${plan}/trace`, '{ trace_plan: Span }'],
    ['/cost', '{ costs: Cost[] }'],
    ['/settings', '{ settings: Setting[] }'],
    ['/team', '{ members: Member[] }'],
    [`/sessions/${session}`, '{ session: SessionRow; inbox: Pending[]; status: SessionStatus }'],
    [`/sessions/${session}/messages`, '{ messages: MailRecord[] }'],
    [`/sessions/${session}/audit`, '{ audit: AuditRecord[] }'],
    [`/sessions/${session}/team`, '{ team: { lead: Enrolled | null; mates: Enrolled[] } }'],
    [`/sessions/${session}/files`, '{ files: SessionFile[] }'],
    [`/sessions/${session}/events`, '{ events: EventBase[] }'],
  ];
  const found: string[] = [];
  for (const [path, type] of table) {
    const wrong = breach(await fetched(path), type, path);
    if (wrong) found.push(wrong);
  }
  assert.deepEqual(found, []);
}

test('what the server sends has the types of the pages, while a plan waits and after it', async () => {
  await assertTypes();
  const { page } = opened;
  await page.getByRole('button', { name: 'Approve', exact: true }).first().click();
  await page.getByText('Three coffees cost 750 again.').first().waitFor({ timeout: 60_000 });
  await page.locator('.session-head').getByText('idle').waitFor();
  await assertTypes();
});

interface Schema {
  oneOf?: Schema[];
  enum?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** The names of the alternatives of a schema: of its values, or of their only member. */
const named = (schema: Schema): string[] => (schema.oneOf ?? [schema]).flatMap((one) => one.enum ?? Object.keys(one.properties ?? {})).sort();
/** The same of a type. */
const namedIn = (type: string): string[] =>
  split(declared.get(type)!, /\|/).map((one) => (one.startsWith("'") ? one.slice(1, -1) : /^\{ (\w+)/.exec(one)![1]!)).sort();

test('decisions that the pages send are those of the OpenAPI document', async () => {
  const document = await fetched('/openapi.json');
  const paths = document.paths as Record<string, { post: { requestBody: { content: Record<string, { schema: Schema }> } } }>;
  const decision = paths['/api/v1/plans/{plan}/decision']!.post.requestBody.content['application/json']!.schema.properties!.decision!;
  assert.deepEqual(namedIn('Decision'), named(decision));
  const of = (name: string) => decision.oneOf!.find((one) => one.properties?.[name])!.properties![name]!;
  assert.deepEqual(namedIn('Edit'), named(of('edit').items!));
  // Only code gives a decision up to a person (`escalate`).
  assert.deepEqual(namedIn('Ruling'), named(of('rule')).filter((name) => name !== 'escalate'));
});
