// Requests to the server this page came from.
import { parsePlain } from './text';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Details of the error, such as who answered a question. */
    readonly detail: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

const ROOT = '/api/v1';

async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: 'application/json' };
  const init: RequestInit = { method, headers, credentials: 'same-origin' };
  if (method !== 'GET') {
    const isFile = body instanceof Blob;
    headers['content-type'] = isFile ? 'application/octet-stream' : 'application/json';
    headers['idempotency-key'] = crypto.randomUUID();
    init.body = isFile ? body : JSON.stringify(body ?? {});
  }
  let answer: Response;
  try {
    answer = await fetch(ROOT + path, init);
    // A write whose answer was lost is sent once more: the key makes that harmless. A file that is there already stays one file.
  } catch (first) {
    if (method === 'GET') throw new ApiError(0, 'offline', String(first));
    await new Promise((done) => setTimeout(done, 600));
    try {
      answer = await fetch(ROOT + path, init);
    } catch (error) {
      throw new ApiError(0, 'offline', String(error));
    }
  }
  const text = await answer.text();
  let value: unknown;
  try {
    // What a write answers may be sent back as it is.
    value = text ? (method === 'GET' ? parsePlain(text) : JSON.parse(text)) : undefined;
  } catch {
    value = text;
  }
  if (answer.ok) return value as T;
  const error = (value as { error?: { code?: string; message?: string } } | undefined)?.error ?? {};
  throw new ApiError(answer.status, error.code ?? 'internal', error.message ?? `${answer.status} ${answer.statusText}`, error as Record<string, unknown>);
}

export const get = <T>(path: string) => send<T>('GET', path);
export const post = <T = unknown>(path: string, body?: unknown) => send<T>('POST', path, body);
export const del = (path: string) => send<unknown>('DELETE', path);
export const command = (body: unknown) => post<{ id: string }>('/commands', body);
export const query = <T>(name: string, body: unknown = {}) => post<Record<string, T>>('/queries', { [name]: body }).then((answer) => answer[name] as T);

/** Puts a file among those of a session; returns how a message mentions it. */
export const addFile = (session: string, file: File) =>
  post<{ mention: string }>(`/sessions/${session}/files?name=${encodeURIComponent(file.name)}`, file).then((answer) => answer.mention);

export const fileUrl = (session: string, path: string) => `${ROOT}/sessions/${session}/files/${encodeURIComponent(path)}`;

export const eventsUrl = (from: string) => `${ROOT}/events?from=${encodeURIComponent(from)}`;
