// One session as the fold of its events. Chat, timeline, replay, messages and cost all read this state.
import type { Reason, SessionStatus, StreamEvent, Tally, Usage, Who } from './types';

export interface ToolCall {
  id: string;
  agent: string;
  name: string;
  args: string;
  target: string;
  at: number;
  /** The last lines of a running tool. */
  progress: string;
  result?: string;
  summary?: string;
  ending?: string;
  isError?: boolean;
  ms?: number;
  cut?: boolean;
}

export type Item = { key: string; at: number; seq: number; agent: string | null } & (
  | { k: 'user'; id: string; text: string; from: string; to: string }
  | { k: 'text'; text: string; end?: string; cut?: boolean }
  | { k: 'tool'; call: ToolCall }
  | { k: 'plan'; plan: string }
  | { k: 'ask'; question: string }
  | { k: 'note'; text: string }
  | { k: 'error'; text: string; end: string; retryAt?: number }
);

export interface AgentState {
  id: string;
  name: string;
  lead: boolean;
  state: string;
  reason: Reason | null;
  task: string;
  model: string;
  /** What it does at this moment. */
  doing: { what: 'model' | 'tool'; name: string; target: string; since: number } | null;
  usage: Usage;
  usd: number;
  calls: number;
  startedAt: number;
  lastAt: number;
  /** The event that ended its last answer: older pieces belong to that one. */
  answeredSeq: number;
}

export interface TaskState {
  id: string;
  agent: string;
  needs: string[];
  state: string;
  attempt: number;
  worker: string | null;
  message: string;
  proof: string;
  startedAt: number | null;
  endedAt: number | null;
  retryAt: number | null;
}

export interface PlanState {
  id: string;
  goal: string;
  by: string;
  state: string;
  at: number;
  approvedAt: number | null;
  endedAt: number | null;
  tasks: Map<string, TaskState>;
  message: string;
  tally: Tally | null;
}

export interface QuestionState {
  id: string;
  agent: string | null;
  name: string;
  plan: string | null;
  toolId: string | null;
  tool: string;
  message: string;
  preview: string;
  state: string;
  said: string;
  by: string;
  comment: string;
  at: number;
  answeredAt: number | null;
}

export interface MailRow {
  id: string;
  at: number;
  from: string;
  to: string;
  toName: string;
  kind: string;
  replyTo: string | null;
  text: string;
}

export type SegmentKind = 'model' | 'tool' | 'person' | 'dependency' | 'limit';

export interface Segment {
  kind: SegmentKind;
  from: number;
  to: number | null;
  label: string;
  /** The item of the transcript that it belongs to. */
  item: string | null;
}

export interface Model {
  id: string;
  seq: number;
  part: number;
  count: number;
  firstAt: number;
  lastAt: number;
  items: Item[];
  calls: Map<string, ToolCall>;
  agents: Map<string, AgentState>;
  lead: string | null;
  plans: Map<string, PlanState>;
  questions: Map<string, QuestionState>;
  mail: MailRow[];
  lanes: Map<string, Segment[]>;
  status: SessionStatus;
  /** The answer that an agent is writing. */
  live: Map<string, string>;
  usage: Usage;
  usd: number;
  unpriced: number;
  /** Messages of the user that no turn has taken up, oldest first. */
  waiting: { id: string; text: string }[];
}

const NOTHING: Usage = { input: 0, output: 0, cache_read: 0, cache_write: 0 };
/** Events without a part are the last of their entry. */
const LAST = Number.MAX_SAFE_INTEGER;

export function newModel(id: string): Model {
  return {
    id,
    seq: 0,
    part: LAST,
    count: 0,
    firstAt: 0,
    lastAt: 0,
    items: [],
    calls: new Map(),
    agents: new Map(),
    lead: null,
    plans: new Map(),
    questions: new Map(),
    mail: [],
    lanes: new Map(),
    status: { agents: [], questions: {} },
    live: new Map(),
    usage: { ...NOTHING },
    usd: 0,
    unpriced: 0,
    waiting: [],
  };
}

/** Whether the event is behind everything that the model knows. */
export function isNew(model: Model, event: StreamEvent): boolean {
  if (event.type === 'content_delta') return event.seq >= (model.agents.get(event.agent?.id ?? '')?.answeredSeq ?? 0);
  if (event.type === 'status' && event.tool_id !== undefined) return event.seq >= model.seq;
  const part = event.part ?? LAST;
  return event.seq > model.seq || (event.seq === model.seq && part > model.part);
}

