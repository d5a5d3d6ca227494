// What agents changed: worktrees that wait for a decision, and every edit by agent.
import { useMemo, useState } from 'preact/hooks';
import { parseDiff } from '../lib/diff';
import { clock } from '../lib/format';
import { t } from '../lib/i18n';
import type { Item, Model } from '../lib/model';
import { link } from '../lib/router';
import { inbox } from '../lib/store';
import { plain } from '../lib/text';
import { Avatar, Button, Empty, Fold } from '../ui/basics';
import { FileDiff } from '../ui/diff';
import { Icon } from '../ui/icons';
import { PendingCard } from '../ui/pending';
import { RewindDialog } from '../ui/rewind';
import { changeOf } from '../ui/transcript';
import { useFetch, useSettled } from '../ui/use-fetch';
import { WorktreeCard, type WaitingWorktree } from '../ui/worktree';
import type { SessionProps } from './session';

export function ReviewScreen({ id, model, version }: SessionProps) {
  const change = useSettled(version, 1000);
  const [decided, setDecided] = useState(0);
  const { data } = useFetch<{ worktrees: WaitingWorktree[] }>(`/sessions/${id}/worktrees`, `${change} ${decided}`);
  const merges = inbox.value.filter((pending) => pending.session === id && 'tool' in pending.row.matter && ['merge', 'write', 'write_own'].includes(pending.row.matter.tool.action.deed));
  const changes = useMemo(() => changeList(model), [model, version]);
  const trees = data?.worktrees ?? [];
  const [rewinding, setRewinding] = useState(false);
  const nothing = merges.length === 0 && changes.length === 0 && trees.length === 0;
  return (
    <div class="page narrow">
      {nothing ? (
        <Empty icon="review" title={t('review.empty')} />
      ) : (
        <div class="row">
          <p class="muted grow">{t('review.about')}</p>
          <Button icon="replay" small onClick={() => setRewinding(true)}>
            {t('rewind.open')}
          </Button>
        </div>
      )}
      {rewinding && <RewindDialog session={id} to={null} onClose={() => setRewinding(false)} />}
      {merges.length > 0 && (
        <section aria-labelledby="to-decide">
          <h2 id="to-decide">{t('review.decide')}</h2>
          <div class="stack">
            {merges.map((pending) => (
              <PendingCard key={pending.row.question} pending={pending} />
            ))}
          </div>
        </section>
      )}
      {trees.length > 0 && (
        <section aria-labelledby="trees">
          <h2 id="trees">{t('review.worktrees')}</h2>
          <div class="stack">
            {trees.map((tree) => (
              <WorktreeCard key={tree.id} tree={tree} change={`${change} ${decided}`} onDecided={() => setDecided((count) => count + 1)} />
            ))}
          </div>
        </section>
      )}
      {changes.map((group) => (
        <section key={group.agent} aria-label={group.name}>
          <h2 class="row">
            <Avatar name={group.name} size="s" /> {group.name}
            <span class="muted small">
              {group.task} · {t('review.edits', { count: group.edits.length })}
            </span>
            <span class="grow" />
            <a class="small" href={link(['s', id, 'agent', group.agent])}>
              {t('team.transcript')}
            </a>
          </h2>
          <div class="stack">
            {group.edits.map((edit) => (
              <Fold
                key={edit.key}
                class="card flush"
                open={group.edits.length < 6}
                head={
                  <>
                    <Icon name="file" size={15} />
                    <span class="mono grow ellipsis">{edit.path}</span>
                    {edit.failed && <span class="small fail-text">{t('state.failed')}</span>}
                    <span class="muted small">{clock(edit.at)}</span>
                  </>
                }
              >
                {() => parseDiff(edit.diff).map((file, at) => <FileDiff key={at} file={file} />)}
              </Fold>
            ))}
          </div>
        </section>
      ))}
    </div>
  );
}

interface Group {
  agent: string;
  name: string;
  task: string;
  edits: { key: string; at: number; path: string; diff: string; failed: boolean }[];
}

function changeList(model: Model): Group[] {
  const groups = new Map<string, Group>();
  for (const item of model.items) {
    if (item.k !== 'tool' || !item.agent) continue;
    const edit = editOf(item);
    if (!edit) continue;
    const agent = model.agents.get(item.agent);
    const group = groups.get(item.agent) ?? { agent: item.agent, name: agent?.name ?? '', task: agent?.task ?? '', edits: [] };
    group.edits.push(edit);
    groups.set(item.agent, group);
  }
  return [...groups.values()];
}

function editOf(item: Extract<Item, { k: 'tool' }>): Group['edits'][number] | null {
  const { call } = item;
  if (!/edit|write|patch/.test(call.name) || call.ending === 'refused') return null;
  try {
    const diff = changeOf(JSON.parse(call.args) as Record<string, unknown>);
    return diff ? { key: item.key, at: item.at, path: plain(call.target), diff: plain(diff), failed: call.isError ?? false } : null;
  } catch {
    return null;
  }
}
