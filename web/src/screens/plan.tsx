import { useEffect, useState } from 'preact/hooks';
import { get } from '../lib/api';
import { duration, money, tokens } from '../lib/format';
import { read, t, word, write } from '../lib/i18n';
import { go, link } from '../lib/router';
import { explain, fetchPlan, mayWrite, planView } from '../lib/store';
import { plain } from '../lib/text';
import type { PlanState } from '../lib/model';
import type { Artifact, PlanView } from '../lib/types';
import { Badge, Bar, Button, Elapsed, Empty, Fold, Segmented, toast } from '../ui/basics';
import { PlanGraph } from '../ui/graph';
import { Icon } from '../ui/icons';
import { Code, Markdown } from '../ui/markdown';
import { PlanActions } from '../ui/pending';
import { Forecast, PlanBadge, progress, shownTasks, TaskList, type ShownTask } from '../ui/plan-parts';
import { useFetch, useSettled } from '../ui/use-fetch';
import { act, type SessionProps } from './session';

export function PlanScreen({ id, model, version, rest }: SessionProps) {
  const plans = [...model.plans.values()];
  const plan = model.plans.get(rest[0] ?? '') ?? plans.at(-1);
  if (!plan) {
    return (
      <div class="page wide">
        <SharedTasks session={id} version={version} empty />
      </div>
    );
  }
  return (
    <div class="page wide">
      {plans.length > 1 && (
        <label class="inline-field">
          {t('plan.word')}
          <select value={plan.id} onChange={(event) => go(['s', id, 'plan', event.currentTarget.value])}>
            {plans.map((one) => (
              <option key={one.id} value={one.id}>
                {one.goal.slice(0, 90)} ({word('plan_state', one.state)})
              </option>
            ))}
          </select>
        </label>
      )}
      <OnePlan key={plan.id} session={id} plan={plan} wanted={rest[1] ?? null} />
      <SharedTasks session={id} version={version} />
    </div>
  );
}

interface ListedTask {
  id: string;
  subject: string;
  description: string;
  status: string;
  owner: string;
  blocked_by: string[];
  in_plan: string | null;
}

const LIST_STATES: Record<string, string> = { pending: 'planned', in_progress: 'running', completed: 'done' };

/** The list of tasks that the agents of a session share besides plans. */
function SharedTasks({ session, version, empty = false }: { session: string; version: number; empty?: boolean }) {
  const change = useSettled(version, 800);
  const { data } = useFetch<{ task_lines: ListedTask[] }>(`/sessions/${session}/tasks`, change);
  const tasks = (data?.task_lines ?? []).filter((task) => task.in_plan === null && task.status !== 'deleted');
  if (tasks.length === 0) {
    return empty ? (
      <Empty icon="plan" title={t('plan.none')}>
        <p>{t('plan.none_about')}</p>
      </Empty>
    ) : null;
  }
  return (
    <section aria-labelledby="shared">
      <h2 id="shared">{t('list.title')}</h2>
      <ul class="rows card flush">
        {tasks.map((task) => (
          <li key={task.id}>
            <Fold
              class="fact"
              head={
                <>
                  <span class="muted small num">#{task.id}</span>
                  <span class="grow ellipsis">{plain(task.subject)}</span>
                  {task.blocked_by.length > 0 && <span class="muted small">← {task.blocked_by.map((other) => `#${other}`).join(' ')}</span>}
                  {task.owner && <span class="small">{task.owner}</span>}
                  <Badge state={LIST_STATES[task.status] ?? task.status} text={word('list', task.status)} />
                </>
              }
            >
              {() => <Markdown text={task.description || task.subject} />}
            </Fold>
          </li>
        ))}
      </ul>
    </section>
  );
}

