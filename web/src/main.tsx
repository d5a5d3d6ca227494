import { render } from 'preact';
import { App } from './app';
import { startRouter } from './lib/router';
import { login, start } from './lib/store';
import { showTheme } from './lib/theme';
import './style.css';

showTheme();

/** The link of the server ends in `/login#CODE`: the code is used once and leaves the address at once. */
function takeCode(): string | null {
  if (location.pathname !== '/login') return null;
  const code = location.hash.replace(/^#/, '');
  history.replaceState(null, '', '/');
  return code || null;
}

const code = takeCode();
startRouter();
render(<App />, document.getElementById('app')!);

if (code) {
  login({ code }).catch(() => {
    // An old link: a cookie of an earlier visit may still do.
    void start();
  });
} else {
  void start();
}