/** Takes an event in; returns whether anything changed. Events that are known already change nothing. */
export function apply(model: Model, event: StreamEvent): boolean {
  if (!isNew(model, event)) return false;
  const live = event.type === 'content_delta' || (event.type === 'status' && event.tool_id !== undefined);
  if (!live) {
    model.seq = event.seq;
    model.part = event.part ?? LAST;
    model.count += 1;
    model.lastAt = Math.max(model.lastAt, event.at_ms);
    if (!model.firstAt) model.firstAt = event.at_ms;
  }
  const agent = event.agent ? agentOf(model, event.agent, event.at_ms) : null;
  switch (event.type) {
    case 'content_delta':
      if (agent) model.live.set(agent.id, event.whole ? event.delta : (model.live.get(agent.id) ?? '') + event.delta);
      break;
    case 'status':
      status(model, event, agent);
      break;
    case 'tool_start':
      toolStart(model, event, agent);
      break;
    case 'tool_result':
      toolResult(model, event, agent);
      break;
    case 'final':
      final(model, event, agent);
      break;
    case 'error':
      error(model, event, agent);
      break;
    case 'plan':
      plan(model, event);
      break;
    case 'task':
      task(model, event);
      break;
    case 'mail':
      mail(model, event);
      break;
    case 'approval':
      approval(model, event, agent);
      break;
    case 'budget':
      budget(model, event, agent);
      break;
    case 'session':
      model.status = event.status;
      for (const known of model.agents.values()) {
        const now = event.status.agents.find((one) => one.agent === known.id);
        if (!now?.working && known.state === 'busy' && !Object.values(event.status.questions).some((of) => of.agent === known.id)) {
          known.state = now?.stopped ? 'stopped' : 'ready';
        }
      }
      break;
    case 'agent':
      agentChanged(model, event, agent);
      break;
  }
  return true;
}

type Of<T extends StreamEvent['type']> = Extract<StreamEvent, { type: T }>;

function agentOf(model: Model, who: Who, at: number): AgentState {
  let known = model.agents.get(who.id);
  if (!known) {
    known = { id: who.id, name: who.name, lead: who.lead, state: 'created', reason: null, task: '', model: '', doing: null, usage: { ...NOTHING }, usd: 0, calls: 0, startedAt: at, lastAt: at, answeredSeq: 0 };
    model.agents.set(who.id, known);
    if (!model.lanes.has(who.id)) model.lanes.set(who.id, []);
    if (who.lead && !model.lead) model.lead = who.id;
  }
  known.lastAt = at;
  return known;
}

function push(model: Model, event: StreamEvent, agent: string | null, item: { k: Item['k'] } & Record<string, unknown>): string {
  const key = `${event.seq}.${event.part ?? 0}`;
  model.items.push({ key, at: event.at_ms, seq: event.seq, agent, ...item } as Item);
  return key;
}

function open(model: Model, agent: string, kind: SegmentKind, from: number, label: string, item: string | null = null): Segment {
  const segment: Segment = { kind, from, to: null, label, item };
  const lane = model.lanes.get(agent);
  if (lane) lane.push(segment);
  else model.lanes.set(agent, [segment]);
  return segment;
}

function close(model: Model, agent: string | null, kinds: SegmentKind[], at: number, label?: string) {
  const lane = agent ? model.lanes.get(agent) : undefined;
  if (!lane) return;
  // Open segments are near the end of a lane.
  for (let nth = lane.length - 1; nth >= Math.max(0, lane.length - 24); nth -= 1) {
    const segment = lane[nth]!;
    if (segment.to === null && kinds.includes(segment.kind) && (label === undefined || segment.label === label)) segment.to = Math.max(at, segment.from);
  }
}

function status(model: Model, event: Of<'status'>, agent: AgentState | null) {
  if (event.tool_id !== undefined) {
    const call = agent && model.calls.get(`${agent.id}/${event.tool_id}`);
    if (call && call.result === undefined) replaceCall(model, { ...call, progress: event.message });
    return;
  }
  if (event.model !== undefined) {
    if (!agent) return;
    agent.model = event.model;
    agent.doing = { what: 'model', name: event.model, target: '', since: event.at_ms };
    endAnswer(model, event, agent);
    close(model, agent.id, ['model', 'limit', 'dependency'], event.at_ms);
    open(model, agent.id, 'model', event.at_ms, event.model);
    return;
  }
  push(model, event, agent?.id ?? null, { k: 'note', text: event.message });
}

