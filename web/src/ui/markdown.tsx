import { Fragment, type ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { highlight } from '../lib/highlight';
import { t } from '../lib/i18n';
import { parse, type Block, type Inline } from '../lib/markdown';
import { looksLikeDiff } from '../lib/diff';
import { FileLinks } from './attachments';
import { DiffView } from './diff';
import { Icon } from './icons';

export function Markdown({ text }: { text: string }) {
  const tree = useMemo(() => parse(text), [text]);
  return <div class="md">{tree.map(block)}</div>;
}

function block(node: Block, key: number): ComponentChildren {
  switch (node.t) {
    case 'p':
      return <p key={key}>{node.kids.map(inline)}</p>;
    case 'h': {
      // The page's own headings are above those of a message.
      const Tag = `h${Math.min(6, node.level + 2)}` as 'h3';
      return <Tag key={key}>{node.kids.map(inline)}</Tag>;
    }
    case 'code':
      return (node.lang === 'diff' || node.lang === 'patch') && looksLikeDiff(node.text) ? (
        <DiffView key={key} text={node.text} />
      ) : (
        <Code key={key} text={node.text} lang={node.lang} />
      );
    case 'quote':
      return <blockquote key={key}>{node.kids.map(block)}</blockquote>;
    case 'list': {
      const items = node.items.map((item, at) => (
        <li key={at} class={item.done === null ? undefined : 'task'}>
          {item.done !== null && <input type="checkbox" checked={item.done} disabled aria-label={t(item.done ? 'state.done' : 'state.open')} />}
          {tight(item.kids)}
        </li>
      ));
      return node.start === null ? <ul key={key}>{items}</ul> : <ol key={key} start={node.start}>{items}</ol>;
    }
    case 'table':
      return (
        <div key={key} class="scroll-x" tabIndex={0} role="region" aria-label={t('md.table')}>
          <table>
            <thead>
              <tr>{node.head.map((cell, at) => <th key={at} class={`to-${node.align[at] ?? 'left'}`}>{cell.map(inline)}</th>)}</tr>
            </thead>
            <tbody>
              {node.rows.map((row, at) => (
                <tr key={at}>{row.map((cell, nth) => <td key={nth} class={`to-${node.align[nth] ?? 'left'}`}>{cell.map(inline)}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case 'hr':
      return <hr key={key} />;
  }
}

/** An item with one paragraph is shown without the paragraph's space. */
function tight(kids: Block[]): ComponentChildren {
  return kids.map((kid, at) => (kid.t === 'p' && at === 0 ? <Fragment key={at}>{kid.kids.map(inline)}</Fragment> : block(kid, at)));
}

function inline(node: Inline, key: number): ComponentChildren {
  switch (node.t) {
    case 'text':
      return <FileLinks key={key} text={node.text} />;
    case 'code':
      return (
        <code key={key}>
          <FileLinks text={node.text} />
        </code>
      );
    case 'strong':
      return <strong key={key}>{node.kids.map(inline)}</strong>;
    case 'em':
      return <em key={key}>{node.kids.map(inline)}</em>;
    case 'del':
      return <del key={key}>{node.kids.map(inline)}</del>;
    case 'br':
      return <br key={key} />;
    case 'link':
      return (
        <a key={key} href={node.href} target="_blank" rel="noopener noreferrer nofollow">
          {node.kids.map(inline)}
        </a>
      );
  }
}

export function Code({ text, lang = '', label }: { text: string; lang?: string; label?: string }) {
  const tokens = useMemo(() => highlight(text, lang), [text, lang]);
  const name = label ?? lang;
  return (
    <div class="code">
      <div class="code-head">
        <span>{name}</span>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} role="region" aria-label={name || t('md.code')}>
        <code>{tokens.map((token, at) => (token.kind ? <span key={at} class={`hl-${token.kind}`}>{token.text}</span> : token.text))}</code>
      </pre>
    </div>
  );
}

export function CopyButton({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      // Without permission the text can still be selected.
    }
  };
  return (
    <button type="button" class="ghost tiny" onClick={copy} aria-label={t('do.copy')} title={t('do.copy')}>
      <Icon name={done ? 'check' : 'copy'} size={14} />
    </button>
  );
}
