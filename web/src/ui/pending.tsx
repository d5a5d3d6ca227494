// Something that waits for a person: a tool call, a question, a plan.
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { ApiError, post } from '../lib/api';
import { looksLikeDiff } from '../lib/diff';
import { ago } from '../lib/format';
import { languageOf } from '../lib/highlight';
import { t, word, type Key } from '../lib/i18n';
import { link } from '../lib/router';
import { explain, hideQuestion, mayDecide, planView, refreshSoon } from '../lib/store';
import { plain } from '../lib/text';
import type { Decision, DeletedPath, Deletion, Matter, Pending, PlanAbout, Ruling } from '../lib/types';
import { Avatar, Button, Dialog, toast } from './basics';
import { DiffView } from './diff';
import { Icon } from './icons';
import { Code, Markdown } from './markdown';
import { EditPlan } from './edit-plan';
import { PlanTasks } from './plan-parts';

/** Sends an answer; the card disappears at once and comes back if the answer was refused. */
export async function answer(question: string, body: unknown, done?: string): Promise<boolean> {
  hideQuestion(question);
  try {
    await post(`/questions/${question}/answer`, body);
    if (done) toast(done);
    refreshSoon(0);
    setTimeout(() => hideQuestion(question, false), 4000);
    return true;
  } catch (error) {
    const answered = error instanceof ApiError && error.code === 'answered';
    if (!answered) hideQuestion(question, false);
    toast(explain(error), answered ? 'info' : 'error');
    refreshSoon(0);
    return false;
  }
}

export function PendingCard({ pending, where = false, compact = false }: { pending: Pending; where?: boolean; compact?: boolean }) {
  const { matter } = pending.row;
  const deletion = 'tool' in matter ? matter.tool.action.deletion : undefined;
  return (
    <article class={deletion?.lost?.length ? 'card ask-card loss' : 'card ask-card'} aria-label={pending.words}>
      {deletion && <DeletionNote deletion={deletion} />}
      <header class="ask-head">
        <Avatar name={pending.who === 'plan' ? t('plan.word') : pending.who} size="s" />
        <span class="grow">
          <AskTitle pending={pending} />
          <span class="muted small block">
            {pending.task && `${t('task.word')} ${pending.task} · `}
            {ago(pending.row.at_ms)}
            {where && pending.session && (
              <>
                {' · '}
                <a href={pending.plan && 'plan' in matter ? link(['s', pending.session, 'plan', pending.plan]) : link(['s', pending.session, 'chat'])}>{t('inbox.open_session')}</a>
              </>
            )}
          </span>
        </span>
      </header>
      {'tool' in matter ? <ToolMatter pending={pending} matter={matter} /> : <PlanMatter pending={pending} about={matter.plan} compact={compact} />}
    </article>
  );
}

const NAMED_MAX = 5;

function pathNames(paths: DeletedPath[]): string {
  const names = paths.slice(0, NAMED_MAX).map((one) => plain(one.path));
  const more = paths.length - names.length;
  return names.join(', ') + (more > 0 ? ` ${t('deletion.more', { count: String(more) })}` : '');
}

/** What cannot be given back, before all else, and what is kept. */
function DeletionNote({ deletion }: { deletion: Deletion }) {
  const { lost = [], kept = [] } = deletion;
  return (
    <>
      {lost.length > 0 && (
        <p class="loss-note" role="alert">
          {t('deletion.lost', { paths: pathNames(lost) })}
        </p>
      )}
      {kept.length > 0 && <p class="muted small">{t('deletion.kept', { paths: pathNames(kept) })}</p>}
    </>
  );
}

function AskTitle({ pending }: { pending: Pending }) {
  const { matter } = pending.row;
  if ('tool' in matter) {
    const { tool, action } = matter.tool;
    if (action.deed === 'ask') return <strong>{t('ask.asks_you', { who: pending.who })}</strong>;
    if (action.deed === 'propose') return <strong>{t('ask.proposes', { who: pending.who })}</strong>;
    if (action.deed === 'merge') return <strong>{t('ask.merge', { who: pending.who })}</strong>;
    return (
      <strong>
        {t('ask.wants', { who: pending.who })} <code>{tool}</code>
      </strong>
    );
  }
  const about = matter.plan;
  const kind = typeof about === 'string' ? about : Object.keys(about)[0]!;
  return <strong>{t(`plan.ask_${kind}` as Key)}</strong>;
}

type ToolMatterOf = Extract<Matter, { tool: unknown }>;

