// Files that are attached to a message: bounds, and how the message mentions them.
import { addFile } from './api';
import { bytes } from './format';
import { t } from './i18n';
import type { AttachLimits } from './types';

export interface Attachment {
  id: number;
  file: File;
  /** Address of the picture, if it is one. */
  preview: string | null;
  /** Where it was put, once it is there. */
  added: { session: string; mention: string } | null;
}

let last = 0;

export const isPicture = (file: File) => /^image\/(png|jpeg|gif|webp)$/.test(file.type);

export function attachment(file: File): Attachment {
  return { id: (last += 1), file, preview: isPicture(file) ? URL.createObjectURL(file) : null, added: null };
}

export function release(one: Attachment) {
  if (one.preview) URL.revokeObjectURL(one.preview);
}

/** Why a file cannot be attached beside these; `null` if it can. */
export function refusal(file: File, beside: Attachment[], limits: AttachLimits): string | null {
  const name = file.name;
  const most = isPicture(file) ? Math.min(limits.image_bytes, limits.bytes) : limits.bytes;
  if (file.size === 0) return t('attach.empty', { name });
  if (file.size > most) return t('attach.too_large', { name, size: bytes(file.size), max: bytes(most) });
  if (beside.length >= limits.files) return t('attach.too_many', { max: limits.files });
  if (isPicture(file) && beside.filter((one) => isPicture(one.file)).length >= limits.images) return t('attach.too_many_images', { max: limits.images });
  return null;
}

/** Puts the files into the session; returns the message that mentions them. Files that are there already are not sent again. */
export async function withFiles(text: string, files: Attachment[], session: string): Promise<string> {
  const mentions: string[] = [];
  for (const one of files) {
    if (one.added?.session !== session) one.added = { session, mention: await addFile(session, one.file) };
    mentions.push(one.added.mention);
  }
  return [text, mentions.join(' ')].filter((part) => part !== '').join('\n\n');
}

/** The files of a clipboard or a drag. */
export function filesOf(data: DataTransfer | null): File[] {
  return [...(data?.files ?? [])];
}

/** A text in pieces: words, and files of the session that it mentions. */
export function pieces(text: string): (string | { shown: string; path: string })[] {
  const out: (string | { shown: string; path: string })[] = [];
  let from = 0;
  for (const match of text.matchAll(/(?<![\p{L}\p{N}_.%+/@-])@(?:"files\/([^"\n]+)"|files\/([\p{L}\p{N}_./+-]*[\p{L}\p{N}_/+-]))/gu)) {
    if (match.index > from) out.push(text.slice(from, match.index));
    out.push({ shown: match[0], path: match[1] ?? match[2]! });
    from = match.index + match[0].length;
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}
