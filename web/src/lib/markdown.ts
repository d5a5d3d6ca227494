// A small Markdown parser. It yields a tree of plain data, never HTML: tags in the text stay text.
import { plain } from './text';

export type Inline =
  | { t: 'text'; text: string }
  | { t: 'code'; text: string }
  | { t: 'strong' | 'em' | 'del'; kids: Inline[] }
  | { t: 'link'; href: string; kids: Inline[] }
  | { t: 'br' };

export type Block =
  | { t: 'p'; kids: Inline[] }
  | { t: 'h'; level: number; kids: Inline[] }
  | { t: 'code'; lang: string; text: string }
  | { t: 'quote'; kids: Block[] }
  | { t: 'list'; start: number | null; items: ListItem[] }
  | { t: 'table'; align: string[]; head: Inline[][]; rows: Inline[][][] }
  | { t: 'hr' };

export interface ListItem {
  /** Whether the item is checked, if it has a check box. */
  done: boolean | null;
  kids: Block[];
}

/** Nesting of quotes, lists and emphasis beyond this stays text. */
const DEPTH_MAX = 12;
const LIST = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( {1,4})(.*)|$)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;

/** Only these targets become links. */
export function safeLink(target: string): string | null {
  const href = target.trim().replace(/[\u0000-\u0020]/g, '');
  return /^(https?:\/\/[^/\\]|mailto:[^@]+@)/i.test(href) ? href : null;
}

export function parse(text: string): Block[] {
  return blocks(plain(text).replace(/\t/g, '    ').split('\n'), 0);
}

function blocks(lines: string[], depth: number): Block[] {
  const out: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    if (line.trim() === '') {
      at += 1;
      continue;
    }
    const fence = FENCE.exec(line);
    if (fence) {
      at = code(lines, at, fence, out);
      continue;
    }
    const heading = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/.exec(line);
    if (heading) {
      out.push({ t: 'h', level: heading[1]!.length, kids: inline(heading[2] ?? '', depth) });
      at += 1;
      continue;
    }
    if (/^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(line)) {
      out.push({ t: 'hr' });
      at += 1;
      continue;
    }
    if (/^ {0,3}>/.test(line) && depth < DEPTH_MAX) {
      const inner: string[] = [];
      while (at < lines.length && /^ {0,3}>/.test(lines[at]!)) inner.push(lines[at++]!.replace(/^ {0,3}> ?/, ''));
      out.push({ t: 'quote', kids: blocks(inner, depth + 1) });
      continue;
    }
    if (LIST.test(line) && depth < DEPTH_MAX) {
      at = list(lines, at, depth, out);
      continue;
    }
    if (isTable(lines, at)) {
      at = table(lines, at, depth, out);
      continue;
    }
    at = paragraph(lines, at, depth, out);
  }
  return out;
}

function code(lines: string[], at: number, fence: RegExpExecArray, out: Block[]): number {
  const mark = fence[1]!;
  const body: string[] = [];
  const indent = /^ */.exec(lines[at]!)![0].length;
  at += 1;
  while (at < lines.length) {
    const line = lines[at++]!;
    const end = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line);
    if (end && end[1]!.charAt(0) === mark.charAt(0) && end[1]!.length >= mark.length) break;
    body.push(line.slice(Math.min(indent, /^ */.exec(line)![0].length)));
  }
  const lang = /^[A-Za-z0-9+#.-]{0,20}/.exec(fence[2]!.trim())![0].toLowerCase();
  out.push({ t: 'code', lang, text: body.join('\n') });
  return at;
}

