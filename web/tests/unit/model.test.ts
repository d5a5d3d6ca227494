// The state that all screens read, folded from a recorded run of the team.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { apply, isBusy, modelAt, newModel, openQuestions, transcript, type Model } from '../../src/lib/model';
import type { StreamEvent } from '../../src/lib/types';
import { cpuMs } from './cpu';

const run = readFileSync(new URL('./fixtures/team-run.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as StreamEvent);
const session = run[0]!.session;
const whole = () => modelAt(session, run, run.length);

/** Everything that is shown, as plain data. */
const plainData = (model: Model) => JSON.stringify(model, (_, value) => (value instanceof Map ? [...value] : value));

const base = { v: 1, session: 's', at_ms: 1000 };
const max = { id: 'a', name: 'max', lead: true };
let seq = 0;
const event = (type: string, fields: object, agent: object | null = max) => ({ ...base, seq: ++seq, type, ...(agent ? { agent } : {}), ...fields }) as StreamEvent;

test('a recorded run becomes a conversation with one plan', () => {
  const model = whole();
  const shown = transcript(model, null).map((item) => item.k);
  assert.deepEqual(shown, ['user', 'text', 'tool', 'plan', 'ask', 'text']);
  assert.equal(isBusy(model), false);
  assert.equal(openQuestions(model).length, 0);
  const plan = [...model.plans.values()][0]!;
  assert.equal(plan.state, 'done');
  assert.deepEqual([...plan.tasks.values()].map((task) => [task.id, task.state, task.attempt, task.proof]), [
    ['cause', 'done', 1, 'unverified'],
    ['design', 'done', 1, 'unverified'],
    ['fix', 'done', 2, 'verified'],
    ['cover', 'done', 1, 'verified'],
  ]);
  assert.deepEqual([...model.agents.values()].map((agent) => agent.name), ['max', 'sam', 'ada', 'leo', 'ray']);
});

test('the text before a plan is shown once', () => {
  const texts = transcript(whole(), null).filter((item) => item.k === 'text');
  assert.equal(texts.length, 2);
  assert.equal(texts[0]!.k === 'text' && texts[0]!.end, 'proposed');
});

test('events that are sent again change nothing', () => {
  const model = whole();
  const before = plainData(model);
  for (const one of run) assert.equal(apply(model, one), false);
  assert.equal(plainData(model), before);
});

test('a break at any event and a resumption lead to the same state', () => {
  const want = plainData(whole());
  for (let at = 0; at <= run.length; at += 7) {
    const model = modelAt(session, run, at);
    // After a break the server may send some events twice.
    for (const one of run.slice(Math.max(0, at - 5))) apply(model, one);
    assert.equal(plainData(model), want, `break at ${at}`);
  }
});

test('pieces of an answer are shown until the answer is there', () => {
  const model = newModel('s');
  apply(model, event('status', { message: 'calls m', model: 'm', iteration: 1 }));
  apply(model, { ...event('content_delta', { iteration: 1, delta: 'Hel' }), seq });
  apply(model, { ...event('content_delta', { iteration: 1, delta: 'lo' }), seq });
  assert.equal(model.live.get('a'), 'Hello');
  apply(model, { ...event('content_delta', { iteration: 1, delta: 'Hello w', whole: true }), seq });
  assert.equal(model.live.get('a'), 'Hello w');
  apply(model, event('final', { iteration: 1, response: 'Hello world', done: true, end: 'answered' }));
  assert.equal(model.live.has('a'), false);
  assert.equal(transcript(model, null).at(-1)!.k, 'text');
});

test('a call has its progress and then its result, as a new object', () => {
  const model = newModel('s');
  apply(model, event('tool_start', { iteration: 1, tool_id: '1.0', tool_name: 'run_shell', tool_args: '{"command":"ls"}', target: 'ls' }));
  const first = model.items[0];
  apply(model, { ...event('status', { message: 'line 1', tool_id: '1.0' }), seq });
  assert.equal(model.calls.get('a/1.0')!.progress, 'line 1');
  apply(model, event('tool_result', { iteration: 1, tool_id: '1.0', tool_name: 'run_shell', summary: 'ok', tool_result: 'done', ending: 'ran', is_error: false, ms: 5 }));
  assert.notEqual(model.items[0], first);
  assert.equal(model.items[0]!.k === 'tool' && model.items[0]!.call.result, 'done');
  assert.equal(model.lanes.get('a')![0]!.to, 1000);
});

test('a question is open until it is answered anywhere', () => {
  const model = newModel('s');
  apply(model, event('agent', { state: 'busy' }));
  apply(model, event('approval', { question: 'q', state: 'asked', tool_id: '1.0', tool_name: 'write_file', message: 'a.txt', preview: '' }));
  assert.deepEqual(openQuestions(model).map((question) => question.id), ['q']);
  apply(model, event('approval', { question: 'q', state: 'answered', said: 'yes', by: 'ada at terminal', message: 'go' }));
  assert.equal(openQuestions(model).length, 0);
  assert.equal(model.questions.get('q')!.by, 'ada at terminal');
});

test('a refused call has a row although it never began', () => {
  const model = newModel('s');
  apply(model, event('tool_result', { iteration: 1, tool_id: '1.0', tool_name: 'write_file', summary: 'no', tool_result: 'not allowed', ending: 'refused', is_error: true, ms: 0 }));
  assert.equal(model.items[0]!.k, 'tool');
});

test('of the failed attempts at a call, the last is shown', () => {
  const model = newModel('s');
  for (const nth of [1, 2, 3]) {
    apply(model, event('status', { message: 'calls m', model: 'm', iteration: 1 }));
    apply(model, event('error', { iteration: 1, message: `attempt ${nth}`, done: false, retry_at_ms: 2000 + nth }));
  }
  assert.deepEqual(model.items.map((item) => item.k === 'error' && item.text), ['attempt 3']);
  apply(model, event('error', { iteration: 1, message: 'given up', done: true, end: 'failed' }));
  assert.equal(model.items.length, 1);
});

test('unknown events and unknown fields are ignored', () => {
  const model = newModel('s');
  assert.doesNotThrow(() => apply(model, event('from_the_future', { wonder: true })));
  assert.equal(model.items.length, 0);
});

test('pieces of an answer count until the answer is stored, whatever other agents do meanwhile', () => {
  const model = newModel('s');
  const leo = { id: 'b', name: 'leo', lead: false };
  apply(model, event('agent', { state: 'busy' }));
  const from = seq;
  apply(model, event('tool_start', { iteration: 1, tool_id: '1', tool_name: 'read_file', tool_args: '{}', target: 'a' }, leo));
  // A page that comes in the middle gets the answer so far, with the mark of its first piece.
  assert.ok(apply(model, { ...event('content_delta', { iteration: 1, delta: 'Hel', whole: true }), seq: from }));
  apply(model, event('content_delta', { iteration: 1, delta: 'lo' }));
  assert.equal(model.live.get('a'), 'Hello');
  apply(model, event('final', { iteration: 1, response: 'Hello', done: true, end: 'answered' }));
  assert.equal(apply(model, { ...event('content_delta', { iteration: 1, delta: 'Hel', whole: true }), seq: from }), false);
  assert.equal(model.live.size, 0);
});

test('the timeline has a lane for each agent, and no bar stays open', () => {
  const model = whole();
  const kinds = new Set<string>();
  for (const [, lane] of model.lanes) {
    for (const segment of lane) {
      kinds.add(segment.kind);
      assert.notEqual(segment.to, null, `${segment.kind} ${segment.label}`);
      assert.ok(segment.to! >= segment.from);
    }
  }
  assert.deepEqual([...kinds].sort(), ['dependency', 'model', 'person', 'tool']);
});

test('a run of 4,000 events is folded quickly', () => {
  const model = newModel('s');
  const took = cpuMs(() => {
    for (let at = 0; at < 2_000; at += 1) {
      apply(model, event('tool_start', { iteration: 1, tool_id: `${at}`, tool_name: 'read_file', tool_args: '{}', target: 'a' }));
      apply(model, event('tool_result', { iteration: 1, tool_id: `${at}`, tool_name: 'read_file', summary: '', tool_result: '', ending: 'ran', is_error: false, ms: 1 }));
    }
  });
  assert.ok(took < 500, `${Math.round(took)} ms`);
  assert.equal(model.items.length, 2_000);
});
