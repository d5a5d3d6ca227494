// Puts files back to how they were: a preview first, and a choice for each file.
import { useEffect, useState } from 'preact/hooks';
import { command, query } from '../lib/api';
import { parseDiff } from '../lib/diff';
import { clock } from '../lib/format';
import { t } from '../lib/i18n';
import { explain, mayDecide } from '../lib/store';
import { cut, firstLine, plain } from '../lib/text';
import { Button, Dialog, Loading, toast } from './basics';
import { FileDiff } from './diff';
import { Icon } from './icons';

interface Moment {
  number: number;
  at_ms: number;
  words: string;
  changes: unknown[];
}

interface RewindPlan {
  puts: { root: string; change: { path: string } }[];
  skipped: { path: string }[];
  left: { path?: string }[];
}

/** A point to go back to, as the server names it. */
export type RewindPoint = 'last' | 'undo' | { turn: number } | { behind: number };

type Preview = [RewindPlan, { path: string; text: string }[]];

export function RewindDialog({ session, to, onClose }: { session: string; to: RewindPoint | null; onClose: () => void }) {
  const [point, setPoint] = useState<RewindPoint | null>(to);
  const [moments, setMoments] = useState<Moment[] | null>(null);
  const [error, setError] = useState('');
  useEffect(() => {
    if (!point) query<Moment[]>('rewind_points', { session }).then(setMoments, (failure) => setError(explain(failure)));
  }, [point]);
  return (
    <Dialog title={t('rewind.title')} onClose={onClose} wide>
      {error && <p class="error-text">{error}</p>}
      {point ? (
        <PreviewFiles session={session} to={point} onBack={to ? null : () => setPoint(null)} onClose={onClose} />
      ) : moments ? (
        <>
          <p class="muted">{t('rewind.choose')}</p>
          <ul class="rows card flush">
            {moments.toReversed().map((moment) => (
              <li key={moment.number}>
                <button type="button" class="fold-head row-link" disabled={moment.changes.length === 0} onClick={() => setPoint({ turn: moment.number })}>
                  <span class="muted small nowrap">{clock(moment.at_ms)}</span>
                  <span class="grow ellipsis">{cut(firstLine(plain(moment.words)), 120)}</span>
                  <span class="small muted nowrap">{t('review.files', { count: new Set(moment.changes.map((change) => JSON.stringify((change as [string, { path: string }])[1]?.path))).size })}</span>
                </button>
              </li>
            ))}
          </ul>
          <Button onClick={() => setPoint('undo')}>{t('rewind.undo')}</Button>
        </>
      ) : (
        !error && <Loading />
      )}
    </Dialog>
  );
}

function PreviewFiles({ session, to, onBack, onClose }: { session: string; to: RewindPoint; onBack: (() => void) | null; onClose: () => void }) {
  const [preview, setPreview] = useState<Preview | null>(null);
  const [off, setOff] = useState<ReadonlySet<string>>(new Set());
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    query<Preview>('rewind_preview', { session, to }).then(setPreview, (failure) => setError(explain(failure)));
  }, [session, JSON.stringify(to)]);
  if (error) return <p class="error-text">{error}</p>;
  if (!preview) return <Loading />;
  const [plan, sheets] = preview;
  const chosen = plan.puts.filter((put) => !off.has(put.change.path));
  const left = [...plan.skipped, ...plan.left].map((one) => one.path ?? '').filter(Boolean);
  const put = async () => {
    setBusy(true);
    try {
      const { id } = await command({ rewind: { session, plan: { ...plan, puts: chosen } } });
      const outcome = await outcomeOf(session, id);
      toast(t('rewind.done', { count: outcome?.done.length ?? chosen.length }));
      for (const failed of outcome?.failed ?? []) toast(`${failed.path}: ${failed.why}`, 'error');
      onClose();
    } catch (failure) {
      toast(explain(failure), 'error');
    } finally {
      setBusy(false);
    }
  };
  if (plan.puts.length === 0) {
    return (
      <>
        <p>{t('rewind.nothing')}</p>
        {onBack && <Button onClick={onBack}>{t('ask.previous')}</Button>}
      </>
    );
  }
  return (
    <>
      <p class="muted">{t('rewind.about')}</p>
      <div class="stack">
        {plan.puts.map((one) => {
          const { path } = one.change;
          const sheet = sheets.find((other) => other.path.endsWith(`/${path}`) || other.path === path);
          return (
            <section key={path} class="stack">
              <label class="check">
                <input
                  type="checkbox"
                  checked={!off.has(path)}
                  onChange={() => {
                    const next = new Set(off);
                    if (!next.delete(path)) next.add(path);
                    setOff(next);
                  }}
                />
                <code>{path}</code>
              </label>
              {sheet && !off.has(path) && parseDiff(plain(sheet.text)).map((file, at) => <FileDiff key={at} file={file} />)}
            </section>
          );
        })}
      </div>
      {left.length > 0 && (
        <p class="muted small">
          <Icon name="info" size={14} /> {t('rewind.left')} {left.map((path) => <code key={path}>{path}</code>)}
        </p>
      )}
      <div class="row end sticky-foot">
        {onBack && <Button onClick={onBack}>{t('ask.previous')}</Button>}
        <Button onClick={onClose}>{t('do.cancel')}</Button>
        <Button look="primary" disabled={busy || chosen.length === 0 || !mayDecide.value} onClick={() => void put()}>
          {t('rewind.put', { count: chosen.length })}
        </Button>
      </div>
    </>
  );
}

interface Outcome {
  done: unknown[];
  failed: { path: string; why: string }[];
}

/** The command is acknowledged before the files are written: the outcome follows. */
async function outcomeOf(session: string, key: string): Promise<Outcome | null> {
  for (let nth = 0; nth < 20; nth += 1) {
    const outcome = await query<Outcome | null>('rewind_outcome', { session, key });
    if (outcome) return outcome;
    await new Promise((done) => setTimeout(done, 150));
  }
  return null;
}
