// Continues from a moment of a run, in a session of its own.
import { useState } from 'preact/hooks';
import { post } from '../lib/api';
import { t } from '../lib/i18n';
import { go } from '../lib/router';
import { explain, mayWrite, refreshSoon } from '../lib/store';
import { Button, Dialog, toast } from './basics';
import { CopyButton } from './markdown';

interface Forked {
  session: { session: string };
  worktree: null | { id: string; restored: number | null; left_count: number; files_unknown: boolean };
}

export function ForkDialog({ session, at, onClose }: { session: string; at: number; onClose: () => void }) {
  const [here, setHere] = useState(false);
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const terminal = `max-team fork ${session} --at ${at}${here ? ' --here' : ''}`;
  const fork = async () => {
    setBusy(true);
    setError('');
    try {
      const forked = await post<Forked>(`/sessions/${session}/fork`, { at: String(at), here, ...(text.trim() && { text: text.trim() }) });
      const { worktree } = forked;
      if (worktree?.files_unknown) toast(t('fork.files_unknown'));
      else if (worktree?.left_count) toast(t('fork.files_left', { count: worktree.left_count }));
      else toast(t('fork.done'));
      refreshSoon(0);
      go(['s', forked.session.session, 'chat']);
    } catch (failure) {
      setError(explain(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t('replay.fork')} onClose={onClose}>
      <form
        class="edit-form bare"
        onSubmit={(event) => {
          event.preventDefault();
          void fork();
        }}
      >
        <p class="muted">{t('replay.fork_about')}</p>
        <fieldset class="stack tight">
          <legend>{t('fork.files')}</legend>
          <label class="check wrapped">
            <input type="radio" name="place" checked={!here} onChange={() => setHere(false)} /> {t('fork.worktree')}
          </label>
          <label class="check wrapped">
            <input type="radio" name="place" checked={here} onChange={() => setHere(true)} /> {t('fork.here')}
          </label>
        </fieldset>
        <label>
          {t('fork.first')}
          <textarea rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {error && (
          <p class="failure-text" role="alert">
            {error}
          </p>
        )}
        <p class="muted small">{t('fork.terminal')}</p>
        <div class="row">
          <pre class="command grow" tabIndex={0}>{terminal}</pre>
          <CopyButton text={terminal} />
        </div>
        <div class="row end">
          <Button onClick={onClose}>{t('do.cancel')}</Button>
          <Button type="submit" look="primary" icon="fork" disabled={busy || !mayWrite.value}>
            {t(busy ? 'fork.busy' : 'fork.do')}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
