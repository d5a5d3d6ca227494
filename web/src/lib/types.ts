// What the server sends. Unknown fields and unknown types are ignored.

export interface Who {
  id: string;
  name: string;
  lead: boolean;
}

export interface Usage {
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
}

export interface EventBase {
  v: number;
  seq: number;
  part?: number;
  session: string;
  at_ms: number;
  agent?: Who;
  cut?: boolean;
}

export type Reason = 'done' | { waiting_for: string } | { blocked: string } | { failed: string };

export type StreamEvent = EventBase &
  (
    | { type: 'status'; iteration?: number; message: string; tool_id?: string; model?: string }
    | { type: 'tool_start'; iteration: number; tool_id: string; tool_name: string; tool_args: string; target: string }
    | { type: 'tool_result'; iteration: number; tool_id: string; tool_name: string; summary: string; tool_result: string; ending: string; is_error: boolean; ms: number }
    | { type: 'content_delta'; iteration: number; delta: string; whole?: boolean }
    | { type: 'final'; iteration: number; response: string; done: boolean; end: string }
    | { type: 'error'; iteration?: number; message: string; done: boolean; response?: string; end?: string; retry_at_ms?: number }
    | { type: 'plan'; plan: string; state: string; goal?: string; tasks?: { id: string; agent: string; needs?: string[] }[]; task?: string; message?: string; by?: string; tally?: Tally }
    | { type: 'task'; plan: string; task: string; state: string; attempt?: number; member?: string; worker?: string; message?: string; by?: string; proof?: string; retry_at_ms?: number }
    | { type: 'mail'; id: string; from: string; to: string; to_name?: string; kind: string; reply_to?: string; message?: string }
    | { type: 'approval'; question: string; state: string; plan?: string; tool_id?: string; tool_name?: string; message?: string; preview?: string; said?: string; by?: string }
    | { type: 'budget'; state: string; model?: string; usage?: Usage; cost_usd?: number; plan?: string; task?: string }
    | { type: 'session'; status: SessionStatus }
    | { type: 'agent'; state: string; reason?: Reason; message?: string }
  );

export const EVENT_TYPES = ['status', 'tool_start', 'tool_result', 'content_delta', 'final', 'error', 'plan', 'task', 'mail', 'approval', 'budget', 'session', 'agent'];

export interface SessionStatus {
  agents: { agent: string; name: string; working: boolean; stopped?: unknown }[];
  joining?: string[];
  questions: Record<string, { agent?: string; plan?: string; call?: string }>;
}

export interface Tally {
  tasks: number;
  ran: number;
  done: number;
  verified: number;
  failed: number;
  mended?: number;
  skipped: number;
  cancelled: number;
  cached?: number;
  spent: Spent;
}

export interface Spent {
  nano: number;
  unknown_nano?: number;
  usage: Usage;
  ms: number;
}

export interface Me {
  user: string;
  role: 'viewer' | 'member' | 'owner';
  version: string;
  folder: string;
  demo: { name: string; prompt: string } | null;
  language: string;
  /** The bounds of what is attached to a message. */
  attach: AttachLimits;
}

export interface AttachLimits {
  bytes: number;
  image_bytes: number;
  files: number;
  images: number;
}

/** A file that belongs to a session. */
export interface SessionFile {
  path: string;
  bytes: number;
  changed_at_ms: number;
}

export interface SessionRow {
  session: string;
  lead: string;
  cwd: string;
  opened_at_ms: number;
  last_at_ms: number;
  preview: string;
  answered: boolean;
  chat?: string;
  open: 'here' | 'elsewhere' | null;
  /** Whether this server can run it. */
  continuable: boolean;
}

export interface Person {
  session: string;
  agent: string | null;
  name: string;
  role: string;
  lead: boolean;
  state: string;
  reason: Reason | null;
  plan: string | null;
  task: string | null;
  attempt: number;
  since_ms: number | null;
  doing: null | string | Record<string, Record<string, unknown>>;
  model: string;
  usage: Usage;
  nano: number;
  unpriced: boolean;
  pid: number | null;
}

export interface Action {
  deed: string;
  target: string;
  preview?: string;
  parameters?: [string, string][];
  said?: string;
  deletion?: Deletion;
}

/** What a command deletes where no scan watches: kept first, or lost for good. */
export interface Deletion {
  kept?: DeletedPath[];
  lost?: DeletedPath[];
}

export interface DeletedPath {
  path: string;
  files: number;
  bytes: number;
}

export type PlanAbout = 'proposal' | 'rest' | 'budget' | { start: { task: string } } | { failure: { task: string; error: string } };

