// Unified diffs as data.

export interface DiffLine {
  kind: 'same' | 'add' | 'del' | 'note';
  before: number | null;
  after: number | null;
  text: string;
  /** The changed part within the line, if the line replaces a similar one. */
  mark?: [number, number];
}

export interface DiffFile {
  path: string;
  added: number;
  removed: number;
  hunks: { head: string; lines: DiffLine[] }[];
}

export function looksLikeDiff(text: string): boolean {
  return /^(diff --git |--- [^\n]*\n\+\+\+ |@@ -\d)/m.test(text.slice(0, 4000));
}

export function parseDiff(text: string): DiffFile[] {
  const files: DiffFile[] = [];
  let file = null as DiffFile | null;
  let hunk = null as DiffFile['hunks'][number] | null;
  let before = 0;
  let after = 0;
  let left = [0, 0];
  const lines = text.replace(/\n$/, '').split('\n');
  const open = (path: string) => {
    file = { path, added: 0, removed: 0, hunks: [] };
    hunk = null;
    files.push(file);
  };
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!;
    const inHunk = hunk !== null && (left[0]! > 0 || left[1]! > 0);
    if (!inHunk && line.startsWith('diff --git ')) {
      open(/ b\/(.*)$/.exec(line)?.[1] ?? line.slice(11));
      continue;
    }
    if (!inHunk && line.startsWith('--- ') && lines[at + 1]?.startsWith('+++ ')) {
      const [old, now] = [name(line), name(lines[at + 1]!)];
      const path = now === '/dev/null' ? old : now;
      if (!file || file.hunks.length > 0) open(path);
      else file.path = path;
      at += 1;
      continue;
    }
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/.exec(line);
    if (head && !inHunk) {
      if (!file) open('');
      before = Number(head[1]);
      after = Number(head[3]);
      left = [Number(head[2] ?? 1), Number(head[4] ?? 1)];
      hunk = { head: head[5] ?? '', lines: [] };
      file!.hunks.push(hunk);
      continue;
    }
    if (!hunk || !file) continue;
    const body = line.slice(1);
    if (line.startsWith('+')) {
      hunk.lines.push({ kind: 'add', before: null, after: after++, text: body });
      file.added += 1;
      left[1]! -= 1;
    } else if (line.startsWith('-')) {
      hunk.lines.push({ kind: 'del', before: before++, after: null, text: body });
      file.removed += 1;
      left[0]! -= 1;
    } else if (line.startsWith('\\')) {
      hunk.lines.push({ kind: 'note', before: null, after: null, text: body.trim() });
    } else if (inHunk) {
      hunk.lines.push({ kind: 'same', before: before++, after: after++, text: body });
      left[0]! -= 1;
      left[1]! -= 1;
    }
  }
  for (const { hunks } of files) for (const { lines } of hunks) pair(lines);
  return files;
}

function name(line: string): string {
  const path = line.slice(4).split('\t')[0]!.trim();
  return path.replace(/^[ab]\//, '');
}

/** Marks what differs between a removed line and the line that replaces it. */
function pair(lines: DiffLine[]) {
  for (let at = 0; at < lines.length; ) {
    let dels = 0;
    while (lines[at + dels]?.kind === 'del') dels += 1;
    let adds = 0;
    while (lines[at + dels + adds]?.kind === 'add') adds += 1;
    if (dels > 0 && dels === adds) {
      for (let nth = 0; nth < dels; nth += 1) markPair(lines[at + nth]!, lines[at + dels + nth]!);
    }
    at += Math.max(1, dels + adds);
  }
}

function markPair(old: DiffLine, now: DiffLine) {
  const [a, b] = [old.text, now.text];
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a.charAt(start) === b.charAt(start)) start += 1;
  let end = 0;
  while (end < most - start && a.charAt(a.length - 1 - end) === b.charAt(b.length - 1 - end)) end += 1;
  // Lines with little in common are marked as a whole.
  if (start + end < Math.max(a.length, b.length) * 0.3) return;
  old.mark = [start, a.length - end];
  now.mark = [start, b.length - end];
}
