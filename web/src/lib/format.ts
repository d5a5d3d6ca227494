// Money, time and numbers for people.
import { locale, t, word } from './i18n';

/** A person and the place they answered from, as the server names them: `ada at web`. */
export function author(by: string): string {
  const match = /^(.+) at (\w+)$/.exec(by);
  return match ? t('by.person', { who: match[1]!, door: word('door', match[2]!) }) : by;
}

export function money(nano: number): string {
  return dollars(nano / 1e9);
}

export function dollars(usd: number): string {
  if (usd === 0) return '$0';
  if (usd < 0.0001) return '<$0.0001';
  if (usd < 0.01) return `$${usd.toFixed(4)}`;
  if (usd < 1) return `$${usd.toFixed(3)}`;
  return `$${usd.toFixed(2)}`;
}

export function tokens(count: number): string {
  if (count < 1000) return String(count);
  if (count < 100_000) return `${(count / 1000).toFixed(1)}k`;
  if (count < 1_000_000) return `${Math.round(count / 1000)}k`;
  return `${(count / 1e6).toFixed(2)}M`;
}

export function duration(ms: number): string {
  if (ms < 1000) return t('time.ms', { ms: Math.max(0, Math.round(ms)) });
  const seconds = ms / 1000;
  if (seconds < 10) return t('time.s', { s: seconds.toFixed(1) });
  if (seconds < 60) return t('time.s', { s: Math.round(seconds) });
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return t('time.min', { min: minutes, s: Math.floor(seconds % 60) });
  return t('time.h', { h: Math.floor(minutes / 60), min: minutes % 60 });
}

export function ago(at: number, now = Date.now()): string {
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 60) return t('time.just_now');
  if (seconds < 3600) return t('time.minutes_ago', { count: Math.floor(seconds / 60) });
  if (seconds < 86_400) return t('time.hours_ago', { count: Math.floor(seconds / 3600) });
  return t('time.days_ago', { count: Math.floor(seconds / 86_400) });
}

export function clock(at: number): string {
  return new Date(at).toLocaleTimeString(locale.value, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
}

export function day(at: number): string {
  return new Date(at).toLocaleDateString(locale.value, { month: 'short', day: 'numeric' });
}

export function dateTime(at: number): string {
  return new Date(at).toLocaleString(locale.value, { dateStyle: 'medium', timeStyle: 'medium' });
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KB`;
  return `${(count / 1024 / 1024).toFixed(1)} MB`;
}
