// A run at any moment: what every agent had said, done and spent by then.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { clock, dollars, tokens } from '../lib/format';
import { t, word } from '../lib/i18n';
import { apply, newModel, transcript, type Model } from '../lib/model';
import { place } from '../lib/router';
import { planView } from '../lib/store';
import type { StreamEvent } from '../lib/types';
import { Avatar, Badge, Button, Empty, Segmented } from '../ui/basics';
import { ForkDialog } from '../ui/fork';
import { Icon } from '../ui/icons';
import { shownTasks, TaskList } from '../ui/plan-parts';
import { RewindDialog } from '../ui/rewind';
import { Transcript } from '../ui/transcript';
import type { SessionProps } from './session';

export function ReplayScreen({ id, held }: SessionProps) {
  // Events that come while the run is replayed lengthen the slider.
  const events = held.events;
  const [at, setAt] = useState(() => Number(place.value.query.get('at') ?? 0) || events.length);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<'1' | '4' | '16'>('4');
  const [who, setWho] = useState('');
  const [forking, setForking] = useState(false);
  const [rewinding, setRewinding] = useState(false);
  const model = useModelAt(id, events, at);

  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      setAt((now) => {
        if (now >= events.length) {
          setPlaying(false);
          return now;
        }
        return now + 1;
      });
    }, 640 / Number(speed));
    return () => clearInterval(timer);
  }, [playing, speed, events.length]);

  if (events.length === 0) return <Empty icon="replay" title={t('replay.empty')} />;
  const event = events[Math.max(0, at - 1)];
  const shown = who && model.agents.has(who) ? who : (model.lead ?? '');
  const play = () => {
    if (at >= events.length) setAt(0);
    setPlaying(!playing);
  };
  return (
    <div class="replay">
      <div class="replay-bar card">
        <Button look="primary" icon={playing ? 'pause' : 'play'} onClick={play}>
          {t(playing ? 'replay.pause' : 'replay.play')}
        </Button>
        <input type="range" class="grow" min={0} max={events.length} value={at} aria-label={t('replay.slider')} aria-valuetext={event ? `${clock(event.at_ms)}, ${at} / ${events.length}` : '0'} onInput={(input) => setAt(Number(input.currentTarget.value))} />
        <span class="num small nowrap">
          {at} / {events.length}
        </span>
        <span class="num small muted nowrap hide-phone">{event && at > 0 ? clock(event.at_ms) : ''}</span>
        <Segmented
          label={t('replay.speed')}
          value={speed}
          options={[
            ['1', '1×'],
            ['4', '4×'],
            ['16', '16×'],
          ]}
          onChange={setSpeed}
        />
        <Button small icon="review" disabled={!event || at === 0} onClick={() => setRewinding(true)}>
          {t('replay.files')}
        </Button>
        <Button small icon="fork" disabled={!event || at === 0} onClick={() => setForking(true)}>
          {t('replay.fork')}
        </Button>
      </div>
      <p class="replay-event muted small ellipsis" aria-live="off">
        {event && at > 0 ? describe(event) : t('replay.start')}
      </p>
      <div class="replay-body">
        <section class="replay-agents" aria-label={t('tab.team')}>
          {[...model.agents.values()].map((agent) => {
            const used = agent.usage.input + agent.usage.output + agent.usage.cache_read + agent.usage.cache_write;
            return (
              <button key={agent.id} type="button" class="card agent-card" aria-pressed={agent.id === shown} onClick={() => setWho(agent.id)}>
                <span class="row">
                  <Avatar name={agent.name} size="s" busy={agent.state === 'busy'} />
                  <strong class="grow ellipsis">{agent.name}</strong>
                  <Badge state={agent.state} text={word('state', agent.state)} />
                </span>
                <span class="small muted ellipsis block">{agent.doing ? `${agent.doing.what === 'tool' ? agent.doing.name : t('doing.thinking')} ${agent.doing.target}` : agent.task || ' '}</span>
                <span class="small muted num block">
                  {t('cost.tokens', { count: tokens(used) })} · {dollars(agent.usd)} · {t('chat.model_calls', { count: agent.calls })}
                </span>
              </button>
            );
          })}
          {[...model.plans.values()].map((plan) => (
            <div key={plan.id} class="card">
              <strong class="small">{plan.goal}</strong>
              <TaskList tasks={shownTasks(plan, planView(plan.id), true)} />
            </div>
          ))}
        </section>
        <section class="replay-said card" aria-label={t('chat.conversation')} tabIndex={0}>
          <ReplayTranscript model={model} session={id} agent={shown} />
        </section>
      </div>
      {rewinding && event && <RewindDialog session={id} to={{ behind: event.seq }} onClose={() => setRewinding(false)} />}
      {forking && event && <ForkDialog session={id} at={event.seq} onClose={() => setForking(false)} />}
    </div>
  );
}

function ReplayTranscript({ model, session, agent }: { model: Model; session: string; agent: string }) {
  const end = useRef<HTMLDivElement>(null);
  // Only the last part is drawn, so that the slider stays quick.
  const items = transcript(model, agent || null).slice(-40);
  useEffect(() => {
    const box = end.current?.parentElement;
    if (box) box.scrollTop = box.scrollHeight;
  }, [model.count, agent]);
  return (
    <>
      {items.length === 0 && (
        <p class="muted center">
          <Icon name="clock" size={16} /> {t('replay.nothing_yet')}
        </p>
      )}
      <Transcript items={items} model={model} session={session} past />
      <div ref={end} />
    </>
  );
}

/** Going forward continues the fold; going back begins it anew. */
function useModelAt(id: string, events: StreamEvent[], at: number): Model {
  const kept = useRef<{ model: Model; at: number } | null>(null);
  return useMemo(() => {
    let from = kept.current;
    if (!from || from.at > at) from = { model: newModel(id), at: 0 };
    for (let nth = from.at; nth < at; nth += 1) {
      const event = events[nth];
      if (event) apply(from.model, event);
    }
    kept.current = { model: from.model, at };
    return { ...from.model };
  }, [id, events, at]);
}

function describe(event: StreamEvent): string {
  const who = event.agent?.name ?? '';
  switch (event.type) {
    case 'tool_start':
      return `${who} · ${event.tool_name} ${event.target}`;
    case 'tool_result':
      return `${who} · ${event.tool_name} → ${event.summary}`;
    case 'status':
      return `${who} · ${event.message}`;
    case 'final':
      return `${who} · ${event.response.slice(0, 140)}`;
    case 'task':
      return `${t('task.word')} ${event.task} · ${word('task', event.state)}`;
    case 'plan':
      return `${t('plan.word')} · ${word('plan_state', event.state)}`;
    case 'mail':
      return `${t('mail.word')} → ${event.to_name ?? ''} · ${word('mail', event.kind)}`;
    case 'approval':
      return `${t('nav.inbox')} · ${event.message ?? ''} ${event.said ?? ''} ${event.by ?? ''}`;
    case 'budget':
      return `${who} · ${event.model ?? ''} · ${event.usage ? t('cost.tokens', { count: tokens(event.usage.input + event.usage.output) }) : event.state}`;
    case 'agent':
      return `${who} · ${word('state', event.state)}`;
    default:
      return word('event', event.type);
  }
}
