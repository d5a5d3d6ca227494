// Both languages have the same words, and every word that a screen asks for is there.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import en from '../../src/i18n/en.json' with { type: 'json' };
import zh from '../../src/i18n/zh.json' with { type: 'json' };
import { fill } from '../../src/lib/i18n';

const root = fileURLToPath(new URL('../../src', import.meta.url));

function sources(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    return entry.isDirectory() ? sources(path) : /\.tsx?$/.test(entry.name) ? [readFileSync(path, 'utf8')] : [];
  });
}

test('English and Chinese have the same keys, in the same order', () => {
  assert.deepEqual(Object.keys(zh), Object.keys(en));
});

test('both texts of a key use the same values', () => {
  const values = (text: string) => [...new Set([...text.matchAll(/\{(\w+)/g)].map((match) => match[1]))].sort();
  for (const [key, text] of Object.entries(en)) assert.deepEqual(values((zh as Record<string, string>)[key]!), values(text), key);
});

test('no text is empty, and no Chinese text is left in English', () => {
  const same = new Set(['trace.tokens', 'cost.tokens', 'by.person']);
  for (const [key, text] of Object.entries(zh)) {
    assert.notEqual(text.trim(), '', key);
    assert.ok(same.has(key) || /[\u3000-\u303f\u4e00-\u9fff]/.test(text), `${key}: ${text}`);
  }
});

test('every key is used, and every used key exists', () => {
  const all = sources(root).join('\n');
  const keys = new Set(Object.keys(en));
  const used = [...all.matchAll(/\bt\(\s*'([a-z_0-9.]+)'/g)].map((match) => match[1]!);
  for (const key of used) assert.ok(keys.has(key), `t('${key}')`);
  const prefixes = new Set([...all.matchAll(/word\(\s*'([a-z_]+)'|kind="([a-z_]+)"|t\(`([a-z_]+)\./g)].map((match) => match[1] ?? match[2] ?? match[3]!));
  for (const word of ['state', 'plan', 'task', 'cost', 'timeline', 'list']) prefixes.add(word);
  for (const key of keys) assert.ok(all.includes(`'${key}'`) || prefixes.has(key.split('.')[0]!), `${key} is not used`);
});

test('values and plurals are filled in', () => {
  assert.equal(fill('{count} {count?task|tasks}', { count: 1 }), '1 task');
  assert.equal(fill('{count} {count?task|tasks}', { count: 3 }), '3 tasks');
  assert.equal(fill('{who} asks', {}), '{who} asks');
});