function list(lines: string[], at: number, depth: number, out: Block[]): number {
  const first = LIST.exec(lines[at]!)!;
  const ordered = /\d/.test(first[2]!);
  const items: ListItem[] = [];
  while (at < lines.length) {
    const match = LIST.exec(lines[at]!);
    if (!match || /\d/.test(match[2]!) !== ordered) break;
    const width = match[1]!.length + match[2]!.length + (match[3]?.length ?? 1);
    const body = [match[4] ?? ''];
    at += 1;
    while (at < lines.length) {
      const line = lines[at]!;
      const indent = /^ */.exec(line)![0].length;
      if (line.trim() === '') {
        // A blank line belongs to the item if indented text follows.
        const next = lines[at + 1];
        if (next === undefined || next.trim() === '' || /^ */.exec(next)![0].length < 2) break;
        body.push('');
      } else if (indent >= Math.min(width, 2) && (indent >= width || !LIST.test(line) || indent > match[1]!.length)) {
        body.push(line.slice(Math.min(indent, width)));
      } else if (body.at(-1) === '' || LIST.test(line) || startsBlock(line)) {
        break;
      } else {
        body.push(line.trim());
      }
      at += 1;
    }
    while (at < lines.length && lines[at]!.trim() === '' && LIST.test(lines[at + 1] ?? '')) at += 1;
    const box = /^\[([ xX])\] +/.exec(body[0]!);
    if (box) body[0] = body[0]!.slice(box[0].length);
    items.push({ done: box ? box[1] !== ' ' : null, kids: blocks(body, depth + 1) });
  }
  out.push({ t: 'list', start: ordered ? Number.parseInt(first[2]!, 10) : null, items });
  return at;
}

function isTable(lines: string[], at: number): boolean {
  const next = lines[at + 1];
  return lines[at]!.includes('|') && next !== undefined && next.includes('-') && /^ {0,3}\|?[ :|-]+$/.test(next) && next.includes('|');
}

function table(lines: string[], at: number, depth: number, out: Block[]): number {
  const head = cells(lines[at]!).map((cell) => inline(cell, depth));
  const align = cells(lines[at + 1]!).map((cell) => (cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : 'left'));
  at += 2;
  const rows: Inline[][][] = [];
  while (at < lines.length && lines[at]!.includes('|') && lines[at]!.trim() !== '') {
    const row = cells(lines[at++]!).slice(0, head.length).map((cell) => inline(cell, depth));
    while (row.length < head.length) row.push([]);
    rows.push(row);
  }
  out.push({ t: 'table', align, head, rows });
  return at;
}

function cells(line: string): string[] {
  const body = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return body.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, '|'));
}

function startsBlock(line: string): boolean {
  return FENCE.test(line) || /^ {0,3}(#{1,6}[ \t]|>)/.test(line);
}

function paragraph(lines: string[], at: number, depth: number, out: Block[]): number {
  const body: string[] = [];
  while (at < lines.length) {
    const line = lines[at]!;
    if (line.trim() === '' || (body.length > 0 && (startsBlock(line) || (LIST.test(line) && !/^ *\d/.test(line)) || isTable(lines, at)))) break;
    const under = body.length === 1 ? /^ {0,3}(=+|-+)[ \t]*$/.exec(line) : null;
    if (under) {
      out.push({ t: 'h', level: under[1]!.startsWith('=') ? 1 : 2, kids: inline(body[0]!, depth) });
      return at + 1;
    }
    body.push(line.trimStart());
    at += 1;
  }
  out.push({ t: 'p', kids: inline(body.join('\n'), depth) });
  return at;
}

/** Parses the text of one block. Every character is looked at a bounded number of times. */
export function inline(text: string, depth = 0): Inline[] {
  const out: Inline[] = [];
  let buffer = '';
  let at = 0;
  // Marks that were searched for in vain from some place are not searched for again.
  const hopeless = new Set<string>();
  const flush = () => {
    if (buffer) out.push({ t: 'text', text: buffer });
    buffer = '';
  };
  const push = (node: Inline) => {
    flush();
    out.push(node);
  };
  while (at < text.length) {
    const char = text.charAt(at);
    if (char === '\\' && /[\\`*_{}[\]()#+\-.!~|<>]/.test(text.charAt(at + 1))) {
      buffer += text.charAt(at + 1);
      at += 2;
    } else if (char === '\n') {
      if (/ {2,}$/.test(buffer)) {
        buffer = buffer.trimEnd();
        push({ t: 'br' });
      } else {
        buffer += '\n';
      }
      at += 1;
    } else if (char === '`') {
      const mark = /^`+/.exec(text.slice(at, at + 32))![0];
      const end = hopeless.has(mark) ? -1 : closingTicks(text, at + mark.length, mark.length);
      if (end < 0) {
        hopeless.add(mark);
        buffer += mark;
        at += mark.length;
      } else {
        const inner = text.slice(at + mark.length, end).replace(/\n/g, ' ');
        push({ t: 'code', text: inner.trim() === '' ? inner : inner.replace(/^ (.*) $/, '$1') });
        at = end + mark.length;
      }
    } else if ((char === '*' || char === '_' || char === '~') && depth < DEPTH_MAX) {
      const taken = emphasis(text, at, char, depth, hopeless);
      if (taken) {
        push(taken.node);
        at = taken.end;
      } else {
        buffer += char;
        at += 1;
      }
    } else if ((char === '[' || (char === '!' && text.charAt(at + 1) === '[')) && depth < DEPTH_MAX) {
      const taken = link(text, char === '!' ? at + 1 : at, depth);
      if (taken) {
        push(taken.node);
        at = taken.end;
      } else {
        buffer += char;
        at += 1;
      }
    } else if (char === '<') {
      const auto = /^<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/i.exec(text.slice(at, at + 2012));
      const href = auto ? safeLink(auto[1]!) : null;
      if (auto && href) {
        push({ t: 'link', href, kids: [{ t: 'text', text: auto[1]! }] });
        at += auto[0].length;
      } else {
        buffer += char;
        at += 1;
      }
    } else if (char === 'h' && !/\w$/.test(buffer) && /^https?:\/\//.test(text.slice(at, at + 8))) {
      const raw = /^https?:\/\/[^\s<>"'`，。；：！？、（）]{1,2000}/.exec(text.slice(at, at + 2012))![0];
      let url = raw.replace(/[.,;:!?*_~\]]+$/, '');
      if (url.endsWith(')') && !url.includes('(')) url = url.slice(0, -1);
      const href = safeLink(url);
      if (href) push({ t: 'link', href, kids: [{ t: 'text', text: url }] });
      else buffer += url;
      at += url.length;
    } else {
      buffer += char;
      at += 1;
    }
  }
  flush();
  return out;
}

