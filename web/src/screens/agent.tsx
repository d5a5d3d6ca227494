// The transcript of one agent, at one moment if the address names it.
import { useEffect } from 'preact/hooks';
import { dollars, tokens } from '../lib/format';
import { t, word } from '../lib/i18n';
import { transcript } from '../lib/model';
import { link, place } from '../lib/router';
import { Avatar, Badge, Empty } from '../ui/basics';
import { Markdown } from '../ui/markdown';
import { Transcript } from '../ui/transcript';
import type { SessionProps } from './session';

export function AgentScreen({ id, model, rest }: SessionProps) {
  const agent = model.agents.get(rest[0] ?? '');
  const at = place.value.query.get('at');
  useEffect(() => {
    if (at) document.getElementById(`at-${at}`)?.scrollIntoView({ block: 'center' });
  }, [at, rest[0]]);
  if (!agent) return <Empty icon="agent" title={t('team.no_agent')} />;
  const live = model.live.get(agent.id);
  const given = model.mail.filter((mail) => mail.to === `agent/${agent.id}` && mail.kind === 'task_assign').at(-1);
  const used = agent.usage.input + agent.usage.output + agent.usage.cache_read + agent.usage.cache_write;
  return (
    <div class="page narrow">
      <header class="page-head">
        <Avatar name={agent.name} size="l" busy={agent.state === 'busy'} />
        <div class="grow">
          <h2>{agent.name}</h2>
          <p class="muted small">
            {agent.model} · {t('cost.tokens', { count: tokens(used) })} · {dollars(agent.usd)} · {t('chat.model_calls', { count: agent.calls })}
          </p>
        </div>
        <Badge state={agent.state} text={word('state', agent.state)} />
        <a class="btn small" href={link(['s', id, 'timeline'])}>
          {t('tab.timeline')}
        </a>
      </header>
      {given?.text && (
        <details class="card given">
          <summary>{t('team.given')}</summary>
          <Markdown text={given.text} />
        </details>
      )}
      <Transcript items={transcript(model, agent.id)} model={model} session={id} mark={at} />
      {live && (
        <div class="message agent-message" aria-hidden="true">
          <Avatar name={agent.name} busy />
          <div class="message-body">
            <Markdown text={live} />
          </div>
        </div>
      )}
    </div>
  );
}
