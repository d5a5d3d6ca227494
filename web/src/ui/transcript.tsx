// A conversation: messages, tool calls, plans, questions.
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { looksLikeDiff } from '../lib/diff';
import { author, clock, duration } from '../lib/format';
import { languageOf } from '../lib/highlight';
import { t, word } from '../lib/i18n';
import type { AgentState, Item, Model, QuestionState, ToolCall } from '../lib/model';
import { link } from '../lib/router';
import { planView } from '../lib/store';
import { cut, firstLine, plain, shortIds } from '../lib/text';
import { FileLinks, FilesOf } from './attachments';
import { Avatar, Badge, Bar, Fold } from './basics';
import { DiffView } from './diff';
import { Icon, type IconName } from './icons';
import { Code, Markdown } from './markdown';
import { Exact } from './pending';
import { Forecast, PlanBadge, progress, shownTasks, TaskList } from './plan-parts';

/** Rows of a long conversation that are shown at first. */
const ROWS_SHOWN = 150;
/** Finished calls in a row beyond this are folded. */
const CALLS_SHOWN = 3;

type ToolItem = Extract<Item, { k: 'tool' }>;
type Row = { key: string; item: Exclude<Item, ToolItem> } | { key: string; tools: ToolItem[] };

/** Joins tool calls that follow each other. */
function rows(items: Item[]): Row[] {
  const out: Row[] = [];
  for (const item of items) {
    const last = out.at(-1);
    if (item.k === 'tool') {
      if (HIDDEN_TOOLS.has(item.call.name) && !item.call.isError) continue;
      if (last && 'tools' in last && last.tools[0]!.agent === item.agent) last.tools.push(item);
      else out.push({ key: item.key, tools: [item] });
    } else {
      out.push({ key: item.key, item });
    }
  }
  return out;
}

/** Calls whose effect is shown as something else. */
const HIDDEN_TOOLS = new Set(['submit_plan', 'propose_plan']);

export function Transcript({ items, model, session, mark, hideOpen = false, past = false }: { items: Item[]; model: Model; session: string; mark?: string | null; /** Open questions are shown elsewhere. */ hideOpen?: boolean; past?: boolean }) {
  const [shown, setShown] = useState(ROWS_SHOWN);
  const all = rows(items);
  // A marked item must be there, however old it is.
  const from = mark ? 0 : Math.max(0, all.length - shown);
  return (
    <FilesOf.Provider value={session}>
      {from > 0 && (
        <button type="button" class="btn small earlier" onClick={() => setShown(shown + ROWS_SHOWN)}>
          {t('chat.earlier', { count: from })}
        </button>
      )}
      {all.slice(from).map((row) => ('tools' in row ? <Tools key={row.key} items={row.tools} mark={mark} model={model} session={session} /> : <Entry key={row.key} item={row.item} model={model} session={session} marked={row.key === mark} hideOpen={hideOpen} past={past} />))}
    </FilesOf.Provider>
  );
}

