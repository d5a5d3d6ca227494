import { effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ago, author } from './lib/format';
import { chooseLanguage, language, locale, t } from './lib/i18n';
import { link, place } from './lib/router';
import { answeredElsewhere, connection, inbox, me, now, reconnectNow, sessions } from './lib/store';
import { cut, plain } from './lib/text';
import { chooseTheme, theme } from './lib/theme';
import type { SessionRow } from './lib/types';
import { AuditScreen } from './screens/audit';
import { CostScreen } from './screens/cost';
import { InboxScreen } from './screens/inbox';
import { LoginScreen } from './screens/login';
import { MemoryScreen } from './screens/memory';
import { NewChatScreen } from './screens/new-chat';
import { NowScreen } from './screens/now';
import { SessionScreen } from './screens/session';
import { SettingsScreen } from './screens/settings';
import { Dot, Loading, toast, Toasts } from './ui/basics';
import { Icon, Logo, type IconName } from './ui/icons';

const drawer = signal(false);

effect(() => {
  if (typeof document === 'undefined') return;
  document.documentElement.lang = locale.value;
  const waiting = inbox.value.length;
  document.title = waiting > 0 ? `(${waiting}) Max Team` : 'Max Team';
});

export function App() {
  if (connection.value === 'login') return <LoginScreen />;
  if (!me.value || !now.value) {
    return (
      <main class="center-page">
        <Logo size={44} />
        {connection.value === 'offline' ? <p>{t('offline.no_server')}</p> : <Loading />}
      </main>
    );
  }
  return <Shell />;
}

function Shell() {
  const current = place.value.path[0] ?? 'now';
  useElsewhere();
  useEffect(() => {
    drawer.value = false;
  }, [place.value]);
  return (
    <div class={drawer.value ? 'shell drawer-open' : 'shell'}>
      <a class="skip" href="#main" onClick={skip}>
        {t('nav.skip')}
      </a>
      <Sidebar current={current} />
      <div class="scrim" onClick={() => (drawer.value = false)} />
      <div class="main-column">
        <Banners />
        <main id="main" tabIndex={-1}>
          <Screen />
        </main>
      </div>
      <BottomBar current={current} />
      <Toasts />
    </div>
  );
}

/** Tells when a question was answered on another surface. */
function useElsewhere() {
  const last = answeredElsewhere.value;
  useEffect(() => {
    if (!last) return;
    toast(t('ask.answered_elsewhere', { by: author(last.by), words: cut(plain(last.words), 60) }));
    answeredElsewhere.value = null;
  }, [last]);
}

