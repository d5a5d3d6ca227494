// A model that says what a test tells it to, at the address that Anthropic's would have.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Reply {
  text?: string;
  /** A call: the tool and its input. */
  tool?: [string, object];
  /** How often it is called, at the same time. */
  times?: number;
  /** Half of the text is said before, the rest after; without a text, the call waits. */
  until?: Promise<unknown>;
}

export interface Asked {
  /** What the conversation begins with, and the last that the model was told. */
  first: string;
  last: string;
  /** How often the model has spoken in this conversation. */
  spoken: number;
}

export interface Model {
  url: string;
  asked: Asked[];
  /** Resolves once the model was asked something like this. */
  heard: (fits: (asked: Asked) => boolean) => Promise<void>;
  stop: () => void;
}

export async function startModel(script: (asked: Asked) => Reply | undefined): Promise<Model> {
  const asked: Asked[] = [];
  const waiting = new Set<() => void>();
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => (body += piece));
    request.on('end', () => {
      const messages = (JSON.parse(body || '{}') as { messages?: { role: string; content: unknown }[] }).messages ?? [];
      const said = messages.filter((message) => message.role === 'user').map((message) => textOf(message.content));
      const one = { first: said[0] ?? '', last: said.at(-1) ?? '', spoken: messages.length - said.length };
      asked.push(one);
      for (const look of waiting) look();
      void speak(response, script(one) ?? { text: 'Nothing more to say.' });
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    heard: (fits) =>
      new Promise((done) => {
        const look = () => {
          if (!asked.some(fits)) return;
          waiting.delete(look);
          done();
        };
        waiting.add(look);
        look();
      }),
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content);
}

async function speak(response: ServerResponse, { text = '', tool, times = 1, until }: Reply) {
  const send = (data: { type: string } & Record<string, unknown>) => response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
  const usage = { input_tokens: 1000, output_tokens: 100, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  send({ type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-test', content: [], stop_reason: null, stop_sequence: null, usage } });
  const block = (index: number, start: object, deltas: object[]) => {
    send({ type: 'content_block_start', index, content_block: start });
    for (const delta of deltas) send({ type: 'content_block_delta', index, delta });
  };
  const half = Math.ceil(text.length / 2);
  if (text) {
    block(0, { type: 'text', text: '' }, [{ type: 'text_delta', text: text.slice(0, half) }]);
  }
  await until;
  if (text) {
    send({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: text.slice(half) } });
    send({ type: 'content_block_stop', index: 0 });
  }
  for (let nth = 0; tool && nth < times; nth += 1) {
    const index = (text ? 1 : 0) + nth;
    block(index, { type: 'tool_use', id: `call_${Math.random().toString(36).slice(2)}`, name: tool[0], input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(tool[1]) }]);
    send({ type: 'content_block_stop', index });
  }
  send({ type: 'message_delta', delta: { stop_reason: tool ? 'tool_use' : 'end_turn', stop_sequence: null }, usage });
  send({ type: 'message_stop' });
  response.end();
}

/** A promise that a test keeps when it wants to. */
export function gate(): { open: () => void; opened: Promise<void> } {
  let open = () => {};
  const opened = new Promise<void>((done) => (open = done));
  return { open, opened };
}

/** A team that proposes a plan of two tasks after "please" and carries it out; `during` may say something else first. */
export function planner(during: (asked: Asked) => Reply | undefined = () => undefined) {
  return (asked: Asked): Reply | undefined => {
    const own = during(asked);
    if (own) return own;
    if (asked.first.includes('# Your task: look')) return { text: 'The log says that counts are ignored.' };
    if (asked.first.includes('# Your task: mend')) return asked.spoken === 0 ? { tool: ['write_file', { path: 'total.txt', content: '750\n' }] } : { text: 'The total is mended.' };
    if (asked.last.includes('is over:')) return { text: 'Three coffees cost 750 again.' };
    if (/please/i.test(asked.last)) return { text: 'Here is a plan.', tool: ['submit_plan', { goal: 'Totals are right again', tasks: TASKS }] };
    return { text: 'All right.' };
  };
}

const TASKS = [
  { id: 'look', title: 'look', agent: 'sam', description: 'Find out why.' },
  { id: 'mend', title: 'mend', agent: 'leo', description: 'Mend it.', depends_on: ['look'], owns: ['total.txt'] },
];
