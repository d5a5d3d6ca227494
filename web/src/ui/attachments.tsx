import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import { fileUrl } from '../lib/api';
import { attachment, filesOf, pieces, refusal, release, type Attachment } from '../lib/attach';
import { bytes } from '../lib/format';
import { t } from '../lib/i18n';
import { me } from '../lib/store';
import { toast } from './basics';
import { Icon } from './icons';

export interface Attaching {
  files: Attachment[];
  /** Files are dragged over the page. */
  isOver: boolean;
  add: (files: File[]) => void;
  remove: (one: Attachment) => void;
  /** After they were sent. */
  clear: () => void;
}

/** The files of a message that is being written. The whole page takes files that are dropped, so that none replaces the page. */
export function useAttachments(enabled: boolean): Attaching {
  const [files, setFiles] = useState<Attachment[]>([]);
  const [isOver, setOver] = useState(false);
  const now = useRef(files);
  now.current = files;
  useEffect(() => () => now.current.forEach(release), []);

  const add = (more: File[]) => {
    const limits = me.value?.attach;
    if (!limits) return;
    const all = [...now.current];
    for (const file of more) {
      const why = refusal(file, all, limits);
      if (why) toast(why, 'error');
      else all.push(attachment(file));
    }
    now.current = all;
    setFiles(all);
  };
  const remove = (one: Attachment) => {
    release(one);
    setFiles(now.current.filter((other) => other.id !== one.id));
  };
  const clear = () => {
    now.current.forEach(release);
    setFiles([]);
  };

  useEffect(() => {
    const holds = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
    const over = (event: DragEvent) => {
      if (!holds(event)) return;
      event.preventDefault();
      if (enabled) setOver(true);
      else event.dataTransfer!.dropEffect = 'none';
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = (event: DragEvent) => {
      if (!holds(event)) return;
      event.preventDefault();
      setOver(false);
      if (enabled) add(filesOf(event.dataTransfer));
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', leave);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', leave);
      removeEventListener('drop', drop);
    };
  }, [enabled]);
  return { files, isOver, add, remove, clear };
}

/** The attached files, each with a button that removes it. */
export function AttachmentChips({ files, disabled, onRemove }: { files: Attachment[]; disabled: boolean; onRemove: (one: Attachment) => void }) {
  if (files.length === 0) return null;
  return (
    <ul class="attachments" aria-label={t('attach.files')}>
      {files.map((one) => (
        <li key={one.id} class="attachment">
          {one.preview ? <img src={one.preview} alt="" /> : <Icon name="file" size={18} />}
          <span class="ellipsis">{one.file.name}</span>
          <span class="muted small nowrap">{bytes(one.file.size)}</span>
          <button type="button" class="ghost icon-btn" disabled={disabled} aria-label={t('attach.remove', { name: one.file.name })} title={t('attach.remove', { name: one.file.name })} onClick={() => onRemove(one)}>
            <Icon name="cross" size={13} />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Chooses files. */
export function AttachButton({ disabled, onPick }: { disabled: boolean; onPick: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          onPick([...(event.currentTarget.files ?? [])]);
          // The same file can be chosen again.
          event.currentTarget.value = '';
        }}
      />
      <button type="button" class="ghost icon-btn attach-btn" disabled={disabled} aria-label={t('attach.add')} title={t('attach.add_about')} onClick={() => input.current!.click()}>
        <Icon name="attach" size={18} />
      </button>
    </>
  );
}

/** The session whose files texts mention. */
export const FilesOf = createContext<string | null>(null);

/** A text in which mentioned files of the session are links to download them. */
export function FileLinks({ text }: { text: string }) {
  const session = useContext(FilesOf);
  if (!session || !text.includes('files/')) return <>{text}</>;
  return (
    <>
      {pieces(text).map((piece, at) =>
        typeof piece === 'string' ? (
          piece
        ) : (
          <a key={at} href={fileUrl(session, piece.path)} download title={t('attach.download', { name: piece.path })}>
            {piece.shown}
          </a>
        ),
      )}
    </>
  );
}