function skip(event: Event) {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function Screen() {
  const { path } = place.value;
  switch (path[0] ?? 'now') {
    case 's':
      return <SessionScreen key={path[1]} id={path[1] ?? ''} tab={path[2] ?? 'chat'} rest={path.slice(3)} />;
    case 'new':
      return <NewChatScreen />;
    case 'inbox':
      return <InboxScreen />;
    case 'cost':
      return <CostScreen />;
    case 'memory':
      return <MemoryScreen />;
    case 'audit':
      return <AuditScreen />;
    case 'settings':
      return <SettingsScreen />;
    default:
      return <NowScreen />;
  }
}

function Banners() {
  return (
    <>
      {connection.value === 'offline' && (
        <div class="banner wait" role="alert">
          <Icon name="warn" size={17} />
          <span class="grow">{t('offline.banner')}</span>
          <button type="button" class="btn small" onClick={reconnectNow}>
            {t('do.retry')}
          </button>
        </div>
      )}
      {me.value?.demo && (
        <div class="banner demo">
          <Icon name="play" size={15} />
          <span class="grow">{t('demo.banner')}</span>
        </div>
      )}
    </>
  );
}

const GLOBAL: [string, IconName, 'nav.cost' | 'nav.memory' | 'nav.audit' | 'nav.settings'][] = [
  ['cost', 'cost', 'nav.cost'],
  ['memory', 'memory', 'nav.memory'],
  ['audit', 'audit', 'nav.audit'],
  ['settings', 'settings', 'nav.settings'],
];

function Sidebar({ current }: { current: string }) {
  const here = place.value.path[1];
  const waiting = inbox.value.length;
  return (
    <div class="sidebar">
      <a class="brand" href={link(['now'])}>
        <Logo />
        <span>Max Team</span>
      </a>
      <a class="btn primary new-chat" href={link(['new'])}>
        <Icon name="plus" size={17} />
        {t('nav.new_chat')}
      </a>
      <nav aria-label={t('nav.main')}>
        <NavLink id="now" icon="now" label={t('nav.now')} current={current} />
        <NavLink id="inbox" icon="inbox" label={t('nav.inbox')} current={current} count={waiting} />
      </nav>
      <nav class="session-nav" aria-label={t('nav.sessions')}>
        <h2>{t('nav.sessions')}</h2>
        {sessions.value.length === 0 && <p class="muted small pad">{t('nav.no_sessions')}</p>}
        <ul>
          {sessions.value.slice(0, 40).map((row) => (
            <li key={row.session}>
              <a href={link(['s', row.session, 'chat'])} class="session-link" aria-current={row.session === here ? 'page' : undefined}>
                <SessionDot row={row} />
                <span class="session-text">
                  <span class="ellipsis">{row.preview || t('session.empty')}</span>
                  <span class="muted tiny-text">
                    {ago(row.last_at_ms)}
                    {row.open === 'elsewhere' && ` · ${t('session.elsewhere')}`}
                  </span>
                </span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <nav aria-label={t('nav.more')}>
        {GLOBAL.map(([id, icon, key]) => (
          <NavLink key={id} id={id} icon={icon} label={t(key)} current={current} />
        ))}
      </nav>
      <div class="side-foot">
        <span class="muted small grow ellipsis" title={me.value?.folder}>
          {me.value?.user} · {folderName(me.value?.folder ?? '')}
        </span>
        <LanguageButton />
        <ThemeButton />
      </div>
    </div>
  );
}

export function folderName(path: string): string {
  return path.split('/').filter(Boolean).at(-1) ?? path;
}

/** Whether an agent of the session works, or a question of it waits. */
export function sessionState(row: SessionRow): 'wait' | 'run' | 'idle' {
  if (inbox.value.some((pending) => pending.session === row.session)) return 'wait';
  if ((now.value?.people ?? []).some((person) => person.session === row.session && person.state === 'busy')) return 'run';
  return 'idle';
}

function SessionDot({ row }: { row: SessionRow }) {
  const state = sessionState(row);
  return (
    <>
      <Dot tone={state} />
      <span class="sr-only">{t(state === 'wait' ? 'state.waits_for_you' : state === 'run' ? 'state.busy' : 'state.idle')}: </span>
    </>
  );
}

function NavLink({ id, icon, label, current, count }: { id: string; icon: IconName; label: string; current: string; count?: number }) {
  return (
    <a class="nav-link" href={link([id])} aria-current={id === current ? 'page' : undefined}>
      <Icon name={icon} />
      <span class="grow">{label}</span>
      {!!count && (
        <span class="count" aria-label={t('inbox.count', { count })}>
          {count}
        </span>
      )}
    </a>
  );
}

export function LanguageButton() {
  const other = language.value === 'en' ? 'zh' : 'en';
  return (
    <button type="button" class="ghost icon-btn lang" lang={other === 'zh' ? 'zh-CN' : 'en'} onClick={() => chooseLanguage(other)} title={other === 'zh' ? '切换到中文' : 'Switch to English'} aria-label={other === 'zh' ? '切换到中文' : 'Switch to English'}>
      {other === 'zh' ? '中' : 'EN'}
    </button>
  );
}

export function ThemeButton() {
  const next = theme.value === 'auto' ? 'light' : theme.value === 'light' ? 'dark' : 'auto';
  const icon = theme.value === 'auto' ? 'auto' : theme.value === 'light' ? 'sun' : 'moon';
  const label = t(theme.value === 'auto' ? 'theme.auto' : theme.value === 'light' ? 'theme.light' : 'theme.dark');
  return (
    <button type="button" class="ghost icon-btn" onClick={() => chooseTheme(next)} title={label} aria-label={`${t('theme.label')}: ${label}`}>
      <Icon name={icon} />
    </button>
  );
}

/** The bar at the bottom of a phone. */
function BottomBar({ current }: { current: string }) {
  const last = sessions.value[0]?.session;
  const here = place.value.path;
  const chat = current === 's' ? link(['s', here[1]!, 'chat']) : last ? link(['s', last, 'chat']) : link(['new']);
  const isChat = current === 's' && (here[2] ?? 'chat') === 'chat';
  return (
    <nav class="bottom-bar" aria-label={t('nav.main')}>
      <a href={link(['now'])} aria-current={current === 'now' ? 'page' : undefined}>
        <Icon name="now" size={21} />
        {t('nav.now')}
      </a>
      <a href={chat} aria-current={isChat ? 'page' : undefined}>
        <Icon name="chat" size={21} />
        {t('tab.chat')}
      </a>
      <a href={link(['inbox'])} aria-current={current === 'inbox' ? 'page' : undefined}>
        <Icon name="inbox" size={21} />
        {t('nav.inbox')}
        {inbox.value.length > 0 && <span class="count">{inbox.value.length}</span>}
      </a>
      <button type="button" aria-expanded={drawer.value} onClick={() => (drawer.value = !drawer.value)}>
        <Icon name="menu" size={21} />
        {t('nav.more')}
      </button>
    </nav>
  );
}
