import { useEffect } from 'preact/hooks';
import { folderName } from '../app';
import { ago, duration, money, tokens } from '../lib/format';
import { t, word, write } from '../lib/i18n';
import { link } from '../lib/router';
import { inbox, lastVisit, me, now } from '../lib/store';
import type { Person, PlanLine, Reason, SessionRow } from '../lib/types';
import { Avatar, Badge, Bar, Elapsed } from '../ui/basics';
import { Icon } from '../ui/icons';
import { NotifyButton } from '../ui/notify-button';
import { PendingCard } from '../ui/pending';
import { Starters } from './new-chat';

export function NowScreen() {
  const state = now.value!;
  const running = groupRunning(state.people, state.sessions);
  const finished = finishedSince(state.plans, state.sessions, lastVisit.value);
  const waiting = inbox.value;
  useEffect(() => {
    // What is shown now counts as seen at the next visit.
    const timer = setTimeout(() => write('max-team.visit', String(Date.now())), 4000);
    return () => clearTimeout(timer);
  }, []);
  const nothing = waiting.length === 0 && running.length === 0 && state.sessions.length === 0;
  return (
    <div class="page">
      <header class="page-head">
        <div class="grow">
          <h1>{greeting()}</h1>
          <p class="muted">{summary(waiting.length, running.length)}</p>
        </div>
        <NotifyButton />
      </header>
      {nothing ? (
        <Starters />
      ) : (
        <>
          <section aria-labelledby="needs-you">
            <h2 id="needs-you">{t('now.needs_you')}</h2>
            {waiting.length === 0 ? (
              <p class="quiet-line">
                <Icon name="check" size={17} /> {t('inbox.empty')}
              </p>
            ) : (
              <div class="stack">
                {waiting.slice(0, 4).map((pending) => (
                  <PendingCard key={pending.row.question} pending={pending} where />
                ))}
                {waiting.length > 4 && (
                  <a class="btn" href={link(['inbox'])}>
                    {t('now.all_waiting', { count: waiting.length })}
                  </a>
                )}
              </div>
            )}
          </section>
          <section aria-labelledby="running">
            <h2 id="running">{t('now.running')}</h2>
            {running.length === 0 ? (
              <p class="quiet-line muted">{t('now.nothing_runs')}</p>
            ) : (
              <div class="grid-cards">
                {running.map((run) => (
                  <RunCard key={run.session} run={run} />
                ))}
              </div>
            )}
          </section>
          <section aria-labelledby="finished">
            <h2 id="finished">{t('now.finished')}</h2>
            {finished.length === 0 ? <p class="quiet-line muted">{t('now.nothing_finished')}</p> : <Finished rows={finished} />}
          </section>
        </>
      )}
    </div>
  );
}

function greeting(): string {
  const hour = new Date().getHours();
  const key = hour < 5 ? 'now.night' : hour < 12 ? 'now.morning' : hour < 18 ? 'now.afternoon' : 'now.evening';
  return t(key, { user: me.value?.user ?? '' });
}

function summary(waiting: number, running: number): string {
  const parts = [];
  if (waiting > 0) parts.push(t('now.sum_waiting', { count: waiting }));
  if (running > 0) parts.push(t('now.sum_running', { count: running }));
  return parts.length > 0 ? parts.join(' · ') : t('now.sum_quiet');
}

interface Run {
  session: string;
  title: string;
  cwd: string;
  people: Person[];
  open: SessionRow['open'];
}

function groupRunning(people: Person[], rows: SessionRow[]): Run[] {
  const runs = new Map<string, Run>();
  for (const person of people) {
    const row = rows.find((one) => one.session === person.session);
    const run = runs.get(person.session) ?? { session: person.session, title: row?.preview ?? '', cwd: row?.cwd ?? '', people: [], open: row?.open ?? null };
    run.people.push(person);
    runs.set(person.session, run);
  }
  return [...runs.values()].filter((run) => run.people.some((person) => person.state === 'busy' || person.state === 'starting' || isWaiting(person.reason)));
}

function isWaiting(reason: Reason | null): boolean {
  return typeof reason === 'object' && reason !== null && 'waiting_for' in reason;
}

