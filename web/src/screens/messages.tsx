// Messages between the agents, in threads, with what became of each.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { query } from '../lib/api';
import { clock } from '../lib/format';
import { t, word } from '../lib/i18n';
import type { Model } from '../lib/model';
import { mayWrite } from '../lib/store';
import { cut, firstLine, plain, shortIds } from '../lib/text';
import type { MailRecord } from '../lib/types';
import { Avatar, Button, Empty, Fold, Segmented } from '../ui/basics';
import { Icon } from '../ui/icons';
import { Markdown } from '../ui/markdown';
import { useSettled } from '../ui/use-fetch';
import { act, type SessionProps } from './session';

/** Messages that only keep the team going. */
const CONTROL = new Set(['idle_notification', 'permission_request', 'permission_response', 'shutdown_request', 'shutdown_approved', 'shutdown_rejected', 'stop', 'heartbeat', 'plan_approval_request', 'plan_approval_response']);

interface Message {
  id: string;
  at: number;
  from: string;
  to: string;
  kind: string;
  replyTo: string | null;
  text: string;
  fate: string;
  why: string;
}

export function MessagesScreen({ id, model }: SessionProps) {
  const [which, setWhich] = useState<'said' | 'all'>('said');
  const count = useSettled(model.mail.length);
  const [records, setRecords] = useState<MailRecord[]>([]);
  useEffect(() => {
    query<MailRecord[]>('messages', { session: id }).then(setRecords, () => {});
  }, [id, count]);
  const messages = useMemo(() => messageList(model, records), [model, records, model.mail.length]);
  const threads = useMemo(() => threadList(messages.filter((one) => which === 'all' || !CONTROL.has(one.kind))), [messages, which]);
  return (
    <div class="page narrow">
      <div class="row wrap">
        <Segmented
          label={t('mail.which')}
          value={which}
          options={[
            ['said', t('mail.conversation')],
            ['all', t('mail.all')],
          ]}
          onChange={setWhich}
        />
        <span class="grow" />
        <WhoTalks messages={messages} />
      </div>
      {threads.length === 0 && <Empty icon="messages" title={t('mail.empty')} />}
      <ul class="threads">
        {threads.map((thread) => (
          <li key={thread[0]!.id} class="card thread">
            {thread.map((message) => (
              <MessageRow key={message.id} message={message} />
            ))}
          </li>
        ))}
      </ul>
      {mayWrite.value && <Write session={id} model={model} />}
    </div>
  );
}

function messageList(model: Model, records: MailRecord[]): Message[] {
  const known = new Map(records.map((record) => [record.envelope.id, record]));
  return model.mail.map((mail) => {
    const record = known.get(mail.id);
    const fate = record?.fate ?? '';
    const [state, why] = typeof fate === 'string' ? [fate, ''] : (Object.entries(fate)[0] as [string, string | null]);
    return {
      id: mail.id,
      at: mail.at,
      from: record?.from ? called(record.from) : nameOf(model, mail.from),
      to: record?.to ? called(record.to) : mail.toName || nameOf(model, mail.to),
      kind: mail.kind,
      replyTo: mail.replyTo,
      text: plain(mail.text),
      fate: state.toLowerCase(),
      why: state === 'Dead' || state === 'Refused' ? (why ?? '') : '',
    };
  });
}

/** The server names plans and the user in English. */
function called(name: string): string {
  return name === 'plan' ? t('plan.word') : name === 'user' ? t('mail.you') : name;
}

function nameOf(model: Model, address: string): string {
  const [kind, id] = address.split('/', 2) as [string, string?];
  if (kind === 'agent') return model.agents.get(id ?? '')?.name ?? 'agent';
  if (kind === 'plan') return t('plan.word');
  return id ?? kind;
}

function threadList(messages: Message[]): Message[][] {
  const roots = new Map<string, Message[]>();
  const rootOf = new Map<string, string>();
  for (const message of messages) {
    const root = (message.replyTo && rootOf.get(message.replyTo)) || message.id;
    rootOf.set(message.id, root);
    const thread = roots.get(root);
    if (thread) thread.push(message);
    else roots.set(root, [message]);
  }
  return [...roots.values()].sort((a, b) => b.at(-1)!.at - a.at(-1)!.at);
}

function MessageRow({ message }: { message: Message }) {
  const long = message.text.length > 280 || message.text.split('\n').length > 4;
  const bad = message.fate === 'dead' || message.fate === 'refused';
  return (
    <article class="mail-row">
      <Avatar name={message.from} size="s" />
      <div class="grow">
        <p class="mail-head">
          <strong>{message.from}</strong> <Icon name="send" size={12} /> <strong>{message.to}</strong>
          <span class="tag">{word('mail', message.kind)}</span>
          <span class="grow" />
          {message.fate && <span class={bad ? 'tiny-text fail-text' : 'tiny-text muted'}>{word('fate', message.fate)}</span>}
          <time class="tiny-text muted">{clock(message.at)}</time>
        </p>
        {bad && <p class="small fail-text">{message.why}</p>}
        {message.text &&
          (long ? (
            <Fold head={<span class="small muted ellipsis">{cut(shortIds(firstLine(message.text)), 120)}</span>}>{() => <Markdown text={message.text} />}</Fold>
          ) : (
            <Markdown text={message.text} />
          ))}
      </div>
    </article>
  );
}

/** How often which agent wrote to which. */
function WhoTalks({ messages }: { messages: Message[] }) {
  const pairs = new Map<string, number>();
  for (const message of messages) pairs.set(`${message.from} → ${message.to}`, (pairs.get(`${message.from} → ${message.to}`) ?? 0) + 1);
  const most = [...pairs].sort((a, b) => b[1] - a[1]).slice(0, 3);
  return (
    <span class="tiny-text muted hide-phone">
      {most.map(([pair, count]) => (
        <span key={pair} class="tag">
          {pair} ×{count}
        </span>
      ))}
    </span>
  );
}

function Write({ session, model }: { session: string; model: Model }) {
  const [to, setTo] = useState('');
  const [text, setText] = useState('');
  const agents = [...model.agents.values()];
  const chosen = to || agents[0]?.name || '';
  return (
    <form
      class="card write-form"
      onSubmit={async (event) => {
        event.preventDefault();
        const lead = agents.find((agent) => agent.lead)?.name === chosen;
        if (await act(`/sessions/${session}/messages`, lead ? { text } : { text, to: [chosen] }, t('mail.sent'))) setText('');
      }}
    >
      <h2>{t('mail.write')}</h2>
      <div class="row wrap">
        <label class="inline-field">
          {t('mail.to')}
          <select value={chosen} onChange={(event) => setTo(event.currentTarget.value)}>
            {agents.map((agent) => (
              <option key={agent.id} value={agent.name}>
                {agent.name}
              </option>
            ))}
          </select>
        </label>
        <input class="grow" type="text" aria-label={t('mail.text')} placeholder={t('mail.text')} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <Button look="primary" type="submit" icon="send" disabled={!text.trim()}>
          {t('do.send')}
        </Button>
      </div>
    </form>
  );
}
