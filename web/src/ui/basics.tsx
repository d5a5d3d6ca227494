// Parts that every screen uses.
import { signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { duration } from '../lib/format';
import { t, word } from '../lib/i18n';
import { Icon, type IconName } from './icons';

/** Colours that stand for agents; the same name has the same colour everywhere. */
const HUES = 10;

export function hueOf(name: string): number {
  let sum = 7;
  for (const char of name) sum = (sum * 31 + (char.codePointAt(0) ?? 0)) % 9973;
  return sum % HUES;
}

export function Avatar({ name, size = 'm', busy = false }: { name: string; size?: 's' | 'm' | 'l'; busy?: boolean }) {
  const first = [...(name || '?')][0]!.toUpperCase();
  return (
    <span class={`avatar avatar-${size} hue-${hueOf(name)}${busy ? ' is-busy' : ''}`} aria-hidden="true">
      {first}
    </span>
  );
}

export type Tone = 'run' | 'wait' | 'done' | 'fail' | 'idle' | 'off';

export function toneOf(state: string): Tone {
  switch (state) {
    case 'running':
    case 'busy':
    case 'dispatched':
    case 'starting':
    case 'checking':
    case 'answered':
    case 'stopping':
      return 'run';
    case 'waiting':
    case 'asking':
    case 'proposed':
    case 'held':
    case 'paused':
    case 'deferred':
    case 'edited':
      return 'wait';
    case 'done':
    case 'corrected':
    case 'verified':
    case 'ran':
      return 'done';
    case 'failed':
    case 'partial':
    case 'error':
    case 'refused':
      return 'fail';
    case 'skipped':
    case 'cancelled':
    case 'stopped':
    case 'rejected':
    case 'replaced':
      return 'off';
    default:
      return 'idle';
  }
}

export function Dot({ tone }: { tone: Tone }) {
  return <span class={`dot tone-${tone}`} aria-hidden="true" />;
}

export function Badge({ state, kind, text }: { state: string; kind?: string; text?: string }) {
  return (
    <span class={`badge tone-${toneOf(state)}`}>
      <Dot tone={toneOf(state)} />
      {text ?? word(kind ?? 'state', state)}
    </span>
  );
}

export function Button(props: JSX.IntrinsicElements['button'] & { icon?: IconName; look?: 'primary' | 'danger' | 'ghost' | 'plain'; small?: boolean }) {
  const { icon, look = 'plain', small, children, class: extra, ...rest } = props;
  return (
    <button type="button" class={`btn ${look}${small ? ' small' : ''}${extra ? ` ${String(extra)}` : ''}`} {...rest}>
      {icon && <Icon name={icon} size={small ? 15 : 17} />}
      {children}
    </button>
  );
}

/** A modal dialog: the browser's own, which keeps the focus inside and closes with Escape. */
export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  const before = useRef(document.activeElement as HTMLElement | null);
  useLayoutEffect(() => {
    const dialog = ref.current!;
    if (!dialog.open) dialog.showModal();
    return () => {
      dialog.close();
      before.current?.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          <button type="button" class="ghost icon-btn" onClick={onClose} aria-label={t('do.close')}>
            <Icon name="cross" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

export interface TabItem {
  id: string;
  label: string;
  href: string;
  icon?: IconName;
  count?: number;
}

/** Tabs that are places: links, so that each has an address. */
export function LinkTabs({ items, current, label }: { items: TabItem[]; current: string; label: string }) {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    ref.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={ref}>
      {items.map((item) => (
        <a key={item.id} href={item.href} class="tab" aria-current={item.id === current ? 'page' : undefined}>
          {item.icon && <Icon name={item.icon} size={16} />}
          {item.label}
          {!!item.count && <span class="count">{item.count}</span>}
        </a>
      ))}
    </nav>
  );
}

/** A choice among a few values. */
export function Segmented<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: [T, string][]; onChange: (value: T) => void }) {
  const name = useId();
  return (
    <fieldset class="segmented">
      <legend class="sr-only">{label}</legend>
      {options.map(([id, text]) => (
        <label key={id} class={id === value ? 'on' : ''}>
          <input type="radio" name={name} checked={id === value} onChange={() => onChange(id)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface Toast {
  id: number;
  text: string;
  tone: 'info' | 'error';
}

const toasts = signal<Toast[]>([]);
let lastToast = 0;

export function toast(text: string, tone: Toast['tone'] = 'info') {
  const id = ++lastToast;
  toasts.value = [...toasts.value.slice(-3), { id, text, tone }];
  setTimeout(() => dropToast(id), tone === 'error' ? 9000 : 4500);
}

function dropToast(id: number) {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((one) => (
        <div key={one.id} class={`toast ${one.tone}`}>
          <Icon name={one.tone === 'error' ? 'warn' : 'info'} size={17} />
          <span class="grow">{one.text}</span>
          <button type="button" class="ghost icon-btn" aria-label={t('do.close')} onClick={() => dropToast(one.id)}>
            <Icon name="cross" size={15} />
          </button>
        </div>
      ))}
    </div>
  );
}

export interface MenuItem {
  label: string;
  icon?: IconName;
  danger?: boolean;
  onPick: () => void;
}

export function Menu({ label, icon = 'menu', items }: { label: string; icon?: IconName; items: MenuItem[] }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    const close = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener('pointerdown', close);
    return () => removeEventListener('pointerdown', close);
  }, [open]);
  const onKeyDown = (event: KeyboardEvent) => {
    const all = [...(root.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (event.key === 'Escape') {
      setOpen(false);
      root.current?.querySelector<HTMLElement>('button')?.focus();
    } else if (event.key === 'ArrowDown') {
      all[(at + 1) % all.length]?.focus();
    } else if (event.key === 'ArrowUp') {
      all[(at - 1 + all.length) % all.length]?.focus();
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <div class="menu" ref={root} onKeyDown={open ? onKeyDown : undefined}>
      <button type="button" class="ghost icon-btn" aria-haspopup="menu" aria-expanded={open} aria-label={label} title={label} onClick={() => setOpen(!open)}>
        <Icon name={icon} />
      </button>
      {open && (
        <div class="menu-list" role="menu" aria-label={label}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              class={item.danger ? 'danger' : ''}
              onClick={() => {
                setOpen(false);
                item.onPick();
              }}
            >
              {item.icon && <Icon name={item.icon} size={16} />}
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** Something that opens to show more. */
export function Fold({ head, children, open: first = false, class: extra = '' }: { head: ComponentChildren; children: () => ComponentChildren; open?: boolean; class?: string }) {
  const [open, setOpen] = useState(first);
  const id = useId();
  return (
    <div class={`fold ${extra}${open ? ' open' : ''}`}>
      <button type="button" class="fold-head" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        <span class="fold-mark">
          <Icon name="chevron" size={14} />
        </span>
        {head}
      </button>
      <div id={id} class="fold-body" hidden={!open}>
        {open && children()}
      </div>
    </div>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} size={26} />
      </span>
      <p class="empty-title">{title}</p>
      {children && <div class="empty-more">{children}</div>}
    </div>
  );
}

export function Loading() {
  return (
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      <span class="sr-only">{t('state.loading')}</span>
    </div>
  );
}

/** The time since something began; it counts on while there is no end. */
export function Elapsed({ from, to }: { from: number; to?: number | null }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (to) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [to]);
  return <span class="num">{duration(Math.max(0, (to ?? Math.max(now, from)) - from))}</span>;
}

export function Bar({ part, tone = 'run' }: { part: number; tone?: Tone }) {
  const width = `${Math.max(0, Math.min(100, part * 100))}%`;
  return (
    <span class="bar" aria-hidden="true">
      <span class={`bar-fill tone-${tone}`} style={{ width }} />
    </span>
  );
}
