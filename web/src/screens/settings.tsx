// Choices for this browser, and every setting of the server with its source.
import { useMemo, useState } from 'preact/hooks';
import { chooseLanguage, language, t } from '../lib/i18n';
import { askForNotifications, notifications } from '../lib/notify';
import { explain, logout, me } from '../lib/store';
import { chooseTheme, theme } from '../lib/theme';
import type { Setting } from '../lib/types';
import { Button, Loading, Segmented, toast } from '../ui/basics';
import { Icon } from '../ui/icons';
import { PermissionTest } from '../ui/permission-test';
import { useFetch } from '../ui/use-fetch';

export function SettingsScreen() {
  const who = me.value!;
  return (
    <div class="page narrow">
      <header class="page-head">
        <h1 class="grow">{t('nav.settings')}</h1>
      </header>
      <section class="card settings-card" aria-labelledby="here">
        <h2 id="here">{t('settings.browser')}</h2>
        <div class="setting">
          <span class="grow">{t('settings.language')}</span>
          <Segmented
            label={t('settings.language')}
            value={language.value}
            options={[
              ['en', 'English'],
              ['zh', '中文'],
            ]}
            onChange={chooseLanguage}
          />
        </div>
        <div class="setting">
          <span class="grow">{t('theme.label')}</span>
          <Segmented
            label={t('theme.label')}
            value={theme.value}
            options={[
              ['auto', t('theme.auto')],
              ['light', t('theme.light')],
              ['dark', t('theme.dark')],
            ]}
            onChange={chooseTheme}
          />
        </div>
        <div class="setting">
          <span class="grow">
            {t('settings.notifications')}
            <span class="muted small block">{t('settings.notifications_about')}</span>
          </span>
          {notifications.value === 'default' ? (
            <Button small icon="bell" onClick={() => void askForNotifications()}>
              {t('notify.ask')}
            </Button>
          ) : (
            <span class="small muted">{t(notifications.value === 'granted' ? 'settings.on' : notifications.value === 'denied' ? 'settings.blocked' : 'settings.unsupported')}</span>
          )}
        </div>
        <div class="setting">
          <span class="grow">
            {t('settings.signed_in', { user: who.user })}
            <span class="muted small block">
              {t(`role.${who.role}`)} · {who.folder} · {who.version}
            </span>
          </span>
          <Button small onClick={() => logout().catch((error) => toast(explain(error), 'error'))}>
            {t('settings.logout')}
          </Button>
        </div>
      </section>
      <PermissionTest />
      <Values />
    </div>
  );
}

function Values() {
  const { data, error } = useFetch<{ settings: Setting[]; files: string[] }>('/settings');
  const [words, setWords] = useState('');
  const [changed, setChanged] = useState(false);
  const found = useMemo(() => {
    const low = words.toLowerCase();
    return (data?.settings ?? []).filter((one) => (!changed || one.source) && (!low || `${one.key} ${one.value} ${one.about}`.toLowerCase().includes(low)));
  }, [data, words, changed]);
  if (error) return <p class="error-text">{error}</p>;
  if (!data) return <Loading />;
  return (
    <section aria-labelledby="values">
      <h2 id="values">{t('settings.server')}</h2>
      {data.settings.length === 0 && <p class="muted">{t('settings.none')}</p>}
      {data.settings.length > 0 && (
        <>
          <p class="muted small">
            {t('settings.files')} {data.files.length > 0 ? data.files.map((file) => <code key={file}>{file}</code>) : '–'}
          </p>
          <div class="row wrap">
            <label class="search grow">
              <Icon name="search" size={16} />
              <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} placeholder={t('settings.search')} aria-label={t('settings.search')} />
            </label>
            <label class="check">
              <input type="checkbox" checked={changed} onChange={() => setChanged(!changed)} /> {t('settings.only_changed')}
            </label>
          </div>
          <ul class="rows card flush settings-list">
            {found.map((one) => (
              <li key={one.key} class="setting-row">
                <div class="row wrap">
                  <code class="grow">{one.key}</code>
                  <span class={one.source ? 'value changed' : 'value'}>{one.value}</span>
                  <span class="tag">{one.source ?? t('settings.default')}</span>
                </div>
                {one.about && <p class="muted small">{one.about}</p>}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
