import { signal } from '@preact/signals';
import { read, write } from './i18n';

export type Theme = 'auto' | 'light' | 'dark';
const stored = read('max-team.theme');
export const theme = signal<Theme>(stored === 'light' || stored === 'dark' ? stored : 'auto');

export function chooseTheme(next: Theme) {
  theme.value = next;
  write('max-team.theme', next);
  showTheme();
}

export function showTheme() {
  if (theme.value === 'auto') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.dataset.theme = theme.value;
}