function OnePlan({ session, plan, wanted }: { session: string; plan: PlanState; wanted: string | null }) {
  const view = planView(plan.id);
  const [mode, setMode] = useState<'graph' | 'list'>(() => (read('max-team.plan') === 'list' || innerWidth < 700 ? 'list' : 'graph'));
  useEffect(() => {
    void fetchPlan(plan.id);
  }, [plan.id]);
  const tasks = shownTasks(plan, view);
  const picked = wanted;
  const pick = (task: string | null) => go(task ? ['s', session, 'plan', plan.id, task] : ['s', session, 'plan', plan.id], undefined, true);
  const chosen = tasks.find((task) => task.id === picked);
  const ended = plan.endedAt !== null;
  return (
    <>
      <PlanHead plan={plan} view={view} tasks={tasks} />
      {view && view.questions.length > 0 && !ended && (
        <div class="card ask-card">
          <strong>{t(aboutKey(view.questions[0]!.about))}</strong>
          {typeof view.questions[0]!.about === 'object' && 'failure' in view.questions[0]!.about && <pre class="failure-text">{plain(view.questions[0]!.about.failure.error)}</pre>}
          <PlanActions question={view.questions[0]!.question} plan={plan.id} about={view.questions[0]!.about} />
        </div>
      )}
      <div class="row">
        <Segmented
          label={t('plan.view')}
          value={mode}
          options={[
            ['graph', t('plan.graph')],
            ['list', t('plan.list')],
          ]}
          onChange={(next) => {
            setMode(next);
            write('max-team.plan', next);
          }}
        />
        <span class="grow" />
        <Legend />
        <Button small look="ghost" icon="copy" onClick={() => void copyMermaid(plan.id)}>
          Mermaid
        </Button>
      </div>
      <div class={chosen ? 'split' : ''}>
        <div class="grow">
          {mode === 'graph' && view ? (
            <PlanGraph layout={view.layout} tasks={tasks} picked={picked} onPick={(task) => pick(task === picked ? null : task)} />
          ) : (
            <div class="card flush">
              <TaskList tasks={tasks} picked={picked} onPick={(task) => pick(task === picked ? null : task)} />
            </div>
          )}
        </div>
        {chosen && <TaskPanel session={session} plan={plan} task={chosen} onClose={() => pick(null)} />}
      </div>
    </>
  );
}

async function copyMermaid(plan: string) {
  try {
    await navigator.clipboard.writeText(await get<string>(`/plans/${plan}/mermaid`));
    toast(t('plan.copied'));
  } catch (error) {
    toast(explain(error), 'error');
  }
}

function aboutKey(about: PlanView['questions'][number]['about']) {
  const kind = typeof about === 'string' ? about : 'failure' in about ? 'failure' : 'start';
  return `plan.ask_${kind}` as const;
}

function Legend() {
  return (
    <p class="legend tiny-text muted hide-phone">
      <span>
        <span class="line critical" aria-hidden="true" /> {t('plan.critical')}
      </span>
      <span>
        <Icon name="audit" size={13} /> {t('proof.verified')}
      </span>
      <span>
        <Icon name="lock" size={13} /> {t('plan.gated')}
      </span>
    </p>
  );
}

function PlanHead({ plan, view, tasks }: { plan: PlanState; view: PlanView | null; tasks: ShownTask[] }) {
  const { done, all, failed, running } = progress(tasks, plan);
  const ended = plan.endedAt !== null;
  const spent = view?.tally?.spent;
  return (
    <header class="plan-head">
      <div class="row">
        <h2 class="grow">{plan.goal}</h2>
        <PlanBadge state={plan.approvedAt === null && !ended ? 'proposed' : plan.state} />
        {!ended && plan.approvedAt !== null && mayWrite.value && (
          <Button small look="danger" icon="stop" onClick={() => void act(`/plans/${plan.id}/stop`, {}, t('plan.stopping_done'))}>
            {t('plan.stop')}
          </Button>
        )}
      </div>
      <div class="figures">
        <Figure label={t('plan.tasks')} value={t('plan.progress', { done, all })} />
        {running > 0 && <Figure label={t('plan.running')} value={String(running)} />}
        {failed > 0 && <Figure label={t('state.failed')} value={String(failed)} />}
        {plan.approvedAt !== null && (
          <div class="figure">
            <span class="muted tiny-text">{t('plan.elapsed')}</span>
            <Elapsed from={plan.approvedAt} to={plan.endedAt} />
          </div>
        )}
        {spent && <Figure label={t('plan.spent')} value={`${money(spent.nano)} · ${t('cost.tokens', { count: tokens(spent.usage.input + spent.usage.output) })}`} />}
        {view?.forecast && <Figure label={t('plan.forecast')} value={`${view.forecast.likely_nano === null ? '?' : money(view.forecast.likely_nano)} · ${duration(view.forecast.likely_ms)}`} />}
        {view?.tally && ended && <Figure label={t('proof.verified')} value={`${view.tally.verified}/${view.tally.done}`} />}
      </div>
      <Bar part={all ? done / all : 0} tone={failed ? 'fail' : 'done'} />
      {view && plan.approvedAt === null && !ended && <Forecast view={view} />}
    </header>
  );
}

