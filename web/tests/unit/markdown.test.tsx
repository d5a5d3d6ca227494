// Text of agents never becomes markup, whatever it holds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { render } from 'preact-render-to-string';
import { parse, safeLink } from '../../src/lib/markdown';
import { parsePlain, plain } from '../../src/lib/text';
import { Markdown } from '../../src/ui/markdown';
import { cpuMs } from './cpu';

const html = (text: string) => render(<Markdown text={text} />);

test('common Markdown is understood', () => {
  const table: [string, RegExp][] = [
    ['**b** *i* ~~d~~ `c`', /<strong>b<\/strong> <em>i<\/em> <del>d<\/del> <code>c<\/code>/],
    ['# Title', /<h3>Title<\/h3>/],
    ['- a\n- b\n  - c', /<ul><li>a<\/li><li>b<ul><li>c<\/li><\/ul><\/li><\/ul>/],
    ['3. a\n4. b', /<ol start="3"><li>a<\/li><li>b<\/li><\/ol>/],
    ['> q', /<blockquote><p>q<\/p><\/blockquote>/],
    ['| a | b |\n|---|--:|\n| 1 | 2 |', /<th class="to-left">a<\/th>.*<td class="to-right">2<\/td>/],
    ['[x](https://example.com/a?b=1)', /<a href="https:\/\/example.com\/a\?b=1" target="_blank" rel="noopener noreferrer nofollow">x<\/a>/],
    ['see https://example.com/x.', /<a href="https:\/\/example.com\/x"[^>]*>https:\/\/example.com\/x<\/a>\./],
    ['```rust\nfn main() {}\n```', /<span class="hl-keyword">fn<\/span>/],
    ['snake_case_name', /<p>snake_case_name<\/p>/],
    ['2 * 3 * 4', /<p>2 \* 3 \* 4<\/p>/],
    ['中文**粗体**。', /中文<strong>粗体<\/strong>。/],
    ['- [x] done', /<input type="checkbox" checked/],
  ];
  for (const [text, want] of table) assert.match(html(text), want, text);
});

test('an unfinished answer is shown as far as it goes', () => {
  assert.match(html('```sh\nls -l'), /ls -l/);
  assert.match(html('**bold'), /\*\*bold/);
  assert.match(html('| a | b |\n|---'), /<th class="to-left">a<\/th>/);
  assert.match(html('[x](https://exa'), /\[x\]\(/);
});

const HOSTILE = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg onload=alert(1)><a xlink:href="javascript:alert(1)">x</a></svg>',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1))',
  '[x](java\tscript:alert(1))',
  '[x]( javascript:alert(1))',
  '[x](&#106;avascript:alert(1))',
  '[x](data:text/html,<script>alert(1)</script>)',
  '[x](vbscript:msgbox(1))',
  '[x](//evil.example)',
  '[x](https:\\\\evil)',
  '![x](javascript:alert(1))',
  '<javascript:alert(1)>',
  '<https://a.example" onmouseover="alert(1)>',
  '[x](https://a.example" onmouseover="alert(1))',
  '`<b>`<style>body{display:none}</style>',
  '# <iframe src=https://evil.example></iframe>',
  '| <script> | b |\n|---|---|\n| <img src=x onerror=alert(1)> | 2 |',
  '```"><script>alert(1)</script>\nx\n```',
  '[a<b>](https://x.example)[[[[',
  '\u001b]8;;javascript:alert(1)\u0007click\u001b]8;;\u0007',
];

test('hostile text stays text', () => {
  for (const text of HOSTILE) {
    const out = html(text).replace(/<svg class="icon".*?<\/svg>/g, '');
    assert.doesNotMatch(out, /<(script|img|svg|iframe|style|object|embed|form|meta|base)\b/i, text);
    assert.doesNotMatch(out, /<[^>]*\son\w+=/i, text);
    for (const [, href] of out.matchAll(/href="([^"]*)"/g)) assert.match(href!, /^(https?:\/\/|mailto:)/, text);
    assert.doesNotMatch(out, /style="/, text);
  }
});

test('links lead to web and mail addresses only', () => {
  assert.equal(safeLink('https://a.example/x'), 'https://a.example/x');
  assert.equal(safeLink('mailto:ada@example.com'), 'mailto:ada@example.com');
  for (const bad of ['javascript:1', 'file:///etc/passwd', '/etc', '#x', 'https:', 'https:///x', 'blob:x', 'ftp://x', 'http:/\\x']) assert.equal(safeLink(bad), null, bad);
});

test('escapes, control characters and reordering marks are removed', () => {
  assert.equal(plain('\u001b[31mred\u001b[0m'), 'red');
  assert.equal(plain('\u001b]0;title\u0007text'), 'text');
  assert.equal(plain('\u001b]0;never ends'), '');
  assert.equal(plain('a\u202Eb\u2066c\u200Fd'), 'abcd');
  assert.equal(plain('a\u0000b\u0008c\u007fd\u009b31me'), 'abcde');
  assert.equal(plain('10%\r20%\r30%'), '30%');
  assert.equal(plain('one\r\ntwo\tx'), 'one\ntwo\tx');
});

test('strings of the server are made plain, and what is plain already stays', () => {
  const value = { goal: 'a\u001b[2Jb\u202Ec', list: ['ok\n', 'x\u009b31my'] };
  assert.deepEqual(parsePlain(JSON.stringify(value)), { goal: 'abc', list: ['ok\n', 'xy'] });
  assert.deepEqual(parsePlain('{"a":"\u0041\\nb"}'), { a: 'A\nb' });
});

test('no text takes long', () => {
  const inputs = ['['.repeat(50_000), '*'.repeat(50_000), '`'.repeat(50_000), '> '.repeat(20_000), '- '.repeat(20_000), `${'a*'.repeat(20_000)}b`, '[x]('.repeat(10_000), `|${'a|'.repeat(5_000)}\n|${'-|'.repeat(5_000)}`, '_a'.repeat(20_000), '\u001b]'.repeat(20_000), '~~a'.repeat(10_000), '**a*'.repeat(10_000), 'https://'.repeat(5_000), '#'.repeat(50_000), '1. '.repeat(20_000)];
  for (const text of inputs) {
    const took = cpuMs(() => parse(text));
    assert.ok(took < 400, `${text.slice(0, 12)}… took ${Math.round(took)} ms`);
  }
});