function Entry({ item, model, session, marked, hideOpen, past }: { item: Exclude<Item, ToolItem>; model: Model; session: string; marked: boolean; hideOpen: boolean; past: boolean }) {
  const name = item.agent ? (model.agents.get(item.agent)?.name ?? '') : '';
  const id = `at-${item.key}`;
  const mark = marked ? ' marked' : '';
  switch (item.k) {
    case 'user':
      return (
        <div class={`message user-message${mark}`} id={id}>
          <div class="bubble">
            <span class="sr-only">{t('chat.you_said')}</span>
            {item.to && item.agent !== model.lead && <span class="small muted">→ {item.to} </span>}
            <FileLinks text={plain(item.text)} />
          </div>
          <time class="tiny-text muted" dateTime={new Date(item.at).toISOString()}>
            {clock(item.at)}
          </time>
        </div>
      );
    case 'text':
      return (
        <div class={`message agent-message${mark}`} id={id}>
          <Avatar name={name} />
          <div class="message-body">
            <span class="message-name">
              {name} <time class="tiny-text muted">{clock(item.at)}</time>
            </span>
            <Markdown text={item.text} />
            {item.cut && <p class="muted small">{t('chat.cut')}</p>}
          </div>
        </div>
      );
    case 'plan':
      return <PlanCard plan={item.plan} model={model} session={session} past={past} />;
    case 'ask': {
      const question = model.questions.get(item.question);
      if (!question) return null;
      if (question.state !== 'asked') return <AnswerRow question={question} />;
      return hideOpen || question.plan ? null : <AskRow question={question} id={id} />;
    }
    case 'error':
      return (
        <div class={`notice ${item.end === 'interrupted' || item.retryAt ? 'wait' : 'fail'}${mark}`} id={id} role="note">
          <Icon name={item.end === 'interrupted' ? 'stop' : item.retryAt ? 'clock' : 'warn'} size={16} />
          <span>
            {name && <strong>{name}: </strong>}
            {item.end === 'interrupted' ? t('chat.interrupted') : plain(item.text)}
            {item.retryAt && <span class="muted"> {t('chat.retry_at', { time: clock(item.retryAt) })}</span>}
          </span>
        </div>
      );
    case 'note':
      return (
        <div class={`notice${mark}`} id={id}>
          <span class="muted small">
            <Note text={item.text} />
          </span>
        </div>
      );
  }
}

function Note({ text }: { text: string }) {
  const fork = /^goes on from (ses_[0-9a-f]+) behind (\d+)$/.exec(text);
  if (!fork) return <>{noteText(text)}</>;
  return (
    <>
      {t('fork.continues', { seq: fork[2]! })} <a href={link(['s', fork[1]!, 'chat'])}>{shortIds(fork[1]!)}</a>
    </>
  );
}

function noteText(text: string): string {
  if (text === 'budget:reached') return t('chat.budget_reached');
  if (text === 'budget:raised') return t('chat.budget_raised');
  return shortIds(plain(text));
}

/** The agent that a call started, if it did. */
function calledAgent(model: Model, call: ToolCall): AgentState | null {
  if (toolIcon(call.name) !== 'agent') return null;
  for (const agent of model.agents.values()) {
    if (!agent.lead && (agent.name === call.target || agent.task === call.target) && agent.startedAt >= call.at - 50 && (call.ms === undefined || agent.startedAt <= call.at + call.ms + 50)) return agent;
  }
  return null;
}

function Tools({ items, mark, model, session }: { items: ToolItem[]; mark?: string | null; model: Model; session: string }) {
  const open = items.filter((item) => item.call.result === undefined);
  const done = items.filter((item) => item.call.result !== undefined);
  const folded = done.length > CALLS_SHOWN && !items.some((item) => item.key === mark);
  const row = (item: ToolItem) => <ToolRow key={item.key} call={item.call} id={`at-${item.key}`} open={item.key === mark} agent={calledAgent(model, item.call)?.id ?? null} session={session} />;
  return (
    <div class="tools">
      {folded ? <Fold class="tools-fold" head={<ToolsHead calls={done.map((item) => item.call)} />}>{() => done.map(row)}</Fold> : done.map(row)}
      {open.map(row)}
    </div>
  );
}

function ToolsHead({ calls }: { calls: ToolCall[] }) {
  const counts = new Map<string, number>();
  for (const call of calls) counts.set(call.name, (counts.get(call.name) ?? 0) + 1);
  const names = [...counts].map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(', ');
  const failed = calls.filter((call) => call.isError).length;
  const ms = calls.reduce((sum, call) => sum + (call.ms ?? 0), 0);
  return (
    <>
      <span class="small">{t('chat.calls', { count: calls.length })}</span>
      <span class="muted small grow ellipsis">{names}</span>
      {failed > 0 && <span class="small fail-text">{t('chat.calls_failed', { count: failed })}</span>}
      <span class="muted small num">{duration(ms)}</span>
    </>
  );
}