function RunCard({ run }: { run: Run }) {
  const spent = run.people.reduce((sum, person) => sum + person.nano, 0);
  const used = run.people.reduce((sum, person) => sum + person.usage.input + person.usage.output + person.usage.cache_read + person.usage.cache_write, 0);
  const active = run.people.filter((person) => person.state !== 'ready' || isWaiting(person.reason));
  return (
    <a class="card run-card" href={link(['s', run.session, 'chat'])}>
      <div class="row">
        <strong class="grow clamp2">{run.title || t('session.empty')}</strong>
        <span class="live-dot" aria-hidden="true" />
      </div>
      <ul class="people">
        {active.slice(0, 6).map((person) => (
          <li key={person.agent ?? person.name}>
            <Avatar name={person.name} size="s" busy={person.state === 'busy'} />
            <span class="name">{person.name}</span>
            <span class="muted grow ellipsis">{doing(person)}</span>
            {person.since_ms && <span class="muted small nowrap"><Elapsed from={person.since_ms} /></span>}
          </li>
        ))}
      </ul>
      <div class="row muted small">
        <span class="grow ellipsis">{folderName(run.cwd)}</span>
        <span>{t('cost.tokens', { count: tokens(used) })}</span>
        <span>{money(spent)}</span>
      </div>
    </a>
  );
}

/** The server names you, the lead and the like by fixed names; agents and tasks keep their own. */
export function waitTargets(names: string): string {
  return names.split(', ').map((name) => word('wait', name)).join(t('list.comma'));
}

/** What an agent does, or why it does nothing. */
export function doing(person: Person): string {
  const { doing: act, reason } = person;
  if (act && typeof act === 'object') {
    const [kind, detail] = Object.entries(act)[0] ?? ['', {}];
    const name = String(detail?.tool ?? detail?.model ?? '');
    const target = String(detail?.target ?? '');
    return [word('doing', kind), name, target].filter(Boolean).join(' ');
  }
  if (typeof act === 'string') return word('doing', act);
  if (reason && typeof reason === 'object') {
    const [kind, text] = Object.entries(reason)[0] as [string, string];
    return `${word('reason', kind)} ${kind === 'waiting_for' ? waitTargets(text) : text}`;
  }
  return person.task ?? word('state', person.state);
}

interface FinishedRow {
  id: string;
  href: string;
  title: string;
  at: number;
  end: string;
  plan?: PlanLine;
}

function finishedSince(plans: PlanLine[], rows: SessionRow[], since: number): FinishedRow[] {
  const out: FinishedRow[] = [];
  for (const line of plans) {
    if (!line.end) continue;
    const row = rows.find((one) => one.session === line.row.session);
    out.push({ id: line.row.plan, href: link(['s', line.row.session, 'plan', line.row.plan]), title: line.row.goal, at: row?.last_at_ms ?? line.row.at_ms, end: line.end.end, plan: line });
  }
  const planned = new Set(plans.map((line) => line.row.session));
  for (const row of rows) {
    if (planned.has(row.session) || !row.answered || !row.preview) continue;
    out.push({ id: row.session, href: link(['s', row.session, 'chat']), title: row.preview, at: row.last_at_ms, end: 'answered' });
  }
  out.sort((a, b) => b.at - a.at);
  const fresh = out.filter((one) => one.at >= since);
  return (fresh.length > 0 ? fresh : out).slice(0, 12);
}

function Finished({ rows }: { rows: FinishedRow[] }) {
  return (
    <ul class="rows card flush">
      {rows.map((row) => {
        const tally = row.plan?.end?.tally;
        return (
          <li key={row.id}>
            <a class="row-link" href={row.href}>
              <Badge state={row.end === 'answered' ? 'done' : row.end} text={word('end', row.end)} />
              <span class="grow clamp2">{row.title}</span>
              {tally && (
                <span class="small muted nowrap hide-phone">
                  {t('plan.done_verified', { done: tally.done, tasks: tally.tasks, verified: tally.verified })} · {duration(tally.spent.ms)} · {money(tally.spent.nano)}
                </span>
              )}
              {tally && <span class="hide-phone"><Bar part={tally.tasks ? tally.done / tally.tasks : 0} tone={tally.failed ? 'fail' : 'done'} /></span>}
              <span class="small muted nowrap">{ago(row.at)}</span>
            </a>
          </li>
        );
      })}
    </ul>
  );
}