/** Drops the text that an agent was writing; it is stored now, or given up. */
function endAnswer(model: Model, event: StreamEvent, agent: AgentState): boolean {
  agent.answeredSeq = event.seq;
  return model.live.delete(agent.id);
}

function toolStart(model: Model, event: Of<'tool_start'>, agent: AgentState | null) {
  if (!agent) return;
  endAnswer(model, event, agent);
  const call: ToolCall = { id: event.tool_id, agent: agent.id, name: event.tool_name, args: event.tool_args, target: event.target, at: event.at_ms, progress: '', cut: event.cut };
  model.calls.set(`${agent.id}/${event.tool_id}`, call);
  const key = push(model, event, agent.id, { k: 'tool', call });
  agent.doing = { what: 'tool', name: event.tool_name, target: event.target, since: event.at_ms };
  close(model, agent.id, ['model', 'dependency'], event.at_ms);
  open(model, agent.id, 'tool', event.at_ms, `${event.tool_name}#${event.tool_id}`, key);
}

function toolResult(model: Model, event: Of<'tool_result'>, agent: AgentState | null) {
  if (!agent) return;
  endAnswer(model, event, agent);
  let call = model.calls.get(`${agent.id}/${event.tool_id}`);
  if (!call) {
    // A refused call never began.
    call = { id: event.tool_id, agent: agent.id, name: event.tool_name, args: '', target: '', at: event.at_ms, progress: '' };
    model.calls.set(`${agent.id}/${event.tool_id}`, call);
    push(model, event, agent.id, { k: 'tool', call });
  }
  replaceCall(model, { ...call, result: event.tool_result, summary: event.summary, ending: event.ending, isError: event.is_error, ms: event.ms, cut: call.cut || event.cut, progress: '' });
  if (agent.doing?.what === 'tool' && agent.doing.name === event.tool_name) agent.doing = null;
  close(model, agent.id, ['tool'], event.at_ms, `${event.tool_name}#${event.tool_id}`);
}

/** A call is replaced and not changed, so that a row that shows it is drawn again. */
function replaceCall(model: Model, call: ToolCall) {
  model.calls.set(`${call.agent}/${call.id}`, call);
  for (let at = model.items.length - 1; at >= 0; at -= 1) {
    const item = model.items[at]!;
    if (item.k !== 'tool' || item.agent !== call.agent || item.call.id !== call.id) continue;
    model.items[at] = { ...item, call };
    return;
  }
}

function lastText(model: Model, agent: string): Extract<Item, { k: 'text' }> | null {
  for (let at = model.items.length - 1; at >= Math.max(0, model.items.length - 40); at -= 1) {
    const item = model.items[at]!;
    if (item.k === 'user' && item.agent === agent) return null;
    if (item.k === 'text' && item.agent === agent) return item;
  }
  return null;
}

function final(model: Model, event: Of<'final'>, agent: AgentState | null) {
  if (!agent) return;
  endAnswer(model, event, agent);
  agent.doing = null;
  close(model, agent.id, ['model', 'tool', 'limit', 'dependency'], event.at_ms);
  const last = lastText(model, agent.id);
  // A turn that ends with a plan repeats what was said before it.
  if (last && last.end === undefined && last.text === event.response) model.items[model.items.indexOf(last)] = { ...last, end: event.end };
  else if (event.response.trim() !== '') push(model, event, agent.id, { k: 'text', text: event.response, end: event.end, cut: event.cut });
}

function error(model: Model, event: Of<'error'>, agent: AgentState | null) {
  if (agent) {
    endAnswer(model, event, agent);
    agent.doing = null;
    close(model, agent.id, event.done ? ['model', 'tool', 'limit', 'dependency', 'person'] : ['model', 'limit'], event.at_ms);
    if (event.retry_at_ms) open(model, agent.id, 'limit', event.at_ms, event.message).to = event.retry_at_ms;
  }
  if (event.response) push(model, { ...event, part: (event.part ?? 0) + 100 }, agent?.id ?? null, { k: 'text', text: event.response, end: event.end ?? 'failed' });
  // Of the attempts at one call, the last failure is shown.
  const last = model.items.at(-1);
  if (last?.k === 'error' && last.retryAt !== undefined && last.agent === (agent?.id ?? null)) model.items.pop();
  push(model, event, agent?.id ?? null, { k: 'error', text: event.message, end: event.end ?? '', retryAt: event.retry_at_ms });
}

