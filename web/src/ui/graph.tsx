// The plan as a graph: nodes are buttons over lines drawn from the server's layout.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { money } from '../lib/format';
import { cell, edgePath, NODE, size } from '../lib/graph';
import { t, word } from '../lib/i18n';
import type { Layout } from '../lib/types';
import { Avatar, Elapsed, toneOf } from './basics';
import { Icon } from './icons';
import { isActive, type ShownTask } from './plan-parts';

/** Plans with more tasks are drawn only where they are looked at. */
const ALL_DRAWN_MAX = 120;
/** The drawn part grows and moves in steps of this many pixels. */
const STEP = 320;

interface Part {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** The part of the graph that is in sight, with a margin; `null`: all of it. */
function useSight(box: { current: HTMLDivElement | null }, zoom: number, all: boolean): Part | null {
  // Before it is measured, the graph is at its start and not larger than the window.
  const [part, setPart] = useState<Part | null>(() => (all ? null : { left: 0, right: innerWidth / zoom, top: 0, bottom: innerHeight / zoom }));
  useLayoutEffect(() => {
    const scroller = box.current;
    if (all || !scroller) {
      setPart(null);
      return;
    }
    const look = () => {
      const step = (value: number, by: number) => (Math.floor(value / zoom / STEP) + by) * STEP;
      const next = { left: step(scroller.scrollLeft, -1), right: step(scroller.scrollLeft + scroller.clientWidth, 2), top: step(scroller.scrollTop, -1), bottom: step(scroller.scrollTop + scroller.clientHeight, 2) };
      setPart((before) => (before && before.left === next.left && before.right === next.right && before.top === next.top && before.bottom === next.bottom ? before : next));
    };
    look();
    scroller.addEventListener('scroll', look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(scroller);
    return () => {
      scroller.removeEventListener('scroll', look);
      observer.disconnect();
    };
  }, [zoom, all]);
  return part;
}

export function PlanGraph({ layout, tasks, picked, onPick }: { layout: Layout; tasks: ShownTask[]; picked: string | null; onPick: (id: string) => void }) {
  const [zoom, setZoom] = useState(1);
  const box = useRef<HTMLDivElement>(null);
  const { width, height } = useMemo(() => size(layout), [layout]);
  const at = useMemo(() => new Map(layout.nodes.map((node) => [node.task, [node.column, node.row] as [number, number]])), [layout]);
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const sight = useSight(box, zoom, tasks.length <= ALL_DRAWN_MAX);
  const inSight = (spot: [number, number]) => {
    if (!sight) return true;
    const { x, y } = cell(...spot);
    return x < sight.right && x + NODE.width > sight.left && y < sight.bottom && y + NODE.height > sight.top;
  };
  const spans = (a: [number, number], b: [number, number]) => {
    if (!sight) return true;
    const [from, to] = [cell(...a), cell(...b)];
    return from.x < sight.right && to.x > sight.left && Math.min(from.y, to.y) < sight.bottom && Math.max(from.y, to.y) + NODE.height > sight.top;
  };
  // A node out of sight is scrolled to first, and gets the focus once it is drawn.
  const wanted = useRef<string | null>(null);
  const focusNode = (id: string): boolean => {
    const node = box.current?.querySelector<HTMLElement>(`[data-task="${CSS.escape(id)}"]`);
    node?.focus();
    return node !== null && node !== undefined;
  };
  useEffect(() => {
    if (wanted.current && focusNode(wanted.current)) wanted.current = null;
  }, [sight]);
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
    if (!best || focusNode(best)) return;
    wanted.current = best;
    const { x, y } = cell(...at.get(best)!);
    box.current?.scrollTo(x * zoom - 100, y * zoom - 100);
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
      <div class={tasks.length <= ALL_DRAWN_MAX ? 'graph-scroll dots' : 'graph-scroll'} ref={box} onKeyDown={onKeyDown} role="group" aria-label={t('graph.label')}>
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
                if (!from || !to || !spans(from, to)) return null;
                const critical = byId.get(edge.from)?.critical && byId.get(edge.to)?.critical;
                const live = isActive(byId.get(edge.to) ?? NO_TASK);
                const kind = live ? 'live' : critical ? 'critical' : 'plain';
                return <path key={`${edge.from} ${edge.to}`} d={edgePath(from, to, edge.via)} class={`edge ${kind}${edge.when ? ' when' : ''}`} marker-end={`url(#arrow-${kind})`} />;
              })}
            </svg>
            {tasks.map((task) => {
              const spot = at.get(task.id);
              if (!spot || !inSight(spot)) return null;
              const { x, y } = cell(...spot);
              return <Node key={task.id} task={task} x={x} y={y} picked={picked === task.id} onPick={onPick} />;
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

const NO_TASK = { startedAt: null, endedAt: null, state: 'planned' } as ShownTask;

function Node({ task, x, y, picked, onPick }: { task: ShownTask; x: number; y: number; picked: boolean; onPick: (id: string) => void }) {
  const running = isActive(task);
  const tone = toneOf(task.state);
  return (
    <button
      type="button"
      data-task={task.id}
      class={`node tone-${tone}${running ? ' running' : ''}${task.critical ? ' critical' : ''}${task.skip ? ' struck' : ''}`}
      aria-pressed={picked}
      onClick={() => onPick(task.id)}
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
