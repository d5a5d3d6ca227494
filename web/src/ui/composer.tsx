// The message field: Enter sends, `@` completes files and agents, `/` completes skills and commands.
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { get } from '../lib/api';
import { filesOf, withFiles } from '../lib/attach';
import { read, t, write } from '../lib/i18n';
import { explain } from '../lib/store';
import { AttachButton, AttachmentChips, useAttachments } from './attachments';
import { toast } from './basics';
import { Icon } from './icons';

interface Completion {
  paths: string[];
  skills: { name: string; description: string }[];
  agents: { name: string; role: string; description: string }[];
}

interface Choice {
  insert: string;
  label: string;
  about: string;
}

let known: Promise<Completion> | null = null;
let knownAt = 0;

function completions(): Promise<Completion> {
  // Files come and go: the list is fetched again after a while.
  if (!known || Date.now() - knownAt > 20_000) {
    knownAt = Date.now();
    known = get<Completion>('/complete').catch(() => ({ paths: [], skills: [], agents: [] }));
  }
  return known;
}

const CHOICES_MAX = 8;

/** The word that is being completed, if the cursor is in one. */
export function wordAt(text: string, cursor: number): { mark: '@' | '/'; from: number; word: string } | null {
  const before = text.slice(0, cursor);
  const match = /(^|\s)([@/])([^\s]*)$/.exec(before);
  if (!match) return null;
  const from = before.length - match[3]!.length - 1;
  if (match[2] === '/' && from !== 0) return null;
  return { mark: match[2] as '@' | '/', from, word: match[3]! };
}

export function choose(all: Completion, mark: '@' | '/', word: string, commands: Choice[]): Choice[] {
  const low = word.toLowerCase();
  const rank = (text: string) => {
    const at = text.toLowerCase().indexOf(low);
    return at < 0 ? -1 : at === 0 ? 0 : text.charAt(at - 1) === '/' ? 1 : 2;
  };
  const out: [number, Choice][] = [];
  const offer = (text: string, choice: Choice) => {
    const at = rank(text);
    if (at >= 0) out.push([at, choice]);
  };
  if (mark === '/') {
    for (const command of commands) offer(command.label.slice(1), command);
    for (const skill of all.skills) offer(skill.name, { insert: `/${skill.name} `, label: `/${skill.name}`, about: skill.description });
  } else {
    for (const agent of all.agents) offer(agent.name, { insert: `@${agent.name} `, label: `@${agent.name}`, about: agent.role || agent.description });
    for (const path of all.paths) {
      offer(path, { insert: `@${path} `, label: path, about: '' });
      if (out.length > 400) break;
    }
  }
  out.sort((a, b) => a[0] - b[0] || a[1].label.length - b[1].label.length);
  return out.slice(0, CHOICES_MAX).map(([, choice]) => choice);
}

interface Props {
  session: string | null;
  busy: boolean;
  disabled?: boolean;
  autofocus?: boolean;
  placeholder?: string;
  /** Sends; `wait`: behind the running turn; `session`: where its files are. Returns whether it was sent. */
  onSend: (text: string, wait: boolean, session: string | null) => Promise<boolean>;
  /** Begins the session that files are put into. */
  begin?: () => Promise<string>;
  onStop?: () => void;
  /** Commands of the page, by their name. */
  commands?: { name: string; about: string; run: () => void }[];
}

