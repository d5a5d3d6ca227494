// The plan as a graph: nodes are buttons over lines drawn from the server's layout.
import { useMemo, useRef, useState } from 'preact/hooks';
import { money } from '../lib/format';
import { cell, edgePath, NODE, size } from '../lib/graph';
import { t, word } from '../lib/i18n';
import type { Layout } from '../lib/types';
import { Avatar, Elapsed, toneOf } from './basics';
import { Icon } from './icons';
import { isActive, type ShownTask } from './plan-parts';

export function PlanGraph({ layout, tasks, picked, onPick }: { layout: Layout; tasks: ShownTask[]; picked: string | null; onPick: (id: string) => void }) {
  const [zoom, setZoom] = useState(1);
  const box = useRef<HTMLDivElement>(null);
  const { width, height } = useMemo(() => size(layout), [layout]);
  const at = useMemo(() => new Map(layout.nodes.map((node) => [node.task, [node.column, node.row] as [number, number]])), [layout]);
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const fit = () => {
    const room = box.current?.clientWidth ?? width;
    setZoom(Math.max(0.25, Math.min(1, (room - 8) / width)));
  };
  // Arrow keys move between nodes as they lie on the screen.
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    const from = at.get((event.target as HTMLElement).dataset.task ?? '');
    if (!step || !from) return;
    event.preventDefault();
    let best: string | null = null;
    let least = Infinity;
    for (const [id, [column, row]] of at) {
      const along = (column - from[0]) * step[0]! + (row - from[1]) * step[1]!;
      const aside = Math.abs((column - from[0]) * step[1]!) + Math.abs((row - from[1]) * step[0]!);
      const far = along + aside * 2;
      if (along > 0 && far < least) [best, least] = [id, far];
    }
    if (best) box.current?.querySelector<HTMLElement>(`[data-task="${CSS.escape(best)}"]`)?.focus();
  };
  return (
    <div class="graph-frame">
      <div class="graph-tools" role="toolbar" aria-label={t('plan.view')}>
        <button type="button" class="ghost icon-btn" aria-label={t('graph.zoom_out')} title={t('graph.zoom_out')} onClick={() => setZoom(Math.max(0.25, zoom / 1.25))}>
          −
        </button>
        <button type="button" class="ghost icon-btn" aria-label={t('graph.zoom_in')} title={t('graph.zoom_in')} onClick={() => setZoom(Math.min(2, zoom * 1.25))}>
          +
        </button>
        <button type="button" class="ghost small" onClick={fit}>
          {t('graph.fit')}
        </button>
      </div>
      <div class="graph-scroll" ref={box} onKeyDown={onKeyDown} role="group" aria-label={t('graph.label')}>
        <div style={{ width: `${width * zoom}px`, height: `${height * zoom}px` }}>
          <div class="graph" style={{ width: `${width}px`, height: `${height}px`, transform: `scale(${zoom})` }}>
            <svg width={width} height={height} aria-hidden="true">
              <defs>
                {['plain', 'critical', 'live'].map((kind) => (
                  <marker key={kind} id={`arrow-${kind}`} viewBox="0 0 8 8" refX="6" refY="4" markerUnits="userSpaceOnUse" markerWidth="11" markerHeight="11" orient="auto-start-reverse">
                    <path d="M0 0.500 7 4 0 7.500z" class={`arrow ${kind}`} />
                  </marker>
                ))}
              </defs>
              {layout.edges.map((edge) => {
                const [from, to] = [at.get(edge.from), at.get(edge.to)];
                if (!from || !to) return null;
                const critical = byId.get(edge.from)?.critical && byId.get(edge.to)?.critical;
                const live = isActive(byId.get(edge.to) ?? NO_TASK);
                const kind = live ? 'live' : critical ? 'critical' : 'plain';
                return <path key={`${edge.from} ${edge.to}`} d={edgePath(from, to, edge.via)} class={`edge ${kind}${edge.when ? ' when' : ''}`} marker-end={`url(#arrow-${kind})`} />;
              })}
            </svg>
            {tasks.map((task) => {
              const spot = at.get(task.id);
              if (!spot) return null;
              const { x, y } = cell(...spot);
              return <Node key={task.id} task={task} x={x} y={y} picked={picked === task.id} onPick={() => onPick(task.id)} />;
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

const NO_TASK = { startedAt: null, endedAt: null, state: 'planned' } as ShownTask;

function Node({ task, x, y, picked, onPick }: { task: ShownTask; x: number; y: number; picked: boolean; onPick: () => void }) {
  const running = isActive(task);
  const tone = toneOf(task.state);
  return (
    <button
      type="button"
      data-task={task.id}
      class={`node tone-${tone}${running ? ' running' : ''}${task.critical ? ' critical' : ''}${task.skip ? ' struck' : ''}`}
      aria-pressed={picked}
      onClick={onPick}
      style={{ left: `${x}px`, top: `${y}px`, width: `${NODE.width}px`, height: `${NODE.height}px` }}
    >
      <span class="node-top">
        <Avatar name={task.owner} size="s" busy={running} />
        <span class="grow ellipsis small muted">{task.owner}</span>
        {task.gated && <Icon name="lock" size={13} />}
        {task.proof === 'verified' && task.endedAt !== null && <Icon name="audit" size={14} />}
        {task.attempt > 1 && <span class="tiny-text muted">×{task.attempt}</span>}
      </span>
      <span class="node-title">{task.title}</span>
      <span class="node-foot tiny-text">
        <span class={`dot tone-${tone}`} aria-hidden="true" />
        <span class="grow">{word('task', task.state)}</span>
        {task.startedAt !== null && <Elapsed from={task.startedAt} to={running ? null : (task.endedAt ?? task.startedAt)} />}
        {task.nano > 0 && <span>{money(task.nano)}</span>}
      </span>
    </button>
  );
}
