// Everything that happened, who allowed it, and the hash that proves it.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, query } from '../lib/api';
import { author, clock, dateTime } from '../lib/format';
import { t } from '../lib/i18n';
import { explain } from '../lib/store';
import { plain, shortIds } from '../lib/text';
import type { AuditRecord } from '../lib/types';
import { Button, Empty, Loading } from '../ui/basics';
import { Icon } from '../ui/icons';

export function AuditScreen() {
  return (
    <div class="page wide">
      <header class="page-head">
        <div class="grow">
          <h1>{t('nav.audit')}</h1>
          <p class="muted">{t('audit.about')}</p>
        </div>
      </header>
      <AuditTable path={null} change={0} />
    </div>
  );
}

/** Rows that are drawn at once. */
const ROWS_MAX = 300;

export function AuditTable({ path, change }: { path: string | null; change: number }) {
  const [records, setRecords] = useState<AuditRecord[] | null>(null);
  const [more, setMore] = useState(false);
  const [error, setError] = useState('');
  const [words, setWords] = useState('');
  const [only, setOnly] = useState(false);
  const [shown, setShown] = useState(ROWS_MAX);
  const load = async (after: number) => {
    try {
      const page = path ? (await get<{ audit: AuditRecord[] }>(`${path}?after=${after}`)).audit : await query<AuditRecord[]>('audit', { session: null, after_seq: after });
      setRecords((before) => (after > 0 && before ? [...before, ...page] : page));
      setMore(page.length >= 1000);
    } catch (failure) {
      setError(explain(failure));
    }
  };
  useEffect(() => {
    void load(0);
  }, [path, change]);
  const found = useMemo(() => {
    const low = words.toLowerCase();
    return (records ?? []).filter((record) => (!only || record.allowed || record.refused) && (!low || `${record.event} ${record.actor} ${record.agent ?? ''} ${record.task ?? ''} ${record.what}`.toLowerCase().includes(low))).reverse();
  }, [records, words, only]);
  if (error) return <p class="error-text">{error}</p>;
  if (!records) return <Loading />;
  return (
    <>
      <div class="row wrap">
        <label class="search grow">
          <Icon name="search" size={16} />
          <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} placeholder={t('audit.search')} aria-label={t('audit.search')} />
        </label>
        <label class="check">
          <input type="checkbox" checked={only} onChange={() => setOnly(!only)} /> {t('audit.only_decided')}
        </label>
        <span class="muted small">{t('audit.count', { count: found.length })}</span>
      </div>
      {found.length === 0 ? (
        <Empty icon="audit" title={t('audit.empty')} />
      ) : (
        <div class="card flush scroll-x" tabIndex={0} role="region" aria-label={t('nav.audit')}>
          <table class="table">
            <thead>
              <tr>
                <th>#</th>
                <th>{t('audit.time')}</th>
                <th>{t('audit.who')}</th>
                <th>{t('audit.event')}</th>
                <th>{t('audit.what')}</th>
                <th>{t('audit.allowed')}</th>
                <th>{t('audit.hash')}</th>
              </tr>
            </thead>
            <tbody>
              {found.slice(0, shown).map((record) => (
                <tr key={record.seq}>
                  <td class="num muted">{record.seq}</td>
                  <td class="nowrap small" title={dateTime(record.at_ms)}>
                    {clock(record.at_ms)}
                  </td>
                  <td class="nowrap">{shortIds(record.agent ?? record.actor)}</td>
                  <td class="nowrap mono small">{record.event}</td>
                  <td class="what">
                    {record.task && <span class="tag">{record.task}</span>} {record.erased ? t('audit.erased') : shortIds(plain(record.what))}
                  </td>
                  <td class="small allowed">
                    {record.refused ? <span class="fail-text">{describe((record.refused as { by?: unknown }).by)}</span> : record.allowed ? describe(record.allowed) : ''}
                    {record.damaged && record.damaged.length > 0 && <span class="fail-text">{t('audit.damaged')}</span>}
                  </td>
                  <td class="mono tiny-text muted">{record.hash.slice(0, 10)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div class="row">
        {found.length > shown && <Button onClick={() => setShown(shown + ROWS_MAX)}>{t('do.more')}</Button>}
        {more && <Button onClick={() => void load(records.at(-1)?.seq ?? 0)}>{t('audit.next')}</Button>}
      </div>
    </>
  );
}

/** Who or what allowed or refused it, in a few words. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(describe).filter(Boolean).join(' · ');
  if (typeof value !== 'object') return String(value);
  const [kind, inner] = Object.entries(value as Record<string, unknown>)[0] ?? ['', ''];
  const about = inner as Record<string, unknown>;
  switch (kind) {
    case 'rule':
      return String(inner);
    case 'answer':
      return `${String(about.said ?? '')} · ${by(about.by)}`;
    case 'before':
    case 'mode':
    case 'built_in':
      return String(about.rule ?? '');
    case 'plan': {
      const word = about.word as Record<string, unknown> | null;
      return `${t('plan.word')}${word ? ` · ${by(word.by)}` : ''}`;
    }
    case 'all':
      return describe(inner);
    default:
      return typeof inner === 'string' ? inner : describe(inner);
  }
}

function by(value: unknown): string {
  if (typeof value === 'string') return author(value);
  return value && typeof value === 'object' ? author(String(Object.values(value)[0] ?? '')) : '';
}
