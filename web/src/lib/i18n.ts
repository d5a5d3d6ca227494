// The words of the interface: two files with the same keys.
import { computed, signal } from '@preact/signals';
import en from '../i18n/en.json';
import zh from '../i18n/zh.json';

export type Language = 'en' | 'zh';
export type Key = keyof typeof en;

const TABLES: Record<Language, Record<string, string>> = { en, zh };
const STORED = 'max-team.language';

function initial(): Language {
  const stored = read(STORED);
  if (stored === 'en' || stored === 'zh') return stored;
  const wanted = typeof navigator === 'undefined' ? 'en' : (navigator.language ?? 'en');
  return wanted.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

export function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function write(key: string, value: string) {
  try {
    if (value === '') localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
}

export const language = signal<Language>(initial());
export const locale = computed(() => (language.value === 'zh' ? 'zh-CN' : 'en'));

export function chooseLanguage(next: Language) {
  language.value = next;
  write(STORED, next);
}

/** The words for a key. `{name}` is replaced by a value, `{count?one|many}` by one of two words. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  return fill(TABLES[language.value][key] ?? TABLES.en[key] ?? key, values);
}

/** The words for a key that is made of a prefix and a name from the server; the name itself if there are none. */
export function word(prefix: string, name: string): string {
  return TABLES[language.value][`${prefix}.${name}`] ?? TABLES.en[`${prefix}.${name}`] ?? name.replace(/_/g, ' ');
}

export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)(?:\?([^|{}]*)\|([^{}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one !== undefined) return (value === 1 ? one : many) ?? '';
    return String(value);
  });
}
