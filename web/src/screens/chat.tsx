import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { command, post } from '../lib/api';
import { t } from '../lib/i18n';
import { isBusy, transcript, type Model } from '../lib/model';
import { link } from '../lib/router';
import { explain, inbox, mayWrite, sessions, takeBack } from '../lib/store';
import { cut, firstLine, plain } from '../lib/text';
import type { Pending } from '../lib/types';
import { Avatar, Elapsed, Empty, toast } from '../ui/basics';
import { Composer } from '../ui/composer';
import { Icon } from '../ui/icons';
import { Markdown } from '../ui/markdown';
import { PendingCard } from '../ui/pending';
import { Transcript } from '../ui/transcript';
import { act, type SessionProps } from './session';

export function ChatScreen({ id, model, version }: SessionProps) {
  const items = transcript(model, null);
  const lead = model.lead ? model.agents.get(model.lead) : undefined;
  const live = model.lead ? model.live.get(model.lead) : undefined;
  const busy = isBusy(model);
  const waiting = inbox.value.filter((pending) => pending.session === id);
  const row = sessions.value.find((one) => one.session === id);
  // One of another folder; a worktree and the project of a demo are the server's own.
  const elsewhere = row !== undefined && !row.continuable;
  const { box, end, atEnd, toEnd } = useStickToEnd(`${version}/${waiting.length}`);

  const send = async (text: string, wait: boolean) => {
    try {
      // `@name words` goes to that teammate, as in the terminal.
      const to = /^@([\w-]+)\s+(\S[\s\S]*)$/.exec(text);
      const mate = to && [...model.agents.values()].find((agent) => !agent.lead && agent.name === to[1]);
      const body = mate ? { text: to[2], to: [mate.name] } : wait ? { text, wait: true } : { text };
      await post(`/sessions/${id}/messages`, body);
      toEnd();
      return true;
    } catch (error) {
      toast(explain(error), 'error');
      return false;
    }
  };
  const interrupt = () => void act(`/sessions/${id}/interrupt`);

  return (
    <div class="chat">
      <div class="chat-scroll" ref={box} tabIndex={0} role="region" aria-label={t('chat.conversation')}>
        <div class="chat-column">
          {items.length === 0 && !busy && <Empty icon="chat" title={t('chat.empty')} />}
          <Transcript items={items} model={model} session={id} hideOpen />
          {live && lead && (
            <div class="message agent-message" aria-hidden="true">
              <Avatar name={lead.name} busy />
              <div class="message-body">
                <span class="message-name">{lead.name}</span>
                <div class="streaming">
                  <Markdown text={live} />
                </div>
              </div>
            </div>
          )}
          <AtWork model={model} session={id} />
          <div ref={end} class="chat-end" />
        </div>
      </div>
      <Announcer model={model} />
      <div class="dock">
        {!atEnd && (
          <button type="button" class="btn small to-end" onClick={toEnd}>
            <Icon name="down" size={15} /> {t('chat.to_end')}
          </button>
        )}
        <div class="chat-column">
          {waiting.length > 0 && (
            <Waiting waiting={waiting} model={model} />
          )}
          <Queue model={model} session={id} busy={busy} />
          {elsewhere && (
            <p class="muted small">
              <Icon name="info" size={14} /> {t('chat.other_folder', { folder: row.cwd })}
            </p>
          )}
          <Composer
            session={id}
            busy={busy}
            disabled={!mayWrite.value || elsewhere}
            autofocus
            placeholder={t('chat.ask', { name: lead?.name ? capital(lead.name) : 'Max' })}
            onSend={send}
            onStop={interrupt}
            commands={[
              { name: 'stop', about: t('session.stop_all'), run: () => void act(`/sessions/${id}/stop`, {}, t('session.stopped')) },
              { name: 'continue', about: t('session.continue'), run: () => void act(`/sessions/${id}/continue`, {}, t('session.continued')) },
              { name: 'compact', about: t('chat.compact'), run: () => void compact(id) },
            ]}
          />
        </div>
      </div>
    </div>
  );
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

async function compact(session: string) {
  try {
    await command({ compact: { session, keep: '' } });
    toast(t('chat.compacting'));
  } catch (error) {
    toast(explain(error), 'error');
  }
}

/** Keeps the newest message in sight, unless the reader has scrolled up. */
function useStickToEnd(change: string) {
  const box = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLDivElement>(null);
  const sticks = useRef(true);
  const [atEnd, setAtEnd] = useState(true);
  useEffect(() => {
    const scroller = box.current!;
    const onScroll = () => {
      const near = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
      sticks.current = near;
      setAtEnd(near);
    };
    scroller.addEventListener('scroll', onScroll, { passive: true });
    const observer = new ResizeObserver(() => {
      if (sticks.current) scroller.scrollTop = scroller.scrollHeight;
    });
    observer.observe(scroller);
    if (scroller.firstElementChild) observer.observe(scroller.firstElementChild);
    return () => {
      scroller.removeEventListener('scroll', onScroll);
      observer.disconnect();
    };
  }, []);
  useLayoutEffect(() => {
    const scroller = box.current;
    if (scroller && sticks.current) scroller.scrollTop = scroller.scrollHeight;
  }, [change]);
  const toEnd = () => {
    sticks.current = true;
    setAtEnd(true);
    const scroller = box.current;
    if (scroller) scroller.scrollTop = scroller.scrollHeight;
  };
  return { box, end, atEnd, toEnd };
}

/** What waits for the user in this session, one at a time. */
function Waiting({ waiting, model }: { waiting: Pending[]; model: Model }) {
  const [at, setAt] = useState(0);
  const shown = Math.min(at, waiting.length - 1);
  const pending = waiting[shown]!;
  const isShownAbove = 'plan' in pending.row.matter && pending.row.matter.plan === 'proposal' && model.plans.has(pending.plan ?? '');
  return (
    <div class="dock-asks">
      {waiting.length > 1 && (
        <div class="ask-pager">
          <span class="grow">{t('ask.nth', { nth: shown + 1, count: waiting.length })}</span>
          <button type="button" class="ghost small" disabled={shown === 0} onClick={() => setAt(shown - 1)}>
            {t('ask.previous')}
          </button>
          <button type="button" class="ghost small" disabled={shown + 1 >= waiting.length} onClick={() => setAt(shown + 1)}>
            {t('ask.next')}
          </button>
        </div>
      )}
      <PendingCard key={pending.row.question} pending={pending} compact={isShownAbove} />
    </div>
  );
}

/** Who works, and at what. */
function AtWork({ model, session }: { model: Model; session: string }) {
  const working = model.status.agents.filter((one) => one.working).map((one) => model.agents.get(one.agent)).filter((agent) => agent !== undefined);
  if (working.length === 0) return null;
  return (
    <ul class="at-work" aria-label={t('chat.at_work')}>
      {working.map((agent) => (
        <li key={agent.id}>
          <a href={agent.lead ? link(['s', session, 'chat']) : link(['s', session, 'agent', agent.id])} class="work-chip">
            <Avatar name={agent.name} size="s" busy />
            <span class="name">{agent.name}</span>
            <span class="muted ellipsis">
              {agent.doing ? (agent.doing.what === 'tool' ? `${agent.doing.name} ${plain(agent.doing.target)}` : t('doing.thinking')) : t('doing.working')}
            </span>
            {agent.doing && (
              <span class="muted small">
                <Elapsed from={agent.doing.since} />
              </span>
            )}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** Messages that no turn has read yet. */
function Queue({ model, session, busy }: { model: Model; session: string; busy: boolean }) {
  const working = model.status.agents.some((one) => one.working && one.agent === model.lead);
  if (!busy || !working || model.waiting.length === 0) return null;
  const take = async (id: string) => {
    try {
      await takeBack(session, id);
      toast(t('chat.taken_back'));
    } catch (error) {
      toast(explain(error), 'error');
    }
  };
  return (
    <ul class="queue" aria-label={t('chat.queued')}>
      {model.waiting.map((one) => (
        <li key={one.id} class="chip">
          <Icon name="clock" size={14} />
          <span class="ellipsis">{cut(firstLine(plain(one.text)), 60)}</span>
          <button type="button" class="ghost icon-btn" aria-label={t('chat.take_back')} title={t('chat.take_back')} onClick={() => void take(one.id)}>
            <Icon name="cross" size={13} />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Speaks what is finished; text that is still being written would be spoken in pieces. */
function Announcer({ model }: { model: Model }) {
  const [said, setSaid] = useState('');
  const last = useRef<string | null>(null);
  const item = model.items.findLast((one) => (one.k === 'text' && one.agent === model.lead) || one.k === 'ask' || one.k === 'plan' || one.k === 'error');
  useEffect(() => {
    if (!item || item.key === last.current) return;
    const first = last.current === null;
    last.current = item.key;
    if (first) return;
    if (item.k === 'text') setSaid(cut(plain(item.text), 400));
    else if (item.k === 'plan') setSaid(t('plan.ask_proposal'));
    else if (item.k === 'error') setSaid(item.text);
    else if (item.k === 'ask') setSaid(t('state.waits_for_you'));
  }, [item?.key]);
  return (
    <div class="sr-only" role="log" aria-live="polite">
      {said}
    </div>
  );
}

