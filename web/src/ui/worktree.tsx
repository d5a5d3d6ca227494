// A worktree with changes that wait: its files, and a decision about each or all of them.
import { useMemo, useState } from 'preact/hooks';
import { post } from '../lib/api';
import { parseDiff, type DiffFile } from '../lib/diff';
import { t, word } from '../lib/i18n';
import { explain, mayDecide, refreshSoon } from '../lib/store';
import { plain } from '../lib/text';
import { Badge, Button, Dialog, Fold, toast } from './basics';
import { FileDiff } from './diff';
import { Icon } from './icons';
import { useFetch } from './use-fetch';

export interface WaitingWorktree {
  id: string;
  by: string;
  open: number;
  ignored: number;
  trouble: string | null;
}

interface Change {
  path: string;
  fate: 'ready' | 'done' | 'rejected' | 'back' | 'conflict' | 'refused';
  why?: string;
}

interface Review {
  id: string;
  root: string;
  project: string;
  changes: Change[];
  ignored: { files: string[]; more: number };
  left: string[];
  diff: { text: string; cut: boolean };
  conflicts: { path: string; text: string }[];
  shown: string;
}

const STATES = { ready: 'waiting', done: 'done', rejected: 'rejected', back: 'idle', conflict: 'failed', refused: 'failed' };
const isOpen = (change: Change) => !['done', 'rejected', 'back'].includes(change.fate);

export function WorktreeCard({ tree, change, onDecided }: { tree: WaitingWorktree; change: unknown; onDecided: () => void }) {
  const { data, error } = useFetch<{ worktree: Review }>(`/worktrees/${tree.id}`, change);
  const [rejecting, setRejecting] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const review = data?.worktree;
  const files = useMemo(() => new Map(parseDiff(plain(review?.diff.text ?? '')).map((file) => [file.path, file])), [review?.diff.text]);
  const decide = async (verb: 'accept' | 'reject', paths: string[] = []) => {
    setBusy(true);
    setProblem('');
    try {
      const shown = review ? { shown: review.shown } : {};
      const { worktree } = await post<{ worktree: Review | null }>(`/worktrees/${tree.id}/${verb}`, { files: paths, ...shown });
      const stuck = (worktree?.changes ?? []).filter((one) => ['conflict', 'refused'].includes(one.fate) && (paths.length === 0 || paths.includes(one.path)));
      if (verb === 'accept' && stuck.length > 0) setProblem(t('worktree.partly', { count: stuck.length }));
      else toast(t(verb === 'accept' ? 'worktree.accepted' : 'worktree.rejected', { count: paths.length || tree.open }));
      refreshSoon(0);
    } catch (failure) {
      setProblem(explain(failure));
    } finally {
      setBusy(false);
      setRejecting(false);
      onDecided();
    }
  };
  const off = busy || !mayDecide.value || !review;
  const open = review?.changes.filter(isOpen) ?? [];
  return (
    <article class="card stack" aria-label={tree.by}>
      <header class="row wrap">
        <span class="grow">
          <Icon name="fork" size={16} /> <strong>{tree.by}</strong>
          <span class="muted small block">
            <code>{tree.id}</code> · {t('review.files', { count: tree.open })}
          </span>
        </span>
        <Button small icon="check" look="primary" disabled={off || open.length === 0} onClick={() => void decide('accept')}>
          {t('worktree.accept_all')}
        </Button>
        <Button small look="danger" disabled={off} onClick={() => setRejecting(true)}>
          {t('worktree.reject_all')}
        </Button>
      </header>
      {(tree.trouble || error) && <p class="error-text">{tree.trouble ?? error}</p>}
      {problem && (
        <p class="failure-text" role="alert">
          {problem}
        </p>
      )}
      {(review?.changes ?? []).map((one) => (
        <ChangedFile key={one.path} change={one} file={files.get(one.path)} conflict={review?.conflicts.find((other) => other.path === one.path)?.text} first={open.length < 6} off={off} decide={decide} />
      ))}
      {review?.diff.cut && <p class="muted small">{t('worktree.cut', { path: review.root })}</p>}
      {review && review.ignored.files.length > 0 && (
        <section class="stack tight">
          <p class="muted small">{t('worktree.ignored')}</p>
          {review.ignored.files.map((path) => (
            <div key={path} class="row">
              <span class="mono grow ellipsis">{path}</span>
              <Button small aria-label={`${t('worktree.accept')} ${path}`} disabled={off} onClick={() => void decide('accept', [path])}>
                {t('worktree.accept')}
              </Button>
            </div>
          ))}
          {review.ignored.more > 0 && <p class="muted small">{t('worktree.ignored_more', { count: review.ignored.more })}</p>}
        </section>
      )}
      {rejecting && (
        <Dialog title={t('worktree.reject_all')} onClose={() => setRejecting(false)}>
          <p>{t('worktree.reject_about', { by: tree.by })}</p>
          <div class="row end">
            <Button onClick={() => setRejecting(false)}>{t('do.cancel')}</Button>
            <Button look="danger" disabled={busy} onClick={() => void decide('reject')}>
              {t('worktree.reject_all')}
            </Button>
          </div>
        </Dialog>
      )}
    </article>
  );
}

function ChangedFile({ change, file, conflict, first, off, decide }: { change: Change; file: DiffFile | undefined; conflict: string | undefined; first: boolean; off: boolean; decide: (verb: 'accept' | 'reject', paths: string[]) => Promise<void> }) {
  const { path, fate } = change;
  return (
    <div class="stack tight worktree-file">
      <Fold
        open={first && isOpen(change)}
        head={
          <>
            <span class="mono grow ellipsis">{path}</span>
            <Badge state={STATES[fate]} text={word('fate', fate)} />
          </>
        }
      >
        {() => (
          <>
            {change.why && <p class="small fail-text">{change.why}</p>}
            {conflict ? <pre class="conflict" tabIndex={0} aria-label={t('worktree.conflict')}>{plain(conflict)}</pre> : file ? <FileDiff file={file} /> : <p class="muted small">{t('worktree.no_diff')}</p>}
          </>
        )}
      </Fold>
      {isOpen(change) && (
        <div class="row end">
          <Button small aria-label={`${t('worktree.accept')} ${path}`} disabled={off || fate !== 'ready'} onClick={() => void decide('accept', [path])}>
            {t('worktree.accept')}
          </Button>
          <Button small look="danger" aria-label={`${t('worktree.reject')} ${path}`} disabled={off} onClick={() => void decide('reject', [path])}>
            {t('worktree.reject')}
          </Button>
        </div>
      )}
    </div>
  );
}