export function toolIcon(name: string): IconName {
  if (/shell|command|exec|test|bash/.test(name)) return 'terminal';
  if (/edit|write|patch/.test(name)) return 'edit';
  if (/search|grep|find|glob/.test(name)) return 'search';
  if (/read|list|file/.test(name)) return 'file';
  if (/web|fetch|http/.test(name)) return 'globe';
  if (/agent|delegate|call|task|send|team/.test(name)) return 'agent';
  if (/memory/.test(name)) return 'memory';
  if (/skill/.test(name)) return 'book';
  return 'settings';
}

function ToolRow({ call, id, open, agent, session }: { call: ToolCall; id: string; open: boolean; agent: string | null; session: string }) {
  const running = call.result === undefined;
  const bad = call.isError || call.ending === 'refused' || call.ending === 'invalid';
  return (
    <div id={id}>
      <Fold
        class={`tool-row${bad ? ' bad' : ''}`}
        open={open}
        head={
          <>
            <span class="tool-icon">
              <Icon name={toolIcon(call.name)} size={15} />
            </span>
            <span class="tool-name">{call.name}</span>
            <span class="mono muted grow ellipsis">{cut(plain(call.target || firstLine(call.summary ?? '')), 200)}</span>
            {running ? (
              <span class="spinner small" role="img" aria-label={t('state.running')} />
            ) : bad ? (
              <Badge state="failed" text={word('ending', call.ending ?? 'ran') === word('ending', 'ran') ? t('state.failed') : word('ending', call.ending ?? '')} />
            ) : (
              <span class="muted small num">{call.ms !== undefined && call.ms >= 50 ? duration(call.ms) : ''}</span>
            )}
          </>
        }
      >
        {() => (
          <>
            <ToolDetail call={call} />
            {agent && (
              <a class="small" href={link(['s', session, 'agent', agent])}>
                {t('team.transcript')}
              </a>
            )}
          </>
        )}
      </Fold>
      {running && call.progress && <pre class="progress">{plain(call.progress)}</pre>}
    </div>
  );
}

function ToolDetail({ call }: { call: ToolCall }) {
  const input = useMemo(() => readInput(call), [call.args]);
  const output = plain(call.result ?? call.progress);
  return (
    <div class="tool-detail">
      {input}
      {output &&
        (looksLikeDiff(output) ? (
          <DiffView text={output} />
        ) : (
          <Code text={output.replace(/\n$/, '')} lang={/read/.test(call.name) ? languageOf(call.target) : ''} label={t('tool.output')} />
        ))}
      {call.cut && <p class="muted small">{t('chat.cut')}</p>}
    </div>
  );
}

/** The input of a call: a command, a change of a file, or its fields. */
function readInput(call: ToolCall): ComponentChildren {
  let args: unknown;
  try {
    args = JSON.parse(call.args);
  } catch {
    return call.args ? <Code text={plain(call.args)} label={t('tool.input')} /> : null;
  }
  if (typeof args !== 'object' || args === null) return null;
  const fields = args as Record<string, unknown>;
  const change = changeOf(fields);
  if (change) return <DiffView text={change} />;
  if (typeof fields.command === 'string') return <Code text={plain(fields.command)} lang="sh" label={t('ask.command')} />;
  if (Object.keys(fields).length === 0) return null;
  if (Object.keys(fields).length === 1 && typeof Object.values(fields)[0] === 'string' && String(Object.values(fields)[0]).length < 120) return null;
  return <Code text={plain(JSON.stringify(fields, null, 2))} lang="json" label={t('tool.input')} />;
}