export function Figure({ label, value }: { label: string; value: string }) {
  return (
    <div class="figure">
      <span class="muted tiny-text">{label}</span>
      <span class="num">{value}</span>
    </div>
  );
}

function TaskPanel({ session, plan, task, onClose }: { session: string; plan: PlanState; task: ShownTask; onClose: () => void }) {
  const { more } = task;
  const result = more?.result;
  return (
    <aside class="card panel" aria-label={task.title}>
      <header class="row">
        <h3 class="grow">{task.title}</h3>
        <button type="button" class="ghost icon-btn" onClick={onClose} aria-label={t('do.close')}>
          <Icon name="cross" />
        </button>
      </header>
      <p class="row wrap">
        <Badge state={task.state} kind="task" />
        {task.proof && <Badge state={task.proof === 'verified' ? 'verified' : 'idle'} text={word('proof', task.proof)} />}
        {task.attempt > 1 && <span class="small muted">{t('task.attempt', { count: task.attempt })}</span>}
      </p>
      <dl class="facts">
        <dt>{t('edit.owner')}</dt>
        <dd>
          {task.worker ? <a href={link(['s', session, 'agent', task.worker])}>{task.owner}</a> : task.owner}
          {more?.model && <span class="muted"> · {more.model}</span>}
        </dd>
        {task.needs.length > 0 && (
          <>
            <dt>{t('edit.needs')}</dt>
            <dd>{task.needs.map((need) => <a key={need} class="chip" href={link(['s', session, 'plan', plan.id, need])}>{need}</a>)}</dd>
          </>
        )}
        {more?.when && (
          <>
            <dt>{t('task.when')}</dt>
            <dd>
              <code>{more.when}</code>
            </dd>
          </>
        )}
        {more?.owns && (
          <>
            <dt>{t('task.owns')}</dt>
            <dd>{more.owns.length > 0 ? more.owns.map((path) => <code key={path}>{path}</code>) : t('task.owns_nothing')}</dd>
          </>
        )}
        {more?.verify && more.verify.length > 0 && (
          <>
            <dt>{t('edit.verify')}</dt>
            <dd>{more.verify.map((line) => <code key={line}>{line}</code>)}</dd>
          </>
        )}
        {more?.spent && (
          <>
            <dt>{t('plan.spent')}</dt>
            <dd>
              {money(more.spent.nano)} · {t('cost.tokens', { count: tokens(more.spent.usage.input + more.spent.usage.output) })} · {duration(more.spent.ms)}
            </dd>
          </>
        )}
      </dl>
      {more?.description && (
        <Fold head={<span class="small">{t('edit.description')}</span>} open={task.state === 'planned'}>
          {() => <Markdown text={more.description} />}
        </Fold>
      )}
      {task.state === 'failed' && task.message && (
        <div class="failure">
          <pre>{plain(task.message)}</pre>
        </div>
      )}
      {(result?.output || (task.endedAt !== null && task.message && task.state === 'done')) && (
        <section>
          <h4>{t('task.result')}</h4>
          <Markdown text={result?.output ?? task.message} />
        </section>
      )}
      {result?.evidence && result.evidence.length > 0 && (
        <section>
          <h4>{t('task.evidence')}</h4>
          <ul class="evidence">
            {result.evidence.map((one, at) => (
              <li key={at}>
                <Icon name={one.ok ? 'check' : 'cross'} size={15} />
                <span>
                  <code>{plain(one.what)}</code> <span class="muted small">{plain(one.detail)}</span>
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <Artifacts title={t('task.produced')} list={result?.artifacts} />
      <Artifacts title={t('task.received')} list={more?.artifacts} />
      {!['done', 'skipped', 'cancelled', 'failed'].includes(task.state) && plan.approvedAt !== null && mayWrite.value && (
        <Button small look="danger" onClick={() => void act(`/plans/${plan.id}/stop`, { task: task.id }, t('plan.stopping_done'))}>
          {t('task.give_up')}
        </Button>
      )}
    </aside>
  );
}

function Artifacts({ title, list }: { title: string; list?: Artifact[] }) {
  if (!list || list.length === 0) return null;
  return (
    <section>
      <h4>{title}</h4>
      {list.map((one, at) => (
        <Fold key={at} head={<span class="small mono">{one.name}</span>}>
          {() => (one.type === 'text' ? <Markdown text={one.content} /> : <Code text={plain(one.content)} lang={one.type === 'json' ? 'json' : ''} />)}
        </Fold>
      ))}
    </section>
  );
}