const PLAN_ENDS = new Set(['done', 'partial', 'failed', 'stopped', 'rejected', 'replaced']);

function plan(model: Model, event: Of<'plan'>) {
  let known = model.plans.get(event.plan);
  if (!known) {
    known = { id: event.plan, goal: '', by: event.by ?? '', state: event.state, at: event.at_ms, approvedAt: null, endedAt: null, tasks: new Map(), message: '', tally: null };
    model.plans.set(event.plan, known);
    push(model, event, null, { k: 'plan', plan: event.plan });
  }
  if (event.goal) known.goal = event.goal;
  if (event.state === 'resumed') known.state = 'running';
  else if (event.state !== 'edit_refused' && event.state !== 'revision_ended') known.state = event.state;
  if (event.message !== undefined) known.message = event.message;
  if (event.tally) known.tally = event.tally;
  if (PLAN_ENDS.has(event.state)) known.endedAt = event.at_ms;
  if (event.tasks) {
    const before = known.tasks;
    known.tasks = new Map(event.tasks.map((line) => [line.id, { ...(before.get(line.id) ?? blank(line.id)), agent: line.agent, needs: line.needs ?? [] }]));
  }
}

function blank(id: string): TaskState {
  return { id, agent: '', needs: [], state: 'planned', attempt: 0, worker: null, message: '', proof: '', startedAt: null, endedAt: null, retryAt: null };
}

function task(model: Model, event: Of<'task'>) {
  const owner = model.plans.get(event.plan);
  if (!owner) return;
  let known = owner.tasks.get(event.task);
  if (!known) {
    known = blank(event.task);
    owner.tasks.set(event.task, known);
  }
  if (event.state !== 'changed' && event.state !== 'ruled') known.state = event.state;
  if (event.attempt) known.attempt = event.attempt;
  if (event.member) known.agent = event.member;
  if (event.worker) known.worker = event.worker;
  if (event.message !== undefined) known.message = event.message;
  if (event.proof) known.proof = event.proof;
  known.retryAt = event.retry_at_ms ?? null;
  if (event.state === 'dispatched') {
    const from = owner.approvedAt;
    if (known.startedAt === null && from !== null && known.needs.length > 0 && event.worker && event.at_ms > from) {
      open(model, event.worker, 'dependency', from, known.needs.join(', ')).to = event.at_ms;
    }
    known.startedAt ??= event.at_ms;
    known.endedAt = null;
  }
  if (event.state === 'running') known.startedAt ??= event.at_ms;
  if (['done', 'failed', 'skipped', 'cancelled', 'stopped'].includes(event.state)) known.endedAt = event.at_ms;
}

function mail(model: Model, event: Of<'mail'>) {
  model.mail.push({ id: event.id, at: event.at_ms, from: event.from, to: event.to, toName: event.to_name ?? '', kind: event.kind, replyTo: event.reply_to ?? null, text: event.message ?? '' });
  if (event.from.startsWith('user/') && (event.kind === 'user_input' || event.kind === 'text') && event.message) {
    const to = event.to.startsWith('agent/') ? event.to.slice(6) : null;
    push(model, event, to, { k: 'user', id: event.id, text: event.message, from: event.from.slice(5), to: event.to_name ?? '' });
    if (event.kind === 'user_input') model.waiting.push({ id: event.id, text: event.message });
  }
}

function approval(model: Model, event: Of<'approval'>, agent: AgentState | null) {
  const asker = agent?.id ?? null;
  let known = model.questions.get(event.question);
  if (event.state === 'asked') {
    if (known) return;
    known = { id: event.question, agent: asker, name: agent?.name ?? '', plan: event.plan ?? null, toolId: event.tool_id ?? null, tool: event.tool_name ?? '', message: event.message ?? '', preview: event.preview ?? '', state: 'asked', said: '', by: '', comment: '', at: event.at_ms, answeredAt: null };
    model.questions.set(event.question, known);
    const key = push(model, event, asker, { k: 'ask', question: event.question });
    const lane = asker ?? model.lead;
    if (agent) agent.doing = null;
    if (lane) open(model, lane, 'person', event.at_ms, event.question, key);
    return;
  }
  if (!known) return;
  known = { ...known, state: event.state, said: event.said ?? '', by: event.by ?? '', comment: event.message ?? '', answeredAt: event.at_ms };
  model.questions.set(known.id, known);
  close(model, known.agent ?? model.lead, ['person'], event.at_ms, known.id);
  const owner = known.plan ? model.plans.get(known.plan) : undefined;
  if (owner && event.state === 'answered' && (event.said ?? '').startsWith('approved')) {
    owner.approvedAt ??= event.at_ms;
    if (owner.endedAt === null) owner.state = 'running';
  }
}

