import { useState } from 'preact/hooks';
import { LanguageButton, ThemeButton } from '../app';
import { t } from '../lib/i18n';
import { explain, login } from '../lib/store';
import { Button } from '../ui/basics';
import { Logo } from '../ui/icons';

export function LoginScreen() {
  const [token, setToken] = useState('');
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const text = token.trim();
    if (!text) return;
    setBusy(true);
    try {
      // The whole link may be pasted, too.
      const code = /\/login#(\S+)$/.exec(text)?.[1];
      await login(code ? { code } : { token: text });
      setToken('');
    } catch (failure) {
      setError(explain(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="center-page login">
      <div class="card login-card">
        <Logo size={48} />
        <h1>{t('login.title')}</h1>
        <p class="muted">{t('login.how')}</p>
        <pre class="command">max-team serve</pre>
        <form onSubmit={submit}>
          <label for="token">{t('login.token')}</label>
          <input id="token" type="password" autocomplete="off" spellcheck={false} value={token} onInput={(event) => setToken(event.currentTarget.value)} placeholder="mt_…" />
          {error && (
            <p class="error-text" role="alert">
              {error}
            </p>
          )}
          <Button look="primary" type="submit" disabled={busy || !token.trim()}>
            {t('login.enter')}
          </Button>
        </form>
      </div>
      <div class="row">
        <LanguageButton />
        <ThemeButton />
      </div>
    </main>
  );
}
