// Attachments, diffs, edits of a plan, the graph, the timeline's scale, completion, places.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pieces, refusal, type Attachment } from '../../src/lib/attach';
import { looksLikeDiff, parseDiff } from '../../src/lib/diff';
import { edgePath, size } from '../../src/lib/graph';
import type { Segment } from '../../src/lib/model';
import { link, parsePlace } from '../../src/lib/router';
import type { PlanTask } from '../../src/lib/types';
import { measure, timeScale } from '../../src/screens/timeline';
import { choose, wordAt } from '../../src/ui/composer';
import { editsOf } from '../../src/ui/edit-plan';
import { changeOf } from '../../src/ui/transcript';
import { cpuMs } from './cpu';

test('a unified diff has files, numbers and marked words', () => {
  const text = 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ fn main\n one\n-let a = 1;\n+let a = 2;\n three\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n---- not a header\n';
  assert.ok(looksLikeDiff(text));
  const [x, gone] = parseDiff(text);
  assert.deepEqual([x!.path, x!.added, x!.removed], ['x', 1, 1]);
  assert.deepEqual(x!.hunks[0]!.lines.map((line) => [line.kind, line.before, line.after]), [['same', 1, 1], ['del', 2, null], ['add', null, 2], ['same', 3, 3]]);
  assert.deepEqual(x!.hunks[0]!.lines[2]!.mark, [8, 9]);
  assert.deepEqual([gone!.path, gone!.hunks[0]!.lines[0]!.text], ['gone', '--- not a header']);
});

test('an edit of a file is shown as a diff', () => {
  const diff = changeOf({ path: 'a.sh', old: 'x\ny\nz', new: 'x\nY\nz' })!;
  assert.deepEqual(parseDiff(diff)[0]!.hunks[0]!.lines.map((line) => line.kind), ['same', 'del', 'add', 'same']);
  assert.equal(changeOf({ command: 'ls' }), null);
});

const task = (id: string, more: Partial<PlanTask> = {}): PlanTask => ({ id, title: id, description: 'd', agent_name: 'leo', depends_on: [], status: 'planned', retry_count: 0, max_retries: 2, ...more });
const fields = (id: string, more: object = {}) => ({ id, title: id, description: 'd', agent: 'leo', needs: [] as string[], verify: '', model: '', usd: '', skip: false, removed: false, ...more });

test('the form of a plan becomes edits', () => {
  const tasks = [task('a'), task('b', { depends_on: ['a'], verify: ['t'] })];
  const same = [fields('a'), fields('b', { needs: ['a'], verify: 't' })];
  assert.deepEqual(editsOf(tasks, same), []);
  assert.deepEqual(editsOf(tasks, [fields('a', { agent: 'ray', usd: '0.5' }), fields('b', { needs: [], verify: 't\nu', skip: true })]), [
    { assign: { task: 'a', agent: 'ray' } },
    { budget: { task: 'a', budget: { nano: 500_000_000 } } },
    { needs: { task: 'b', needs: [] } },
    { verify: { task: 'b', verify: ['t', 'u'] } },
    { skip: { task: 'b', skip: true } },
  ]);
  assert.deepEqual(editsOf(tasks, [fields('a', { removed: true }), fields('b', { needs: ['a'], verify: 't', title: 'B' })]), [{ retitle: { task: 'b', text: 'B' } }, { remove: { task: 'a' } }]);
});

test('a plan of 500 tasks is laid out at once', () => {
  const nodes = Array.from({ length: 500 }, (_, nth) => ({ task: `t${nth}`, column: nth % 25, row: Math.floor(nth / 25) }));
  const edges = nodes.slice(25).map((node, nth) => ({ from: `t${nth}`, to: node.task, via: [] as [number, number][] }));
  const took = cpuMs(() => {
    const { width, height } = size({ columns: 25, rows: 20, nodes, edges });
    const paths = edges.map((_, nth) => edgePath([nth % 25, 0], [(nth % 25) + 1, 1], [[nth % 25, 2]]));
    assert.ok(width > 5000 && height > 1500 && paths.every((path) => !path.includes('NaN')));
  });
  assert.ok(took < 50, `${Math.round(took)} ms`);
});