/** The change that an editing tool was asked for, as a diff. */
export function changeOf(fields: Record<string, unknown>): string | null {
  const path = fields.path ?? fields.file_path ?? fields.file;
  if (typeof path !== 'string') return null;
  const old = fields.old ?? fields.old_string ?? fields.old_text;
  const now = fields.new ?? fields.new_string ?? fields.new_text ?? fields.content;
  if (typeof now !== 'string') return null;
  const before = typeof old === 'string' ? old.replace(/\n$/, '').split('\n') : [];
  const after = now.replace(/\n$/, '').split('\n');
  let top = 0;
  while (top < before.length && top < after.length && before[top] === after[top]) top += 1;
  let tail = 0;
  while (tail < before.length - top && tail < after.length - top && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const lines = [
    ...before.slice(0, top).map((line) => ` ${line}`),
    ...before.slice(top, before.length - tail).map((line) => `-${line}`),
    ...after.slice(top, after.length - tail).map((line) => `+${line}`),
    ...before.slice(before.length - tail).map((line) => ` ${line}`),
  ];
  return `--- a/${path}\n+++ b/${path}\n@@ -1,${before.length} +1,${after.length} @@\n${lines.join('\n')}\n`;
}

function AskRow({ question, id }: { question: QuestionState; id: string }) {
  return (
    <div class="notice wait" id={id}>
      <Icon name="inbox" size={16} />
      <span>
        <strong>{question.name}</strong> {t('ask.waits', { tool: question.tool })} <code>{cut(plain(question.message), 120)}</code>
      </span>
    </div>
  );
}

/** An answered question: who answered, where and when. */
function AnswerRow({ question }: { question: QuestionState }) {
  const no = question.said === 'no' || question.said.startsWith('reject');
  const said = (
    <span class="small muted nowrap">
      {question.state === 'withdrawn' ? t('said.withdrawn') : `${word('said', question.said)} · ${author(question.by)}`}
      {question.answeredAt && ` · ${clock(question.answeredAt)}`}
    </span>
  );
  if (question.plan && !question.comment) {
    return (
      <div class="answer-row fold-head">
        <Icon name={no ? 'cross' : 'check'} size={15} />
        <span class="small grow">{t('plan.word')}</span>
        {said}
      </div>
    );
  }
  return (
    <div class="answer-row">
      <Fold
        head={
          <>
            <Icon name={no ? 'cross' : 'check'} size={15} />
            <span class="small grow ellipsis">
              {question.plan ? t('plan.word') : `${question.name} · ${question.tool}`} <span class="muted mono">{question.plan ? '' : cut(plain(question.message), 80)}</span>
            </span>
            {said}
          </>
        }
      >
        {() => (
          <>
            {question.comment && <p>“{plain(question.comment)}”</p>}
            <Exact deed={/shell|command/.test(question.tool) ? 'execute' : 'write'} target={question.message} preview={question.preview} />
          </>
        )}
      </Fold>
    </div>
  );
}

/** A plan inside of the conversation; it is live. */
export function PlanCard({ plan: id, model, session, past }: { plan: string; model: Model; session: string; past: boolean }) {
  const plan = model.plans.get(id);
  const view = planView(id);
  if (!plan) return null;
  const tasks = shownTasks(plan, view, past);
  const { done, all, failed } = progress(tasks, plan);
  const ended = plan.endedAt !== null;
  return (
    <article class="card plan-card" aria-label={plan.goal}>
      <header class="row">
        <span class="plan-icon">
          <Icon name="plan" size={18} />
        </span>
        <span class="grow">
          <span class="tiny-text muted block">{t('plan.by', { name: plan.by })}</span>
          <strong>{plan.goal}</strong>
        </span>
        <PlanBadge state={plan.approvedAt === null && !ended ? 'proposed' : plan.state} />
      </header>
      {plan.approvedAt !== null && (
        <div class="row small muted">
          <Bar part={all ? done / all : 0} tone={failed ? 'fail' : 'done'} />
          <span class="nowrap">{t('plan.progress', { done, all })}</span>
        </div>
      )}
      <TaskList tasks={tasks} />
      <div class="row">
        {view && plan.approvedAt === null && !ended ? <Forecast view={view} /> : <span class="small muted">{plan.tally && t('plan.done_verified', { done: plan.tally.done, tasks: plan.tally.tasks, verified: plan.tally.verified })}</span>}
        <span class="grow" />
        <a class="small" href={link(['s', session, 'plan', id])}>
          {t('plan.open')}
        </a>
      </div>
    </article>
  );
}

