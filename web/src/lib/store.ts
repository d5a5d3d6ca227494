// The state of the page: what the server said, kept up to date by one event stream.
import { batch, computed, signal } from '@preact/signals';
import { noteAnswer } from './answered';
import { ApiError, del, eventsUrl, get, post, query } from './api';
import { author } from './format';
import { language, read, t, word, write } from './i18n';
import { apply, newModel, withdraw, type Model } from './model';
import { notifyWaiting } from './notify';
import { parsePlain } from './text';
import { EVENT_TYPES, type MailRecord, type Me, type Now, type Pending, type PlanView, type SessionRow, type StreamEvent } from './types';

export type Connection = 'starting' | 'live' | 'offline' | 'login';

export const connection = signal<Connection>('starting');
export const me = signal<Me | null>(null);
export const now = signal<Now | null>(null);
export const inbox = computed<Pending[]>(() => (now.value?.inbox ?? []).filter((pending) => !pending.noted && !hidden.value.has(pending.row.question)));
export const sessions = computed<SessionRow[]>(() => now.value?.sessions ?? []);
/** When the user last looked at the first page, before this visit. */
export const lastVisit = signal<number>(Number(read('max-team.visit') ?? 0));

/** Questions that were answered here, until the server says so too. */
const hidden = signal<ReadonlySet<string>>(new Set());

export function hideQuestion(id: string, hide = true) {
  const next = new Set(hidden.value);
  if (hide) next.add(id);
  else next.delete(id);
  hidden.value = next;
}

export interface Held {
  model: Model;
  /** Counts changes of the model, which is changed in place. */
  version: ReturnType<typeof signal<number>>;
  loaded: ReturnType<typeof signal<'no' | 'loading' | 'yes' | 'failed'>>;
  error: string;
  /** All stored events, for replay. */
  events: StreamEvent[];
  /** Live events that came while the stored ones were fetched. */
  early: StreamEvent[];
}

const held = new Map<string, Held>();

export function sessionOf(id: string): Held {
  let known = held.get(id);
  if (!known) {
    known = { model: newModel(id), version: signal(0), loaded: signal<'no' | 'loading' | 'yes' | 'failed'>('no'), error: '', events: [], early: [] };
    held.set(id, known);
  }
  return known;
}

/** Fetches the stored events of a session once. */
export async function loadSession(id: string): Promise<void> {
  const known = sessionOf(id);
  if (known.loaded.value === 'loading' || known.loaded.value === 'yes') return;
  known.loaded.value = 'loading';
  try {
    let from = '0';
    for (;;) {
      const page = await get<{ events: StreamEvent[]; next?: string }>(`/sessions/${id}/events?from=${from}&limit=2000`);
      for (const event of page.events) take(known, event);
      if (!page.next || page.events.length === 0) break;
      from = page.next;
    }
    for (const event of [...piecesOf(id).values(), ...known.early]) take(known, event);
    known.early = [];
    pieces.delete(id);
    batch(() => {
      known.loaded.value = 'yes';
      known.version.value = (known.version.value ?? 0) + 1;
    });
    void dropWithdrawn(known);
  } catch (error) {
    known.error = explain(error);
    known.loaded.value = 'failed';
    if (error instanceof ApiError && error.status === 401) connection.value = 'login';
  }
}

type Piece = Extract<StreamEvent, { type: 'content_delta' }>;

// Answers that are being written in sessions that are not loaded, by session and agent: the stream sends what was said so far only once.
const pieces = new Map<string, Map<string, Piece>>();
const piecesOf = (session: string) => pieces.get(session) ?? new Map<string, Piece>();
const ENDS_ANSWER = new Set(['tool_start', 'tool_result', 'final', 'error', 'budget']);

function keepPiece(event: StreamEvent) {
  if (!event.agent) return;
  const known = piecesOf(event.session);
  if (event.type === 'content_delta') {
    const before = event.whole ? undefined : known.get(event.agent.id);
    known.set(event.agent.id, { ...(before ?? event), delta: (before?.delta ?? '') + event.delta, whole: true });
    pieces.set(event.session, known);
  } else if (ENDS_ANSWER.has(event.type)) {
    known.delete(event.agent.id);
  }
}