/** Exactly what would be done: a diff, a command, a text. */
export function Exact({ deed, target, preview }: { deed: string; target: string; preview: string }) {
  const clean = plain(preview);
  if (clean && looksLikeDiff(clean)) return <DiffView text={clean} />;
  if (deed === 'propose') return <Markdown text={clean || target} />;
  if (deed === 'execute') return <Code text={plain(clean || target)} lang="sh" label={t('ask.command')} />;
  return (
    <>
      {target && (
        <p class="target">
          <span class="muted">{word('deed', deed)}</span> <code>{plain(target)}</code>
        </p>
      )}
      {clean && clean !== target && <Code text={clean} lang={/^\s*[{[]/.test(clean) ? 'json' : languageOf(target)} label={t('ask.preview')} />}
    </>
  );
}

const SCOPES = ['once', 'task', 'session', 'repository'] as const;

function ToolMatter({ pending, matter }: { pending: Pending; matter: ToolMatterOf }) {
  const { action, memory, rule } = matter.tool;
  const [comment, setComment] = useState('');
  const [scope, setScope] = useState<(typeof SCOPES)[number]>('once');
  const [typed, setTyped] = useState('');
  const name = useId();
  const question = pending.row.question;
  if (action.deed === 'ask') return <AskText pending={pending} text={action.preview || action.target} />;
  const mayRemember = memory !== undefined && memory !== 'nothing';
  const isLoss = (action.deletion?.lost?.length ?? 0) > 0;
  const word = t('deletion.word');
  const isTyped = typed.trim().toLowerCase() === word;
  const rules = typeof memory === 'object' ? memory.rules : [];
  const send = (allow: boolean, more: Record<string, unknown> = {}) => {
    const always = allow && scope !== 'once' ? { always: true, until: scope } : {};
    const said = comment.trim() ? { comment: comment.trim() } : {};
    void answer(question, { allow, ...always, ...said, ...more });
  };
  return (
    <>
      <Exact deed={action.deed} target={action.target} preview={action.preview ?? ''} />
      {action.said && (
        <div class="said">
          <Markdown text={action.said} />
        </div>
      )}
      {rule && (
        <p class="muted small why">
          <Icon name="info" size={14} /> {t('ask.because')} {rule}
        </p>
      )}
      {mayRemember && action.deed !== 'merge' && (
        <fieldset class="scopes">
          <legend>{t('ask.how_long')}</legend>
          {SCOPES.map((one) => (
            <label key={one} class={one === scope ? 'chip on' : 'chip'}>
              <input type="radio" name={name} checked={one === scope} onChange={() => setScope(one)} />
              {t(`scope.${one}`)}
            </label>
          ))}
          {scope !== 'once' && rules.length > 0 && (
            <p class="muted small">
              {t('ask.adds_rule')} {rules.map((one) => <code key={one}>{one}</code>)}
            </p>
          )}
        </fieldset>
      )}
      <div class="ask-actions">
        {isLoss && (
          <input type="text" class="loss-word" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} placeholder={t('deletion.type', { word })} aria-label={t('deletion.type', { word })} disabled={!mayDecide.value} autocomplete="off" />
        )}
        <input type="text" class="grow" value={comment} onInput={(event) => setComment(event.currentTarget.value)} placeholder={t('ask.comment')} aria-label={t('ask.comment')} disabled={!mayDecide.value} />
        {action.deed === 'merge' ? (
          <>
            <Button look="primary" icon="check" disabled={!mayDecide.value} onClick={() => send(true)}>
              {t('merge.take')}
            </Button>
            <Button disabled={!mayDecide.value} onClick={() => send(false)}>
              {t('merge.leave')}
            </Button>
            <Button look="danger" disabled={!mayDecide.value} onClick={() => send(false, { drop: true })}>
              {t('merge.drop')}
            </Button>
          </>
        ) : (
          <>
            <Button look={isLoss ? 'danger' : 'primary'} icon="check" disabled={!mayDecide.value || (isLoss && !isTyped)} onClick={() => send(true, isLoss ? { word: typed.trim() } : {})}>
              {t('ask.allow')}
            </Button>
            <Button look="danger" icon="cross" disabled={!mayDecide.value} onClick={() => send(false)}>
              {t('ask.deny')}
            </Button>
          </>
        )}
      </div>
    </>
  );
}

/** A question in words. Lines that begin with a number are offered as answers. */
function AskText({ pending, text }: { pending: Pending; text: string }) {
  const [reply, setReply] = useState('');
  const options = [...plain(text).matchAll(/^\s*(?:\d{1,2}[.)]|[-*])\s+(.{1,120})$/gm)].map((match) => match[1]!.trim()).slice(0, 8);
  const send = (words: string) => void answer(pending.row.question, { allow: true, comment: words });
  return (
    <>
      <Markdown text={text} />
      {options.length > 1 && (
        <div class="chips">
          {options.map((option) => (
            <button key={option} type="button" class="chip" disabled={!mayDecide.value} onClick={() => send(option)}>
              {option}
            </button>
          ))}
        </div>
      )}
      <form
        class="ask-actions"
        onSubmit={(event) => {
          event.preventDefault();
          if (reply.trim()) send(reply.trim());
        }}
      >
        <input type="text" class="grow" value={reply} onInput={(event) => setReply(event.currentTarget.value)} placeholder={t('ask.your_answer')} aria-label={t('ask.your_answer')} disabled={!mayDecide.value} />
        <Button look="primary" type="submit" disabled={!mayDecide.value || !reply.trim()}>
          {t('do.send')}
        </Button>
        <Button disabled={!mayDecide.value} onClick={() => void answer(pending.row.question, { allow: false })}>
          {t('ask.no_answer')}
        </Button>
      </form>
    </>
  );
}

