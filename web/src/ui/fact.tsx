// A remembered fact: where it came from, which turns were told it, and changes of it.
import { useState } from 'preact/hooks';
import { del, post } from '../lib/api';
import { clock } from '../lib/format';
import { t, word } from '../lib/i18n';
import { link } from '../lib/router';
import { explain, mayDecide } from '../lib/store';
import { cut, firstLine, plain } from '../lib/text';
import { Button, Dialog, toast } from './basics';
import { useFetch } from './use-fetch';

export type BoardName = 'user' | 'project';

export interface Fact {
  key: string;
  value: unknown;
  by: unknown;
  source?: { session?: string; quote?: string; file?: string };
  at_ms: number;
}

export interface Uses {
  said_in: string[];
  told: { session: string; turn: string; at_ms: number; said: string; fact: { at_ms: number; why: unknown } }[];
  left_out: number;
}

export const SECTIONS = ['preferences', 'user_profile', 'notes', 'personality', 'agent_errors', 'dialog_context'];

export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function writer(by: unknown): string {
  if (typeof by === 'string') return word('writer', by);
  if (!by || typeof by !== 'object') return '';
  const [kind, name] = Object.entries(by)[0]!;
  return `${word('writer', kind)}: ${String(name)}`;
}

/** Why a fact went into a prompt. */
export function why(reason: unknown): string {
  if (typeof reason === 'string') return word('recall', reason);
  const terms = (reason as { matched?: { terms?: string[] } } | null)?.matched?.terms;
  return terms ? t('recall.matched', { terms: terms.join(', ') }) : JSON.stringify(reason);
}