export function Composer({ session, busy, disabled, autofocus, placeholder, onSend, begin, onStop, commands = [] }: Props) {
  const draftKey = `max-team.draft.${session ?? 'new'}`;
  const [text, setText] = useState(() => read(draftKey) ?? '');
  const [choices, setChoices] = useState<Choice[]>([]);
  const [picked, setPicked] = useState(0);
  const [sending, setSending] = useState(false);
  const attached = useAttachments(!disabled && !sending);
  const area = useRef<HTMLTextAreaElement>(null);
  /** The session that was begun for files of a message that could not be sent. */
  const begun = useRef<string | null>(null);
  const listId = useId();
  const coarse = typeof matchMedia !== 'undefined' && matchMedia('(pointer: coarse)').matches;

  useEffect(() => write(draftKey, text), [draftKey, text]);
  useEffect(() => {
    if (autofocus && !coarse) area.current?.focus();
  }, []);
  useLayoutEffect(() => {
    const field = area.current!;
    field.style.height = 'auto';
    field.style.height = `${Math.min(field.scrollHeight + 2, 220)}px`;
  }, [text]);

  const complete = async (value: string, cursor: number) => {
    const at = wordAt(value, cursor);
    if (!at) {
      setChoices([]);
      return;
    }
    const all = await completions();
    if (area.current?.value !== value) return;
    const own = commands.map((command) => ({ insert: `/${command.name}`, label: `/${command.name}`, about: command.about }));
    setChoices(choose(all, at.mark, at.word, own));
    setPicked(0);
  };

  const insert = (choice: Choice) => {
    const field = area.current!;
    const at = wordAt(text, field.selectionStart);
    if (!at) return;
    const next = text.slice(0, at.from) + choice.insert + text.slice(field.selectionStart);
    setText(next);
    setChoices([]);
    const cursor = at.from + choice.insert.length;
    requestAnimationFrame(() => {
      field.focus();
      field.setSelectionRange(cursor, cursor);
    });
  };

  const send = async (wait: boolean) => {
    const words = text.trim();
    const files = attached.files;
    if ((!words && files.length === 0) || disabled || sending) return;
    const own = commands.find((command) => words === `/${command.name}`);
    setText('');
    setChoices([]);
    if (own) {
      own.run();
      return;
    }
    setSending(true);
    const isSent = files.length === 0 ? await onSend(words, wait, null) : await sendFiles(words, wait);
    setSending(false);
    if (isSent) attached.clear();
    // What was typed meanwhile stays, behind the message that was not sent.
    else setText((typed) => (typed.trim() ? `${words}\n\n${typed}` : words));
  };

  const sendFiles = async (words: string, wait: boolean) => {
    try {
      const place = session ?? (begun.current ??= await begin!());
      return await onSend(await withFiles(words, attached.files, place), wait, place);
    } catch (error) {
      toast(explain(error), 'error');
      return false;
    }
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (choices.length > 0) {
      if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
        event.preventDefault();
        setPicked((picked + (event.key === 'ArrowDown' ? 1 : choices.length - 1)) % choices.length);
        return;
      }
      if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey)) {
        event.preventDefault();
        insert(choices[picked]!);
        return;
      }
      if (event.key === 'Escape') {
        event.preventDefault();
        setChoices([]);
        return;
      }
    }
    if (event.key === 'Enter' && !event.shiftKey && !coarse) {
      event.preventDefault();
      void send(event.altKey);
    } else if (event.key === 'Escape' && busy && onStop) {
      event.preventDefault();
      onStop();
    }
  };

  const hasContent = text.trim() !== '' || attached.files.length > 0;

  return (
    <form
      class={attached.isOver ? 'composer drop' : 'composer'}
      onSubmit={(event) => {
        event.preventDefault();
        void send(false);
      }}
    >
      {choices.length > 0 && (
        <ul class="completions" role="listbox" id={listId} aria-label={t('composer.completions')}>
          {choices.map((choice, at) => (
            <li
              key={choice.label}
              id={`${listId}-${at}`}
              role="option"
              aria-selected={at === picked}
              onPointerDown={(event) => {
                event.preventDefault();
                insert(choice);
              }}
            >
              <span class="mono">{choice.label}</span>
              <span class="muted small ellipsis">{choice.about}</span>
            </li>
          ))}
        </ul>
      )}
      {attached.isOver && <p class="drop-hint">{t('attach.drop')}</p>}
      <AttachmentChips
        files={attached.files}
        disabled={sending}
        onRemove={(one) => {
          attached.remove(one);
          area.current?.focus();
        }}
      />
      <textarea
        ref={area}
        rows={1}
        value={text}
        disabled={disabled}
        placeholder={placeholder ?? t('composer.placeholder')}
        aria-label={t('composer.label')}
        aria-controls={choices.length > 0 ? listId : undefined}
        aria-autocomplete="list"
        aria-activedescendant={choices.length > 0 ? `${listId}-${picked}` : undefined}
        onInput={(event) => {
          setText(event.currentTarget.value);
          void complete(event.currentTarget.value, event.currentTarget.selectionStart);
        }}
        onPaste={(event) => {
          const files = filesOf(event.clipboardData);
          if (files.length === 0 || disabled) return;
          event.preventDefault();
          attached.add(files);
        }}
        onBlur={() => setChoices([])}
        onKeyDown={onKeyDown}
      />
      <div class="composer-foot">
        <AttachButton
          disabled={disabled || sending}
          onPick={(files) => {
            attached.add(files);
            area.current?.focus();
          }}
        />
        <span class="muted tiny-text grow hide-phone">{t(busy ? 'composer.hint_busy' : 'composer.hint')}</span>
        {busy && onStop && (
          <button type="button" class="btn small" onClick={onStop} title={t('do.interrupt')}>
            <Icon name="stop" size={15} />
            {t('do.interrupt')}
          </button>
        )}
        {busy && (
          <button type="button" class="btn small" disabled={!hasContent} onClick={() => void send(true)} title={t('composer.queue_about')}>
            <Icon name="clock" size={15} />
            {t('do.queue')}
          </button>
        )}
        <button type="submit" class="btn primary small" disabled={disabled || sending || !hasContent}>
          <Icon name="send" size={15} />
          {t('do.send')}
        </button>
      </div>
    </form>
  );
}
