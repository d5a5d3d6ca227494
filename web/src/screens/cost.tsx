// What the team has cost: by run, agent, task, model or day; and the forecast against what was spent.
import { useMemo, useState } from 'preact/hooks';
import { day, money, tokens } from '../lib/format';
import { t } from '../lib/i18n';
import { link } from '../lib/router';
import { now, planView, sessions } from '../lib/store';
import type { Cost, PlanLine, Usage } from '../lib/types';
import { Bar, Empty, Loading, Segmented } from '../ui/basics';
import { useFetch } from '../ui/use-fetch';
import { Figure } from './plan';

type By = 'session' | 'agent' | 'task' | 'model' | 'day';
type Since = 'day' | 'week' | 'all';

const DAY = 86_400_000;

export function CostScreen() {
  const [by, setBy] = useState<By>('agent');
  const [since, setSince] = useState<Since>('week');
  const from = useMemo(() => (since === 'all' ? 0 : Date.now() - (since === 'day' ? DAY : 7 * DAY)), [since]);
  const { data, error } = useFetch<{ costs: Cost[] }>(`/cost?since_ms=${from}`, now.value?.position);
  const costs = data?.costs ?? [];
  const groups = useMemo(() => group(costs, by), [data, by, sessions.value]);
  const sum = useMemo(() => total(costs), [data]);
  const input = sum.usage.input + sum.usage.cache_read + sum.usage.cache_write;
  const most = Math.max(1, ...groups.map((one) => one.nano || 0));
  const mostTokens = Math.max(1, ...groups.map((one) => all(one.usage)));
  const byMoney = sum.nano > 0;
  return (
    <div class="page wide">
      <header class="page-head">
        <div class="grow">
          <h1>{t('nav.cost')}</h1>
          <p class="muted">{t('cost.about')}</p>
        </div>
        <Segmented
          label={t('cost.since')}
          value={since}
          options={[
            ['day', t('cost.since_day')],
            ['week', t('cost.since_week')],
            ['all', t('cost.since_all')],
          ]}
          onChange={setSince}
        />
      </header>
      {error && <p class="error-text">{error}</p>}
      {!data && !error && <Loading />}
      {data && (
        <>
          <div class="figures big">
            <Figure label={t('cost.spent')} value={money(sum.nano)} />
            <Figure label={t('cost.input')} value={tokens(input)} />
            <Figure label={t('cost.output')} value={tokens(sum.usage.output)} />
            <Figure label={t('cost.cache')} value={input > 0 ? `${Math.round((sum.usage.cache_read / input) * 100)} %` : '–'} />
            <Figure label={t('cost.model_calls')} value={String(sum.calls)} />
            {sum.unknown > 0 && <Figure label={t('cost.estimated')} value={money(sum.unknown)} />}
          </div>
          {sum.unpriced > 0 && <p class="muted small">{t('cost.unpriced', { count: sum.unpriced })}</p>}
          <Segmented
            label={t('cost.by')}
            value={by}
            options={[
              ['agent', t('cost.by_agent')],
              ['session', t('cost.by_session')],
              ['task', t('cost.by_task')],
              ['model', t('cost.by_model')],
              ['day', t('cost.by_day')],
            ]}
            onChange={setBy}
          />
          {groups.length === 0 ? (
            <Empty icon="cost" title={t('cost.empty')} />
          ) : (
            <div class="card flush scroll-x" tabIndex={0} role="region" aria-label={t('nav.cost')}>
              <table class="table cost-table">
                <thead>
                  <tr>
                    <th>{t(`cost.by_${by}`)}</th>
                    <th class="bar-col">{byMoney ? t('cost.spent') : t('trace.tokens')}</th>
                    <th class="to-right">{t('cost.spent')}</th>
                    <th class="to-right">{t('cost.input')}</th>
                    <th class="to-right">{t('cost.output')}</th>
                    <th class="to-right">{t('cost.model_calls')}</th>
                  </tr>
                </thead>
                <tbody>
                  {groups.map((one) => (
                    <tr key={one.key}>
                      <td class="ellipsis name-cell">{one.href ? <a href={one.href}>{one.label}</a> : one.label}</td>
                      <td class="bar-col">
                        <Bar part={byMoney ? one.nano / most : all(one.usage) / mostTokens} />
                      </td>
                      <td class="to-right num">{money(one.nano)}</td>
                      <td class="to-right num">{tokens(one.usage.input + one.usage.cache_read + one.usage.cache_write)}</td>
                      <td class="to-right num">{tokens(one.usage.output)}</td>
                      <td class="to-right num">{one.calls}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          <Forecasts lines={(now.value?.plans ?? []).filter((line) => line.end && line.row.at_ms >= from).slice(0, 8)} />
        </>
      )}
    </div>
  );
}

interface Sum {
  usage: Usage;
  nano: number;
  unknown: number;
  unpriced: number;
  calls: number;
}

interface Group extends Sum {
  key: string;
  label: string;
  href: string | null;
}

function none(): Sum {
  return { usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 }, nano: 0, unknown: 0, unpriced: 0, calls: 0 };
}

function all(usage: Usage): number {
  return usage.input + usage.output + usage.cache_read + usage.cache_write;
}

function add(sum: Sum, cost: Cost) {
  sum.usage.input += cost.usage.input;
  sum.usage.output += cost.usage.output;
  sum.usage.cache_read += cost.usage.cache_read ?? 0;
  sum.usage.cache_write += cost.usage.cache_write ?? 0;
  sum.nano += cost.nano;
  sum.unknown += cost.unknown_nano ?? 0;
  sum.unpriced += cost.unpriced_calls ?? 0;
  sum.calls += cost.calls;
}

function total(costs: Cost[]): Sum {
  const sum = none();
  for (const cost of costs) add(sum, cost);
  return sum;
}

function group(costs: Cost[], by: By): Group[] {
  const groups = new Map<string, Group>();
  for (const cost of costs) {
    const [key, label, href] = keyOf(cost, by);
    let known = groups.get(key);
    if (!known) {
      known = { ...none(), key, label, href };
      groups.set(key, known);
    }
    add(known, cost);
  }
  const list = [...groups.values()];
  return by === 'day' ? list.sort((a, b) => b.key.localeCompare(a.key)) : list.sort((a, b) => b.nano - a.nano || all(b.usage) - all(a.usage));
}

function keyOf(cost: Cost, by: By): [string, string, string | null] {
  switch (by) {
    case 'session': {
      const row = sessions.value.find((one) => one.session === cost.session);
      return [cost.session, row?.preview || cost.session, link(['s', cost.session, 'chat'])];
    }
    case 'agent':
      return [cost.name, cost.name, null];
    case 'task':
      return cost.task ? [`${cost.plan}/${cost.task}`, cost.task, cost.plan ? link(['s', cost.session, 'plan', cost.plan, cost.task]) : null] : ['', t('cost.no_task'), null];
    case 'model':
      return [cost.model, cost.model, null];
    case 'day':
      return [new Date(cost.at_ms).toISOString().slice(0, 10), day(cost.at_ms), null];
  }
}

/** What plans were expected to cost, and what they did. */
function Forecasts({ lines }: { lines: PlanLine[] }) {
  if (lines.length === 0) return null;
  return (
    <section aria-labelledby="forecasts">
      <h2 id="forecasts">{t('cost.forecasts')}</h2>
      <div class="card flush scroll-x" tabIndex={0} role="region" aria-labelledby="forecasts">
        <table class="table">
          <thead>
            <tr>
              <th>{t('plan.word')}</th>
              <th class="to-right">{t('plan.forecast')}</th>
              <th class="to-right">{t('plan.spent')}</th>
              <th class="to-right">{t('cost.forecast_tokens')}</th>
              <th class="to-right">{t('cost.actual_tokens')}</th>
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => (
              <ForecastRow key={line.row.plan} line={line} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ForecastRow({ line }: { line: PlanLine }) {
  const forecast = planView(line.row.plan)?.forecast;
  const spent = line.end!.tally.spent;
  return (
    <tr>
      <td class="ellipsis name-cell">
        <a href={link(['s', line.row.session, 'plan', line.row.plan])}>{line.row.goal}</a>
      </td>
      <td class="to-right num">{forecast ? (forecast.likely_nano === null ? '?' : money(forecast.likely_nano)) : '…'}</td>
      <td class="to-right num">{money(spent.nano)}</td>
      <td class="to-right num">{forecast ? tokens(forecast.likely_tokens) : '…'}</td>
      <td class="to-right num">{tokens(all(spent.usage))}</td>
    </tr>
  );
}