/** Asks for a new fact, or for another value of one. */
export function FactForm({ board, fact, onClose, onDone }: { board: BoardName | null; fact: Fact | null; onClose: () => void; onDone: () => void }) {
  const [section, setSection] = useState('preferences');
  const [name, setName] = useState('');
  const [value, setValue] = useState(fact ? valueText(fact.value) : '');
  const [where, setWhere] = useState<BoardName>('user');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const pick = (next: string) => {
    setSection(next);
    setWhere(next === 'notes' || next === 'dialog_context' ? 'project' : 'user');
  };
  const key = fact ? fact.key : `${section}.${name.trim().replace(/\s+/g, '_')}`;
  const save = async () => {
    setBusy(true);
    setError('');
    try {
      // A value that was no text stays what it was.
      const given: unknown = fact && typeof fact.value !== 'string' ? JSON.parse(value) : value.trim();
      await post('/memory', { key, value: given, board: board ?? where });
      toast(t('memory.stored'));
      onDone();
    } catch (failure) {
      setError(explain(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t(fact ? 'memory.edit' : 'memory.add')} onClose={onClose}>
      <form
        class="edit-form bare"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {fact ? (
          <code>{fact.key}</code>
        ) : (
          <div class="form-row">
            <label>
              {t('memory.section')}
              <select value={section} onChange={(event) => pick(event.currentTarget.value)}>
                {SECTIONS.map((one) => (
                  <option key={one} value={one}>
                    {word('section', one)}
                  </option>
                ))}
              </select>
            </label>
            <label>
              {t('memory.name')}
              <input type="text" value={name} autocomplete="off" onInput={(event) => setName(event.currentTarget.value)} />
            </label>
            <label>
              {t('memory.board')}
              <select value={where} onChange={(event) => setWhere(event.currentTarget.value as BoardName)}>
                <option value="user">{t('memory.of_user')}</option>
                <option value="project">{t('memory.of_project')}</option>
              </select>
            </label>
          </div>
        )}
        <label>
          {t('memory.value')}
          <textarea rows={4} value={value} onInput={(event) => setValue(event.currentTarget.value)} />
        </label>
        {error && (
          <p class="failure-text" role="alert">
            {error}
          </p>
        )}
        <div class="row end">
          <Button onClick={onClose}>{t('do.cancel')}</Button>
          <Button type="submit" look="primary" disabled={busy || !value.trim() || (!fact && !name.trim())}>
            {t('memory.save')}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function SessionLinks({ ids }: { ids: string[] }) {
  return (
    <>
      {ids.map((id) => (
        <a key={id} href={link(['s', id, 'chat'])}>
          {id.slice(-8)}
        </a>
      ))}
    </>
  );
}

function ForgetDialog({ board, fact, uses, onClose, onDone }: { board: BoardName; fact: Fact; uses: Uses | null; onClose: () => void; onDone: () => void }) {
  const [busy, setBusy] = useState(false);
  const said = uses?.said_in ?? [];
  const told = [...new Set((uses?.told ?? []).map((one) => one.session))].filter((id) => !said.includes(id));
  const forget = async () => {
    setBusy(true);
    try {
      await del(`/memory/${board}/${encodeURIComponent(fact.key)}`);
      toast(t('memory.forgotten'));
      onDone();
    } catch (failure) {
      toast(explain(failure), 'error');
      onClose();
    }
  };
  return (
    <Dialog title={t('memory.forget')} onClose={onClose}>
      <p>
        {t('memory.forget_about')} <code>{fact.key}</code>
      </p>
      {said.length > 0 && (
        <p class="small">
          {t('memory.still_said')} <SessionLinks ids={said} />
        </p>
      )}
      {told.length > 0 && (
        <p class="small">
          {t('memory.still_told')} <SessionLinks ids={told} />
        </p>
      )}
      <div class="row end">
        <Button onClick={onClose}>{t('do.cancel')}</Button>
        <Button look="danger" disabled={busy} onClick={() => void forget()}>
          {t('memory.forget')}
        </Button>
      </div>
    </Dialog>
  );
}

export function FactDetails({ board, fact, onChanged }: { board: BoardName; fact: Fact; onChanged: () => void }) {
  const { data, error } = useFetch<{ uses: Uses }>(`/memory/${board}/${encodeURIComponent(fact.key)}`, fact.at_ms);
  const [open, setOpen] = useState<'' | 'edit' | 'forget'>('');
  const close = () => setOpen('');
  const done = () => {
    close();
    onChanged();
  };
  const uses = data?.uses ?? null;
  return (
    <>
      <dl class="facts">
        <dt>{t('memory.value')}</dt>
        <dd>{plain(valueText(fact.value))}</dd>
        <dt>{t('memory.by')}</dt>
        <dd>{writer(fact.by)}</dd>
        {fact.source?.quote && (
          <>
            <dt>{t('memory.quote')}</dt>
            <dd>“{plain(fact.source.quote)}”</dd>
          </>
        )}
        {fact.source?.session && (
          <>
            <dt>{t('memory.session')}</dt>
            <dd>
              <SessionLinks ids={[fact.source.session]} />
            </dd>
          </>
        )}
        {fact.source?.file && (
          <>
            <dt>{t('memory.file')}</dt>
            <dd>
              <code>{fact.source.file}</code>
            </dd>
          </>
        )}
        <dt>{t('memory.told')}</dt>
        <dd>
          {error && <span class="error-text">{error}</span>}
          {uses && uses.told.length === 0 && <span class="muted">{t('memory.never_told')}</span>}
          {uses && uses.told.length > 0 && (
            <ul class="told">
              {uses.told.slice(0, 10).map((one) => (
                <li key={one.turn}>
                  <a href={link(['s', one.session, 'chat'])}>{clock(one.at_ms)}</a> “{cut(firstLine(plain(one.said)), 80)}” <span class="muted small">{why(one.fact.why)}</span>
                  {one.fact.at_ms !== fact.at_ms && <span class="tag">{t('memory.earlier_value')}</span>}
                </li>
              ))}
            </ul>
          )}
          {uses && uses.told.length + uses.left_out > 10 && <span class="muted small">{t('memory.more_turns', { count: uses.told.length + uses.left_out - 10 })}</span>}
        </dd>
      </dl>
      {mayDecide.value && (
        <div class="row end">
          <Button small icon="edit" onClick={() => setOpen('edit')}>
            {t('memory.edit')}
          </Button>
          <Button small look="danger" onClick={() => setOpen('forget')}>
            {t('memory.forget')}
          </Button>
        </div>
      )}
      {open === 'edit' && <FactForm board={board} fact={fact} onClose={close} onDone={done} />}
      {open === 'forget' && <ForgetDialog board={board} fact={fact} uses={uses} onClose={close} onDone={done} />}
    </>
  );
}