/** Leaves out messages that were taken back before this page was opened. */
async function dropWithdrawn(known: Held) {
  if (known.model.items.filter((item) => item.k === 'user').length < 2) return;
  try {
    const records = await query<MailRecord[]>('messages', { session: known.model.id });
    const gone = records.filter((record) => record.fate === 'Withdrawn').map((record) => record.envelope.id);
    if (gone.length === 0) return;
    withdraw(known.model, gone);
    show(known);
  } catch {
    // They are shown as said, then.
  }
}

/** Takes an unread message back. */
export async function takeBack(session: string, message: string): Promise<void> {
  await del(`/sessions/${session}/messages/${message}`);
  const known = sessionOf(session);
  withdraw(known.model, [message]);
  show(known);
}

function take(known: Held, event: StreamEvent) {
  if (!apply(known.model, event)) return;
  const isLive = event.type === 'content_delta' || (event.type === 'status' && event.tool_id !== undefined);
  if (!isLive) known.events.push(event);
}

// Changes are shown together, at most every frame.
const changed = new Set<Held>();
let scheduled = false;

function show(known: Held) {
  changed.add(known);
  if (scheduled) return;
  scheduled = true;
  const flush = () => {
    scheduled = false;
    batch(() => {
      for (const one of changed) one.version.value = (one.version.value ?? 0) + 1;
      changed.clear();
    });
  };
  if (document.visibilityState === 'visible') requestAnimationFrame(flush);
  else setTimeout(flush, 100);
}

function onEvent(event: StreamEvent) {
  const known = held.get(event.session);
  if (known && known.loaded.value === 'yes') {
    take(known, event);
    show(known);
  } else if (known && known.loaded.value === 'loading') {
    known.early.push(event);
  } else {
    keepPiece(event);
  }
  switch (event.type) {
    case 'approval':
      if (event.state === 'asked') notifyWaiting(event.agent?.name ?? '', event.message ?? '', event.session);
      else noteAnswered(event);
      refreshSoon(0);
      break;
    case 'plan':
    case 'task':
      refreshPlan(event.plan);
      refreshSoon();
      break;
    case 'session':
    case 'agent':
    case 'final':
    case 'mail':
      refreshSoon();
      break;
    case 'tool_start':
      refreshSoon(2000);
      break;
  }
}

/** Closes a question that was answered here or elsewhere. */
function noteAnswered(event: Extract<StreamEvent, { type: 'approval' }>) {
  const pending = now.value?.inbox.find((one) => one.row.question === event.question);
  const words = pending ? `${pending.who}: ${pending.words}` : (event.message ?? '');
  noteAnswer({ question: event.question, words, said: event.state === 'withdrawn' ? 'withdrawn' : (event.said ?? ''), by: event.by ?? '', at: event.at_ms });
  if (pending && !hidden.value.has(event.question) && event.by) answeredElsewhere.value = { words, by: event.by };
  if (now.value) now.value = { ...now.value, inbox: now.value.inbox.filter((one) => one.row.question !== event.question) };
}

/** The last answer that was not given on this page. */
export const answeredElsewhere = signal<{ words: string; by: string } | null>(null);

let refreshTimer: ReturnType<typeof setTimeout> | null = null;
let refreshAt = 0;

/** Fetches the lists of the first page again, soon: many events make one request. */
export function refreshSoon(delay = 250) {
  const at = Date.now() + delay;
  if (refreshTimer && refreshAt <= at) return;
  if (refreshTimer) clearTimeout(refreshTimer);
  refreshAt = at;
  refreshTimer = setTimeout(() => {
    refreshTimer = null;
    void refresh();
  }, delay);
}

let asked = 0;
let shown = 0;

export async function refresh(): Promise<void> {
  const turn = ++asked;
  try {
    const answer = await get<Now>('/now');
    // An answer that was overtaken by a later one is out of date.
    if (turn < shown) return;
    shown = turn;
    now.value = answer;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) connection.value = 'login';
  }
}

// Plans with their layout, fetched when shown and again after changes.
const plans = new Map<string, ReturnType<typeof signal<PlanView | null>>>();
const planTimers = new Map<string, ReturnType<typeof setTimeout>>();

export function planView(id: string): PlanView | null {
  let known = plans.get(id);
  if (!known) {
    known = signal<PlanView | null>(null);
    plans.set(id, known);
    void fetchPlan(id);
  }
  return known.value ?? null;
}