function budget(model: Model, event: Of<'budget'>, agent: AgentState | null) {
  if (agent) {
    const live = endAnswer(model, event, agent);
    if (live || agent.doing?.what === 'model') agent.doing = null;
    close(model, agent.id, ['model'], event.at_ms);
    // The text between two tool calls comes as a status of the same entry.
    const last = model.items.at(-1);
    if (last?.k === 'note' && last.seq === event.seq && last.agent === agent.id) {
      model.items[model.items.length - 1] = { key: last.key, at: last.at, seq: last.seq, agent: last.agent, k: 'text', text: last.text };
    }
  }
  if (event.usage) {
    add(model.usage, event.usage);
    if (agent) add(agent.usage, event.usage);
    if (event.cost_usd === undefined) model.unpriced += 1;
  }
  if (event.state === 'spent' || event.state === 'unknown') {
    model.usd += event.cost_usd ?? 0;
    if (agent) {
      agent.usd += event.cost_usd ?? 0;
      agent.calls += 1;
    }
  }
  if (event.state === 'reached' || event.state === 'raised') push(model, event, agent?.id ?? null, { k: 'note', text: `budget:${event.state}` });
}

function add(sum: Usage, more: Usage) {
  sum.input += more.input ?? 0;
  sum.output += more.output ?? 0;
  sum.cache_read += more.cache_read ?? 0;
  sum.cache_write += more.cache_write ?? 0;
}

function agentChanged(model: Model, event: Of<'agent'>, agent: AgentState | null) {
  if (!agent) return;
  agent.state = event.state;
  agent.reason = event.reason ?? null;
  if (event.message) agent.task = event.message;
  if (event.state === 'starting') agent.startedAt = event.at_ms;
  if (event.state === 'busy') {
    close(model, agent.id, ['dependency'], event.at_ms);
    if (agent.id === model.lead) model.waiting = [];
  }
  if (event.state === 'ready' || event.state === 'stopped') {
    agent.doing = null;
    const reason = event.reason;
    if (typeof reason === 'object' && 'waiting_for' in reason && !isYou(model, agent.id)) {
      open(model, agent.id, 'dependency', event.at_ms, reason.waiting_for);
    }
  }
}

function isYou(model: Model, agent: string): boolean {
  for (const question of model.questions.values()) if (question.agent === agent && question.state === 'asked') return true;
  return false;
}

/** Whether an agent works, or a plan does without one (its checks run). */
export function isBusy(model: Model): boolean {
  if (model.status.agents.some((one) => one.working)) return true;
  for (const plan of model.plans.values()) if (plan.endedAt === null && plan.approvedAt !== null && plan.state === 'running' && openQuestions(model).length === 0) return true;
  return false;
}

/** The user took messages back before an agent read them. The stream does not tell. */
export function withdraw(model: Model, ids: Iterable<string>) {
  const gone = new Set(ids);
  model.waiting = model.waiting.filter((one) => !gone.has(one.id));
  model.items = model.items.filter((item) => item.k !== 'user' || !gone.has(item.id));
}

/** The questions that wait for an answer. */
export function openQuestions(model: Model): QuestionState[] {
  return [...model.questions.values()].filter((question) => question.state === 'asked');
}

/** Requests between agents that only keep the team going, and stops, which the end of a turn tells. */
const HANDSHAKE = /^(\w+_(request|response|approved|rejected|notification) (is sent to|has come)|stopped by )/;

/** The transcript of one agent; of the lead with plans. */
export function transcript(model: Model, agent: string | null): Item[] {
  const lead = model.lead;
  const shown = agent ?? lead;
  return model.items.filter((item) => {
    if (item.k === 'note' && HANDSHAKE.test(item.text)) return false;
    if (item.agent === shown) return true;
    if (shown !== lead) return false;
    return item.agent === null ? item.k !== 'note' : item.k === 'ask';
  });
}

/** The state after the first events of a run. */
export function modelAt(id: string, events: StreamEvent[], count: number): Model {
  const model = newModel(id);
  for (let at = 0; at < Math.min(count, events.length); at += 1) apply(model, events[at]!);
  return model;
}
