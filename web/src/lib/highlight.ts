// Light colours for code: comments, strings, numbers and keywords. Not a parser.

export interface Token {
  kind: '' | 'comment' | 'string' | 'number' | 'keyword' | 'name' | 'add' | 'del' | 'meta';
  text: string;
}

/** Longer code is shown without colours. */
const COLOURED_MAX = 60_000;

const KEYWORDS: Record<string, string> = {
  rust: 'as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while',
  js: 'async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield',
  py: 'and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield',
  go: 'break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var',
  c: 'auto bool break case char class const constexpr continue default delete do double else enum extern false float for if include inline int long namespace new nullptr private protected public return short signed sizeof static struct switch template this throw true try typedef union unsigned using virtual void volatile while',
  sh: 'case do done echo elif else esac exit export fi for function if in local return set then until while cd',
  sql: 'add all alter and as asc by case create delete desc distinct drop else end exists from group having in index insert into is join key left like limit not null on or order primary references select set table then union unique update values when where with',
  data: 'true false null yes no',
};

const FAMILY: Record<string, keyof typeof KEYWORDS> = {
  rs: 'rust', rust: 'rust', js: 'js', jsx: 'js', ts: 'js', tsx: 'js', javascript: 'js', typescript: 'js', json: 'data', jsonc: 'data', json5: 'data',
  py: 'py', python: 'py', go: 'go', c: 'c', h: 'c', cpp: 'c', cc: 'c', 'c++': 'c', java: 'c', kotlin: 'js', swift: 'js', cs: 'c', 'c#': 'c',
  sh: 'sh', bash: 'sh', zsh: 'sh', shell: 'sh', console: 'sh', dockerfile: 'sh', sql: 'sql', yaml: 'data', yml: 'data', toml: 'data', ini: 'data',
};

const HASH_COMMENTS = new Set(['py', 'sh', 'data']);

export function highlight(text: string, lang: string): Token[] {
  if (lang === 'diff' || lang === 'patch') return diffTokens(text);
  const family = FAMILY[lang];
  if (!family || text.length > COLOURED_MAX) return [{ kind: '', text }];
  const words = new Set(KEYWORDS[family]!.split(' '));
  const comment = HASH_COMMENTS.has(family) ? '#[^\\n]*' : family === 'sql' ? '--[^\\n]*' : '//[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$)';
  const strings = family === 'rust' ? '"(?:\\\\[\\s\\S]|[^"\\\\])*"?' : '"(?:\\\\.|[^"\\\\\\n])*"?|\'(?:\\\\.|[^\'\\\\\\n])*\'?' + (family === 'js' || family === 'go' ? '|`(?:\\\\[\\s\\S]|[^`\\\\])*`?' : '');
  const scanner = new RegExp(`(${comment})|(${strings})|\\b(\\d[\\w.]*)|([A-Za-z_][\\w]*)(\\s*\\()?`, 'g');
  const out: Token[] = [];
  let last = 0;
  for (const match of text.matchAll(scanner)) {
    if (match.index > last) out.push({ kind: '', text: text.slice(last, match.index) });
    const [whole, isComment, isString, isNumber, word, call] = match;
    if (isComment) out.push({ kind: 'comment', text: whole });
    else if (isString) out.push({ kind: 'string', text: whole });
    else if (isNumber) out.push({ kind: 'number', text: whole });
    else {
      const key = words.has(family === 'sql' ? word!.toLowerCase() : word!);
      out.push({ kind: key ? 'keyword' : call ? 'name' : '', text: word! });
      if (call) out.push({ kind: '', text: call });
    }
    last = match.index + whole.length;
  }
  if (last < text.length) out.push({ kind: '', text: text.slice(last) });
  return out;
}

function diffTokens(text: string): Token[] {
  return text.split('\n').map((line, at, all) => {
    const kind = line.startsWith('@@') || line.startsWith('+++') || line.startsWith('---') ? 'meta' : line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : '';
    return { kind, text: at + 1 < all.length ? `${line}\n` : line } as Token;
  });
}

/** The language that a file's name suggests. */
export function languageOf(path: string): string {
  return /\.([A-Za-z0-9+#]{1,10})$/.exec(path)?.[1]?.toLowerCase() ?? '';
}