export type Matter =
  | { tool: { tool: string; action: Action; memory?: 'deed' | 'nothing' | { rules: string[] }; rule?: string; recourse?: string } }
  | { plan: PlanAbout };

export interface Pending {
  row: { question: string; address: string; matter: Matter; at_ms: number };
  session: string | null;
  who: string;
  plan: string | null;
  task: string | null;
  noted: null | { by: string; said: string; at_ms: number };
  words: string;
}

export interface PlanLine {
  row: { plan: string; session: string; goal: string; by: string; at_ms: number };
  end: null | { end: string; tally: Tally };
}

export interface Now {
  position: string;
  inbox: Pending[];
  people: Person[];
  sessions: SessionRow[];
  plans: PlanLine[];
}

export interface Budget {
  nano?: number;
  tokens?: number;
  wall_ms?: number;
}

export interface Artifact {
  name: string;
  type: string;
  content: string;
}

export interface PlanTask {
  id: string;
  title: string;
  description: string;
  agent_name: string;
  depends_on: string[];
  artifacts?: Artifact[];
  status: string;
  retry_count: number;
  max_retries: number;
  started_at?: string;
  finished_at?: string;
  result?: {
    success: boolean;
    output: string;
    artifacts?: Artifact[];
    proof: string;
    evidence?: { what: string; ok: boolean; detail: string; passed_before?: boolean }[];
    error?: string;
  };
  worker?: string | null;
  error?: string;
  when?: string;
  owns?: string[];
  outputs?: string[];
  verify?: string[];
  model?: string;
  budget?: Budget;
  skip?: boolean;
  gated?: boolean;
  critical?: boolean;
  spent?: Spent;
}

export interface PlanView {
  id: string;
  session: string;
  goal: string;
  created_at: string;
  approved: boolean;
  state: string;
  ended: string | null;
  tally: Tally;
  forecast: null | { likely_nano: number | null; high_nano?: number | null; budget_nano?: number | null; likely_tokens: number; likely_ms: number; calls_likely: number; agents: number; unpriced: boolean; samples: number };
  questions: { question: string; about: PlanAbout }[];
  tasks: PlanTask[];
  risks?: string[];
  layout: Layout;
}

export interface Layout {
  columns: number;
  rows: number;
  nodes: { task: string; column: number; row: number }[];
  edges: { from: string; to: string; via?: [number, number][]; when?: string }[];
}

export interface Span {
  kind: string;
  name: string;
  at_ms: number;
  ms: number | null;
  outcome: string;
  failed: boolean;
  by?: string;
  usage: Usage;
  nano: number;
  children?: Span[];
}

export interface Cost {
  session: string;
  agent: string;
  name: string;
  plan: string | null;
  task: string | null;
  model: string;
  calls: number;
  usage: Usage;
  nano: number;
  unknown_nano?: number;
  unpriced_calls?: number;
  at_ms: number;
}

export interface MailRecord {
  envelope: { id: string; from: string; to: string; kind: string; body?: unknown; reply_to?: string | null; at_ms?: number };
  seq: number;
  from: string;
  to: string;
  fate: string | Record<string, string | null>;
}

export interface AuditRecord {
  seq: number;
  at_ms: number;
  event: string;
  actor: string;
  stream: string;
  session?: string;
  agent?: string;
  task?: string;
  what: string;
  allowed?: unknown;
  refused?: unknown;
  erased?: boolean;
  damaged?: unknown[];
  hash: string;
}

export interface Enrolled {
  person: Person;
  kind: string;
  color: string;
  gone: unknown;
  mode: string | null;
  unread: number;
  last_at_ms: number;
  title: string;
}

export interface Member {
  name: string;
  role: string;
  description: string;
  model: string;
  mode: string;
  tools: string[];
  lead: boolean;
  expert: boolean;
}

export interface Setting {
  key: string;
  value: string;
  default: string;
  source: string | null;
  about: string;
}

export type Ruling = 'skip' | 'fixed' | 'accept' | 'give_up' | { retry: { agent?: string; model?: string; note?: string } };
export type Edit =
  | { describe: { task: string; text: string } }
  | { retitle: { task: string; text: string } }
  | { assign: { task: string; agent: string } }
  | { needs: { task: string; needs: string[] } }
  | { budget: { task?: string; budget: Budget } }
  | { skip: { task: string; skip: boolean } }
  | { remove: { task: string } }
  | { verify: { task: string; verify: string[] } }
  | { model: { task: string; model: string | null } };
export type Decision = 'approve' | 'first_wave' | { edit: Edit[] } | { changes: string } | { reject: string } | { rule: Ruling };
