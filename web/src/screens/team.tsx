// The members of the team: what each may do, does and has spent.
import { fileUrl } from '../lib/api';
import { bytes, dateTime, dollars, money, tokens } from '../lib/format';
import { t, word } from '../lib/i18n';
import { link } from '../lib/router';
import { plain } from '../lib/text';
import type { Enrolled, Member, SessionFile } from '../lib/types';
import { Avatar, Badge, Fold } from '../ui/basics';
import { Icon } from '../ui/icons';
import { useFetch, useSettled } from '../ui/use-fetch';
import { doing } from './now';
import type { SessionProps } from './session';

export function TeamScreen({ id, model, version }: SessionProps) {
  const change = useSettled(version, 1000);
  const { data } = useFetch<{ team: { lead: Enrolled | null; mates: Enrolled[] } }>(`/sessions/${id}/team`, change);
  const defined = useFetch<{ members: Member[] }>('/team');
  const members = defined.data?.members ?? [];
  const enrolled = data ? [data.team.lead, ...data.team.mates].filter((one) => one !== null) : [];
  const names = new Set<string>();
  return (
    <div class="page wide">
      <h2>{t('team.here')}</h2>
      <div class="grid-cards">
        {[...model.agents.values()].map((agent) => {
          names.add(agent.name);
          const member = members.find((one) => one.name === agent.name);
          const roll = enrolled.find((one) => one.person.agent === agent.id);
          const used = agent.usage.input + agent.usage.output + agent.usage.cache_read + agent.usage.cache_write;
          return (
            <article key={agent.id} class="card member">
              <header class="row">
                <Avatar name={agent.name} size="l" busy={agent.state === 'busy'} />
                <div class="grow">
                  <h3>{agent.name}</h3>
                  <p class="muted small">
                    {agent.lead ? t('team.lead') : (member?.role ?? roll?.person.role ?? t('team.member'))} · {agent.model || member?.model}
                  </p>
                </div>
                <Badge state={agent.state} text={word('state', agent.state)} />
              </header>
              <p class="small clamp2">{agent.state === 'busy' && roll ? doing(roll.person) : agent.task || member?.description}</p>
              <p class="muted small num">
                {t('cost.tokens', { count: tokens(used) })} · {roll ? money(roll.person.nano) : dollars(agent.usd)} · {t('chat.model_calls', { count: agent.calls })}
                {roll && roll.unread > 0 && ` · ${t('team.unread', { count: roll.unread })}`}
              </p>
              <Rights member={member} mode={roll?.mode ?? null} />
              <a class="btn small" href={agent.lead ? link(['s', id, 'chat']) : link(['s', id, 'agent', agent.id])}>
                {t('team.transcript')}
              </a>
            </article>
          );
        })}
      </div>
      <Files session={id} change={change} />
      <h2>{t('team.available')}</h2>
      <div class="grid-cards">
        {members
          .filter((member) => !names.has(member.name))
          .map((member) => (
            <article key={member.name} class="card member quiet">
              <header class="row">
                <Avatar name={member.name} />
                <div class="grow">
                  <h3>{member.name}</h3>
                  <p class="muted small">
                    {member.expert ? t('team.expert') : member.role} · {member.model}
                  </p>
                </div>
              </header>
              <p class="small clamp3">{member.description}</p>
              <Rights member={member} mode={null} />
            </article>
          ))}
      </div>
    </div>
  );
}

/** The files of the session: those that were attached, and those that its agents wrote. */
function Files({ session, change }: { session: string; change: unknown }) {
  const { data } = useFetch<{ files: SessionFile[] }>(`/sessions/${session}/files`, change);
  if (!data || data.files.length === 0) return null;
  return (
    <>
      <h2>{t('attach.of_session')}</h2>
      <ul class="session-files">
        {data.files.map((file) => (
          <li key={file.path}>
            <Icon name="file" size={16} />
            <a href={fileUrl(session, file.path)} download>
              @files/{plain(file.path)}
            </a>
            <span class="muted small nowrap">
              {bytes(file.bytes)} · {dateTime(file.changed_at_ms)}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Rights({ member, mode }: { member?: Member; mode: string | null }) {
  if (!member) return null;
  const shown = mode ?? member.mode;
  return (
    <Fold
      head={
        <span class="small grow">
          {t('team.rights')} <code>{shown}</code> <span class="muted">{t('team.tools', { count: member.tools.length })}</span>
        </span>
      }
    >
      {() => (
        <>
          <p class="small muted">{word('mode', shown)}</p>
          <p class="tool-tags">
            {member.tools.map((tool) => (
              <code key={tool}>{tool}</code>
            ))}
          </p>
        </>
      )}
    </Fold>
  );
}
