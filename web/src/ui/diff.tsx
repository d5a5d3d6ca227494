import { useMemo, useState } from 'preact/hooks';
import { parseDiff, type DiffFile, type DiffLine } from '../lib/diff';
import { t } from '../lib/i18n';
import { plain } from '../lib/text';
import { Icon } from './icons';

/** Lines of a file beyond this are shown on demand. */
const LINES_FIRST = 400;

export function DiffView({ text }: { text: string }) {
  const files = useMemo(() => parseDiff(plain(text)), [text]);
  return <div class="diff">{files.map((file, at) => <FileDiff key={`${at}:${file.path}`} file={file} />)}</div>;
}

export function FileDiff({ file }: { file: DiffFile }) {
  const [all, setAll] = useState(false);
  const count = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  let left = all ? Infinity : LINES_FIRST;
  return (
    <section class="diff-file" aria-label={file.path || t('md.diff')}>
      <div class="diff-head">
        <Icon name="file" size={15} />
        <span class="mono grow ellipsis">{file.path || t('md.diff')}</span>
        <span class="add">+{file.added}</span>
        <span class="del">−{file.removed}</span>
      </div>
      <div class="scroll-x" tabIndex={0} role="region" aria-label={file.path || t('md.diff')}>
        <table class="diff-table">
          {file.hunks.map((hunk, at) => {
            const lines = hunk.lines.slice(0, Math.max(0, left));
            left -= hunk.lines.length;
            return (
              <tbody key={at}>
                {(at > 0 || hunk.head) && (
                  <tr class="hunk">
                    <td colSpan={4}>{hunk.head || '⋯'}</td>
                  </tr>
                )}
                {lines.map((line, nth) => <Line key={nth} line={line} />)}
              </tbody>
            );
          })}
        </table>
      </div>
      {!all && count > LINES_FIRST && (
        <button type="button" class="ghost wide" onClick={() => setAll(true)}>
          {t('do.show_lines', { count: count - LINES_FIRST })}
        </button>
      )}
    </section>
  );
}

const SIGNS = { add: '+', del: '−', same: ' ', note: ' ' };

function Line({ line }: { line: DiffLine }) {
  const { text, mark } = line;
  return (
    <tr class={`line-${line.kind}`}>
      <td class="no" data-n={line.before ?? ''} />
      <td class="no" data-n={line.after ?? ''} />
      <td class="sign" aria-label={line.kind === 'add' ? t('diff.added') : line.kind === 'del' ? t('diff.removed') : undefined}>
        {SIGNS[line.kind]}
      </td>
      <td class="text">
        {mark && mark[1] > mark[0] ? (
          <>
            {text.slice(0, mark[0])}
            <mark>{text.slice(mark[0], mark[1])}</mark>
            {text.slice(mark[1])}
          </>
        ) : (
          text || ' '
        )}
      </td>
    </tr>
  );
}