export function decide(question: string, decision: Decision, done?: string) {
  return answer(question, { decision }, done);
}

function PlanMatter({ pending, about, compact }: { pending: Pending; about: PlanAbout; compact: boolean }) {
  const view = pending.plan ? planView(pending.plan) : null;
  const question = pending.row.question;
  return (
    <>
      {view && <p class="goal">{view.goal}</p>}
      {typeof about === 'object' && 'failure' in about && <Failure task={about.failure.task} error={about.failure.error} />}
      {about === 'proposal' && view && !compact && <PlanTasks view={view} />}
      <PlanActions question={question} plan={pending.plan} about={about} />
    </>
  );
}

function Failure({ task, error }: { task: string; error: string }) {
  return (
    <div class="failure">
      <p>
        <strong>{t('task.word')}</strong> <code>{task}</code>
      </p>
      <pre>{plain(error)}</pre>
    </div>
  );
}

/** The buttons for a question about a plan. */
export function PlanActions({ question, plan, about }: { question: string; plan: string | null; about: PlanAbout }) {
  const [writing, setWriting] = useState<'changes' | 'reject' | 'retry' | null>(null);
  const [editing, setEditing] = useState(false);
  const view = plan ? planView(plan) : null;
  const off = !mayDecide.value;
  const say = (decision: Decision, done: string) => void decide(question, decision, done);
  const rule = (ruling: Ruling) => say({ rule: ruling }, t('plan.ruled_done'));
  if (about === 'proposal') {
    return (
      <>
        <div class="ask-actions wrap">
          <Button look="primary" icon="check" disabled={off} onClick={() => say('approve', t('plan.approved_done'))}>
            {t('plan.approve')}
          </Button>
          <Button disabled={off} onClick={() => say('first_wave', t('plan.approved_done'))}>
            {t('plan.first_wave')}
          </Button>
          <Button icon="edit" disabled={off || !view} onClick={() => setEditing(true)}>
            {t('plan.edit')}
          </Button>
          <Button disabled={off} onClick={() => setWriting('changes')}>
            {t('plan.ask_changes')}
          </Button>
          <Button look="danger" icon="cross" disabled={off} onClick={() => setWriting('reject')}>
            {t('plan.reject')}
          </Button>
        </div>
        {editing && view && <EditPlan view={view} question={question} onClose={() => setEditing(false)} />}
        {writing && writing !== 'retry' && (
          <WriteDialog
            title={t(writing === 'changes' ? 'plan.write_changes' : 'plan.write_reason')}
            optional={writing === 'reject'}
            submit={t(writing === 'changes' ? 'plan.ask_changes' : 'plan.reject')}
            onClose={() => setWriting(null)}
            onSend={(words) => say(writing === 'changes' ? { changes: words } : { reject: words }, t(writing === 'changes' ? 'plan.changes_done' : 'plan.rejected_done'))}
          />
        )}
      </>
    );
  }
  if (typeof about === 'object' && 'failure' in about) {
    return (
      <>
        <div class="ask-actions wrap">
          <Button look="primary" icon="replay" disabled={off} onClick={() => rule({ retry: {} })}>
            {t('rule.retry')}
          </Button>
          <Button disabled={off} onClick={() => setWriting('retry')}>
            {t('rule.retry_with')}
          </Button>
          <Button disabled={off} onClick={() => rule('skip')}>
            {t('rule.skip')}
          </Button>
          <Button disabled={off} onClick={() => rule('fixed')}>
            {t('rule.fixed')}
          </Button>
          <Button disabled={off} onClick={() => rule('accept')}>
            {t('rule.accept')}
          </Button>
          <Button look="danger" disabled={off} onClick={() => rule('give_up')}>
            {t('rule.give_up')}
          </Button>
        </div>
        {writing === 'retry' && (
          <WriteDialog title={t('rule.retry_note')} submit={t('rule.retry')} onClose={() => setWriting(null)} onSend={(note) => rule({ retry: { note } })} />
        )}
      </>
    );
  }
  return (
    <div class="ask-actions">
      <Button look="primary" icon="check" disabled={off} onClick={() => say('approve', t('plan.approved_done'))}>
        {t(about === 'rest' || about === 'budget' ? 'do.go_on' : 'do.start')}
      </Button>
      <Button look="danger" icon="stop" disabled={off} onClick={() => say({ reject: '' }, t('plan.rejected_done'))}>
        {t('do.stop')}
      </Button>
    </div>
  );
}

function WriteDialog({ title, submit, optional, onSend, onClose }: { title: string; submit: string; optional?: boolean; onSend: (words: string) => void; onClose: () => void }) {
  const [text, setText] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onSend(text.trim());
          onClose();
        }}
      >
        <textarea
          ref={field}
          rows={4}
          value={text}
          aria-label={title}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
          }}
        />
        <div class="row end">
          <Button onClick={onClose}>{t('do.cancel')}</Button>
          <Button look="primary" type="submit" disabled={!optional && !text.trim()}>
            {submit}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
