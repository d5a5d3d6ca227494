// A session as a tree of calls, with time, tokens and cost; and its audit trail.
import { useMemo, useState } from 'preact/hooks';
import { clock, duration, money, tokens } from '../lib/format';
import { t, word } from '../lib/i18n';
import { plain, shortIds } from '../lib/text';
import type { Span } from '../lib/types';
import { Loading, Segmented } from '../ui/basics';
import { Icon, type IconName } from '../ui/icons';
import { useFetch, useSettled } from '../ui/use-fetch';
import { AuditTable } from './audit';
import type { SessionProps } from './session';

const ICONS: Record<string, IconName> = { session: 'chat', plan: 'plan', task: 'check', attempt: 'replay', turn: 'messages', model: 'agent', tool: 'terminal', question: 'inbox', compaction: 'copy' };

export function TraceScreen({ id, version }: SessionProps) {
  const [view, setView] = useState<'tree' | 'audit'>('tree');
  const change = useSettled(version, 1500);
  const { data, error } = useFetch<{ trace: Span }>(view === 'tree' ? `/sessions/${id}/trace` : null, change);
  return (
    <div class="page wide">
      <Segmented
        label={t('tab.trace')}
        value={view}
        options={[
          ['tree', t('trace.tree')],
          ['audit', t('nav.audit')],
        ]}
        onChange={setView}
      />
      {view === 'audit' ? <AuditTable path={`/sessions/${id}/audit`} change={change} /> : data ? <Tree root={data.trace} /> : error ? <p class="error-text">{error}</p> : <Loading />}
    </div>
  );
}

function Tree({ root }: { root: Span }) {
  const [from, to] = useMemo(() => bounds(root), [root]);
  return (
    <div class="card flush trace">
      <div class="trace-row trace-head small muted">
        <span class="trace-name">{t('trace.what')}</span>
        <span class="trace-bar-cell">{t('trace.when')}</span>
        <span class="trace-num">{t('trace.took')}</span>
        <span class="trace-num hide-phone">{t('trace.tokens')}</span>
        <span class="trace-num hide-phone">{t('nav.cost')}</span>
      </div>
      <ul class="tree">
        <Row span={root} depth={0} from={from} to={to} />
      </ul>
    </div>
  );
}

function bounds(root: Span): [number, number] {
  let from = root.at_ms;
  let to = root.at_ms + (root.ms ?? 0);
  const walk = (span: Span) => {
    from = Math.min(from, span.at_ms);
    to = Math.max(to, span.at_ms + (span.ms ?? 0));
    span.children?.forEach(walk);
  };
  walk(root);
  return [from, Math.max(to, from + 1)];
}

function nameOf(span: Span): string {
  const name = shortIds(plain(span.name));
  return /^(ses|pln)_/.test(name) || name === '' ? `${word('span', span.kind)} ${name}` : name;
}

function Row({ span, depth, from, to }: { span: Span; depth: number; from: number; to: number }) {
  const kids = span.children ?? [];
  const [open, setOpen] = useState(depth < 3);
  const left = ((span.at_ms - from) / (to - from)) * 100;
  // What has not ended goes on to the right edge.
  const width = Math.max(0.3, ((span.ms ?? to - span.at_ms) / (to - from)) * 100);
  const used = span.usage.input + span.usage.output + span.usage.cache_read + span.usage.cache_write;
  return (
    <li>
      <div class="trace-row">
        <span class="trace-name" style={{ paddingInlineStart: `${depth * 16}px` }}>
          {kids.length > 0 ? (
            <button type="button" class={open ? 'ghost tree-mark open' : 'ghost tree-mark'} aria-expanded={open} aria-label={span.name} onClick={() => setOpen(!open)}>
              <Icon name="chevron" size={13} />
            </button>
          ) : (
            <span class="tree-mark" />
          )}
          <Icon name={ICONS[span.kind] ?? 'info'} size={14} />
          <span class={span.failed ? 'ellipsis span-name fail-text' : 'ellipsis span-name'} title={`${span.name} · ${span.outcome}${span.by ? ` · ${span.by}` : ''}`}>
            {nameOf(span)}
          </span>
          <span class="muted tiny-text ellipsis">{shortIds(plain(span.by ? `${span.outcome} · ${span.by}` : span.outcome))}</span>
        </span>
        <span class="trace-bar-cell" title={clock(span.at_ms)}>
          <span class={`trace-bar kind-${span.kind}${span.failed ? ' failed' : ''}`} style={{ left: `${Math.min(99.5, left)}%`, width: `${Math.min(width, 100 - left)}%` }} />
        </span>
        <span class="trace-num num small">{span.ms === null ? '…' : duration(span.ms)}</span>
        <span class="trace-num num small muted hide-phone">{used > 0 ? tokens(used) : ''}</span>
        <span class="trace-num num small muted hide-phone">{span.nano > 0 ? money(span.nano) : ''}</span>
      </div>
      {open && kids.length > 0 && (
        <ul>
          {kids.map((kid, at) => (
            <Row key={at} span={kid} depth={depth + 1} from={from} to={to} />
          ))}
        </ul>
      )}
    </li>
  );
}
