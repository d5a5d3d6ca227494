// Parts of a plan that several screens show.
import { useMemo } from 'preact/hooks';
import { duration, money, tokens } from '../lib/format';
import { t, word } from '../lib/i18n';
import type { PlanState, TaskState } from '../lib/model';
import type { PlanTask, PlanView } from '../lib/types';
import { Avatar, Badge, Dot, Elapsed, toneOf } from './basics';
import { Icon } from './icons';

/** A task as the screens show it: from the events at once, with details from the server when they are there. */
export interface ShownTask {
  id: string;
  title: string;
  owner: string;
  needs: string[];
  state: string;
  attempt: number;
  worker: string | null;
  startedAt: number | null;
  endedAt: number | null;
  message: string;
  proof: string;
  critical: boolean;
  gated: boolean;
  skip: boolean;
  nano: number;
  more: PlanTask | null;
}

const FINE_STATES = new Set(['asking', 'answered', 'waiting', 'checking', 'deferred', 'paused', 'corrected', 'stopped']);

/** `past`: the plan is shown as it was, and what the server says about now does not count. */
export function shownTasks(plan: PlanState | null, view: PlanView | null, past = false): ShownTask[] {
  const ids = view ? view.tasks.map((task) => task.id) : [...(plan?.tasks.keys() ?? [])];
  return ids.map((id) => merge(id, plan?.tasks.get(id) ?? null, then(view?.tasks.find((task) => task.id === id) ?? null, past)));
}

function then(task: PlanTask | null, past: boolean): PlanTask | null {
  if (!task || !past) return task;
  return { ...task, status: 'planned', retry_count: 0, started_at: undefined, finished_at: undefined, result: undefined, error: '', worker: null, spent: undefined };
}

function merge(id: string, live: TaskState | null, more: PlanTask | null): ShownTask {
  const time = (text?: string) => (text ? Date.parse(text) : null);
  // The stream is ahead of the fetched view, and knows finer states.
  const state = live && (live.state !== 'planned' || !more) ? live.state : more && FINE_STATES.has(more.status) ? more.status : (more?.status ?? 'planned');
  return {
    id,
    title: more?.title || firstOf(more?.description) || id,
    owner: live?.agent || more?.agent_name || '',
    needs: more?.depends_on ?? live?.needs ?? [],
    state: more?.skip ? 'skipped' : state,
    attempt: Math.max(live?.attempt ?? 0, more && more.retry_count > 0 ? more.retry_count + 1 : 0),
    worker: live?.worker ?? more?.worker ?? null,
    startedAt: live?.startedAt ?? time(more?.started_at),
    endedAt: live ? live.endedAt : time(more?.finished_at),
    message: live?.message ?? more?.error ?? '',
    proof: live?.proof || more?.result?.proof || '',
    critical: more?.critical ?? false,
    gated: more?.gated ?? false,
    skip: more?.skip ?? false,
    nano: more?.spent?.nano ?? 0,
    more,
  };
}

function firstOf(text?: string): string {
  return (text ?? '').split('\n')[0]!.slice(0, 90);
}

export function isActive(task: ShownTask): boolean {
  return task.startedAt !== null && task.endedAt === null && toneOf(task.state) !== 'off';
}

/** The tasks of a proposed plan, with what each would do. */
export function PlanTasks({ view }: { view: PlanView }) {
  const tasks = useMemo(() => shownTasks(null, view), [view]);
  return (
    <>
      <TaskList tasks={tasks} />
      <Forecast view={view} />
      {view.risks && view.risks.length > 0 && (
        <ul class="risks">
          {view.risks.map((risk) => (
            <li key={risk}>
              <Icon name="warn" size={15} /> {risk}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

export function Forecast({ view }: { view: PlanView }) {
  const { forecast } = view;
  if (!forecast) return null;
  const price =
    forecast.likely_nano === null
      ? t('plan.price_unknown')
      : forecast.high_nano && forecast.high_nano > forecast.likely_nano
        ? `${money(forecast.likely_nano)} – ${money(forecast.high_nano)}`
        : money(forecast.likely_nano);
  return (
    <p class="forecast muted small">
      <span>
        <Icon name="cost" size={14} /> {t('plan.about')} {price}
        {forecast.unpriced && ` ${t('plan.some_unpriced')}`}
      </span>
      <span>
        <Icon name="clock" size={14} /> {t('plan.about')} {duration(forecast.likely_ms)}
      </span>
      <span>{t('plan.calls', { count: forecast.calls_likely })}</span>
      <span>{t('cost.tokens', { count: tokens(forecast.likely_tokens) })}</span>
      {forecast.samples > 0 && <span>{t('plan.samples', { count: forecast.samples })}</span>}
    </p>
  );
}

export function TaskList({ tasks, onPick, picked }: { tasks: ShownTask[]; onPick?: (id: string) => void; picked?: string | null }) {
  return (
    <ol class="task-list">
      {tasks.map((task) => (
        <li key={task.id} class={task.skip ? 'struck' : ''}>
          {onPick ? (
            <button type="button" class="task-row" aria-pressed={picked === task.id} onClick={() => onPick(task.id)}>
              <TaskRow task={task} />
            </button>
          ) : (
            <div class="task-row">
              <TaskRow task={task} />
            </div>
          )}
        </li>
      ))}
    </ol>
  );
}

function TaskRow({ task }: { task: ShownTask }) {
  const running = isActive(task);
  return (
    <>
      <Dot tone={toneOf(task.state)} />
      <span class="grow task-text">
        <span class="task-title">
          {task.title}
          {task.critical && (
            <span class="path-mark" title={t('plan.critical')}>
              <Icon name="path" size={13} />
              <span class="sr-only">{t('plan.critical')}</span>
            </span>
          )}
          {task.gated && (
            <span class="path-mark" title={t('plan.gated')}>
              <Icon name="lock" size={13} />
              <span class="sr-only">{t('plan.gated')}</span>
            </span>
          )}
        </span>
        <span class="muted small ellipsis">
          <code>{task.id}</code>
          {task.needs.length > 0 && ` ← ${task.needs.join(', ')}`}
        </span>
      </span>
      <span class="owner">
        <Avatar name={task.owner} size="s" busy={running} />
        <span class="small hide-phone">{task.owner}</span>
      </span>
      {task.state !== 'planned' && (
        <span class="small muted task-figures">
          {word('task', task.state)}
          {task.attempt > 1 && ` · ${t('task.attempt', { count: task.attempt })}`}
          {task.startedAt !== null && (
            <>
              {' · '}
              <Elapsed from={task.startedAt} to={running ? null : (task.endedAt ?? task.startedAt)} />
            </>
          )}
          {task.proof && task.endedAt !== null && ` · ${word('proof', task.proof)}`}
        </span>
      )}
    </>
  );
}

export function PlanBadge({ state }: { state: string }) {
  return <Badge state={state} kind="plan_state" />;
}

/** A task that failed in a plan that is done was made up for by another one. */
export function progress(tasks: ShownTask[], plan?: PlanState): { done: number; all: number; failed: number; running: number } {
  const all = tasks.filter((task) => !task.skip);
  const failed = all.filter((task) => task.state === 'failed').length;
  const mended = plan?.state === 'done' ? failed : 0;
  return {
    all: all.length,
    done: all.filter((task) => toneOf(task.state) === 'done').length + mended,
    failed: failed - mended,
    running: all.filter(isActive).length,
  };
}