function closingTicks(text: string, from: number, length: number): number {
  let at = text.indexOf('`', from);
  while (at >= 0) {
    let end = at;
    while (text.charAt(end) === '`') end += 1;
    if (end - at === length) return at;
    at = text.indexOf('`', end);
  }
  return -1;
}

function emphasis(text: string, at: number, char: string, depth: number, hopeless: Set<string>): { node: Inline; end: number } | null {
  const double = text.charAt(at + 1) === char;
  if (char === '~' && !double) return null;
  const mark = double ? char + char : char;
  const start = at + mark.length;
  if (hopeless.has(mark) || start >= text.length || /\s/.test(text.charAt(start))) return null;
  // `_` inside of a word is a letter.
  if (char === '_' && /\w/.test(text.charAt(at - 1))) return null;
  let end = text.indexOf(mark, start);
  while (end >= 0) {
    const before = text.charAt(end - 1);
    const isRun = mark.length === 1 && (text.charAt(end + 1) === char || before === char);
    const isWord = char === '_' && /\w/.test(text.charAt(end + mark.length));
    if (end > start && !/\s/.test(before) && before !== '\\' && !isRun && !isWord) {
      const kids = inline(text.slice(start, end), depth + 1);
      const t = char === '~' ? 'del' : double ? 'strong' : 'em';
      return { node: { t, kids }, end: end + mark.length };
    }
    end = text.indexOf(mark, end + (isRun ? 2 : 1));
  }
  hopeless.add(mark);
  return null;
}

function link(text: string, at: number, depth: number): { node: Inline; end: number } | null {
  // Labels and targets beyond these lengths stay text, so that a row of `[` costs little.
  const part = text.slice(at, at + 3000);
  const match = /^\[([^[\]\n]{0,500})\]\(\s*<?([^\s<>()]{0,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,500})?)>?(?:\s+"[^"\n]{0,300}")?\s*\)/.exec(part);
  if (!match) return null;
  const kids = inline(match[1] || match[2]!, depth + 1);
  const href = safeLink(match[2]!);
  const end = at + match[0].length;
  // A target that is no web address is shown, but leads nowhere.
  if (!href) return { node: { t: 'em', kids }, end };
  return { node: { t: 'link', href, kids: kids.filter((kid) => kid.t !== 'link').length ? kids.filter((kid) => kid.t !== 'link') : [{ t: 'text', text: match[1] || match[2]! }] }, end };
}