const segment = (from: number, to: number, kind: Segment['kind'] = 'model'): Segment => ({ kind, from, to, label: '', item: null });

test('long pauses are short on the timeline, and the scale can be read backwards', () => {
  const scale = timeScale([[segment(0, 1000), segment(1_000_000, 1_001_000)]], 0, 1_001_000, true);
  assert.ok(scale.at(1_000_000) - scale.at(1000) < 0.8);
  for (const at of [0, 500, 1000, 1_000_500, 1_001_000]) assert.ok(Math.abs(scale.back(scale.at(at)) - at) < 1, String(at));
});

test('work at the same time counts as parallel', () => {
  assert.equal(measure([[segment(0, 10)], [segment(0, 10)]], 10).parallel, 2);
  assert.equal(measure([[segment(0, 10)], [segment(10, 20)]], 20).parallel, 1);
});

test('completion begins with the mark, and skills only at the start', () => {
  assert.deepEqual(wordAt('see @li', 7), { mark: '@', from: 4, word: 'li' });
  assert.deepEqual(wordAt('/re', 3), { mark: '/', from: 0, word: 're' });
  assert.equal(wordAt('a /re', 5), null);
  assert.equal(wordAt('ada@example', 11), null);
  const all = { paths: ['docs/lib.md', 'lib/a.sh'], skills: [{ name: 'review', description: '' }], agents: [{ name: 'leo', role: 'coder', description: '' }] };
  assert.deepEqual(choose(all, '@', 'lib', []).map((one) => one.label), ['lib/a.sh', 'docs/lib.md']);
  assert.deepEqual(choose(all, '/', 'r', []).map((one) => one.insert), ['/review ']);
});

test('a place survives the address', () => {
  const place = parsePlace(link(['s', 'ses_1', 'plan', 'a/b c'], { at: '5.1' }));
  assert.deepEqual(place.path, ['s', 'ses_1', 'plan', 'a/b c']);
  assert.equal(place.query.get('at'), '5.1');
  assert.deepEqual(parsePlace('#/%E0%A4%A').path, ['%E0%A4%A']);
});

test('mentioned files of the session are found in a text', () => {
  const paths = (text: string) => pieces(text).flatMap((piece) => (typeof piece === 'string' ? [] : [piece.path]));
  assert.deepEqual(paths('see @files/a.png and @"files/my notes.txt", then @files/out/b.md.'), ['a.png', 'my notes.txt', 'out/b.md']);
  assert.deepEqual(paths('@src/files/a.png, files/b.txt and "@filesystem/x"'), []);
  assert.equal(pieces('see @files/a.png.').map((piece) => (typeof piece === 'string' ? piece : piece.shown)).join(''), 'see @files/a.png.');
});

test('a file is refused that is empty, too large or one too many', () => {
  const limits = { bytes: 100, image_bytes: 50, files: 2, images: 1 };
  const file = (size: number, type = 'text/plain') => new File([new Uint8Array(size)], 'a', { type });
  const attached = (one: File): Attachment => ({ id: 0, file: one, preview: null, added: null });
  assert.equal(refusal(file(100), [], limits), null);
  assert.match(refusal(file(0), [], limits)!, /empty/);
  assert.match(refusal(file(101), [], limits)!, /at most 100 B/);
  assert.match(refusal(file(51, 'image/png'), [], limits)!, /at most 50 B/);
  assert.match(refusal(file(1), [attached(file(1)), attached(file(1))], limits)!, /at most 2 files/);
  assert.match(refusal(file(1, 'image/png'), [attached(file(1, 'image/png'))], limits)!, /at most 1 picture/);
});