export async function fetchPlan(id: string): Promise<void> {
  try {
    const view = await get<PlanView>(`/plans/${id}`);
    const known = plans.get(id);
    if (known) known.value = view;
  } catch {
    // The list of tasks from the events is shown meanwhile.
  }
}

function refreshPlan(id: string) {
  if (!plans.has(id) || planTimers.has(id)) return;
  planTimers.set(
    id,
    setTimeout(() => {
      planTimers.delete(id);
      void fetchPlan(id);
    }, 200),
  );
}

// The stream.
let source: EventSource | null = null;
let mark = '';
let failures = 0;
let retry: ReturnType<typeof setTimeout> | null = null;
let offlineTimer: ReturnType<typeof setTimeout> | null = null;

function isOnline() {
  failures = 0;
  if (offlineTimer) clearTimeout(offlineTimer);
  offlineTimer = null;
  if (connection.value !== 'live') connection.value = 'live';
}

function isOffline() {
  // A short break is not worth a banner.
  offlineTimer ??= setTimeout(() => {
    offlineTimer = null;
    if (connection.value !== 'login') connection.value = 'offline';
  }, 1200);
}

function connect() {
  source?.close();
  const stream = new EventSource(eventsUrl(mark));
  source = stream;
  stream.onopen = () => {
    const wasOffline = connection.value === 'offline';
    isOnline();
    if (wasOffline) refreshSoon(0);
  };
  const onMessage = (event: Event) => {
    if (!(event instanceof MessageEvent)) return;
    if (event.lastEventId) mark = event.lastEventId;
    onEvent(parsePlain(event.data as string) as StreamEvent);
  };
  for (const type of EVENT_TYPES) stream.addEventListener(type, onMessage);
  stream.addEventListener('ready', isOnline);
  stream.onerror = (event) => {
    // The server has events called `error` too: those are messages.
    if (event instanceof MessageEvent || stream !== source) return;
    isOffline();
    if (stream.readyState === EventSource.CLOSED) reconnectLater();
  };
}

function reconnectLater() {
  if (retry) return;
  failures += 1;
  const delay = Math.min(15_000, 500 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2);
  retry = setTimeout(async () => {
    retry = null;
    try {
      me.value = await get<Me>('/me');
      connect();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        connection.value = 'login';
        source?.close();
      } else {
        reconnectLater();
      }
    }
  }, delay);
}

/** Tries again at once, for the button in the banner. */
export function reconnectNow() {
  if (retry) clearTimeout(retry);
  retry = null;
  failures = 0;
  connect();
}

/** Signs in with a code or a token. */
export async function login(body: { code: string } | { token: string }): Promise<void> {
  await post('/login', body);
  await start();
}

export async function logout(): Promise<void> {
  await post('/logout');
  source?.close();
  source = null;
  held.clear();
  pieces.clear();
  plans.clear();
  batch(() => {
    me.value = null;
    now.value = null;
    connection.value = 'login';
  });
}

/** Loads what the first page needs, then follows the stream. */
export async function start(): Promise<void> {
  try {
    const who = await get<Me>('/me');
    if (!read('max-team.language') && who.language === 'zh') language.value = 'zh';
    const first = await get<Now>('/now');
    batch(() => {
      me.value = who;
      now.value = first;
      connection.value = 'live';
    });
    mark = first.position;
    connect();
    addEventListener('pagehide', () => write('max-team.visit', String(Date.now())));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
      connection.value = 'login';
      return;
    }
    connection.value = 'offline';
    setTimeout(() => void start(), Math.min(15_000, 1000 * 2 ** failures++));
  }
}

/** Whether this user may answer questions. */
export const mayDecide = computed(() => me.value?.role === 'owner');
export const mayWrite = computed(() => me.value !== null && me.value.role !== 'viewer');

/** The error in words for a person. */
export function explain(error: unknown): string {
  if (error instanceof ApiError) {
    if (error.code === 'offline') return t('error.offline');
    if (error.code === 'answered') return t('error.answered', { by: author(String(error.detail.by ?? '')) });
    // The server's sentence in this language; else the kind of error, with the English sentence.
    const translated = error.detail[`message_${language.value}`];
    return typeof translated === 'string' ? translated : language.value === 'en' ? error.message : `${word('error', error.code)}: ${error.message}`;
  }
  return error instanceof Error ? error.message : String(error);
}
