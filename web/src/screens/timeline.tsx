// A lane per agent: when it called models, ran tools, or waited, and for what.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { clock, duration } from '../lib/format';
import { t } from '../lib/i18n';
import { isBusy, type Model, type Segment, type SegmentKind } from '../lib/model';
import { go } from '../lib/router';
import { plain } from '../lib/text';
import { Avatar, Empty, Segmented } from '../ui/basics';
import { Figure } from './plan';
import type { SessionProps } from './session';

const KINDS: SegmentKind[] = ['model', 'tool', 'person', 'dependency', 'limit'];
const LANE = 34;
const TOP = 26;
/** Pauses longer than this are drawn short. */
const PAUSE_MAX_MS = 60_000;

export function TimelineScreen({ id, model, version }: SessionProps) {
  const [zoom, setZoom] = useState(1);
  const [gaps, setGaps] = useState<'short' | 'true'>('short');
  const [width, setWidth] = useState(800);
  const box = useRef<HTMLDivElement>(null);
  const live = isBusy(model);
  const [tick, setTick] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(Math.max(320, (box.current?.clientWidth ?? 800) - 4)));
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => setTick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [live]);
  const end = live ? Math.max(Date.now(), model.lastAt) : model.lastAt;
  const lanes = useMemo(() => laneList(model), [model, version]);
  const scale = useMemo(() => timeScale(lanes.map((lane) => lane.segments), model.firstAt, end, gaps === 'short'), [lanes, end, gaps, tick]);
  const figures = useMemo(() => measure(lanes.map((lane) => lane.segments), end), [lanes, end]);
  if (lanes.length === 0) return <Empty icon="timeline" title={t('timeline.empty')} />;
  const full = width * zoom;
  const x = (at: number) => 2 + scale.at(at) * (full - 4);
  const height = TOP + lanes.length * LANE + 6;
  return (
    <div class="page wide">
      <div class="figures">
        <Figure label={t('timeline.span')} value={duration(end - model.firstAt)} />
        <Figure label={t('timeline.model')} value={duration(figures.model)} />
        <Figure label={t('timeline.tool')} value={duration(figures.tool)} />
        <Figure label={t('timeline.person')} value={duration(figures.person)} />
        <Figure label={t('timeline.parallel')} value={figures.parallel.toFixed(1)} />
      </div>
      <div class="row wrap">
        <ul class="legend tiny-text">
          {KINDS.map((kind) => (
            <li key={kind}>
              <span class={`swatch seg-${kind}`} aria-hidden="true" /> {t(`timeline.${kind}`)}
            </li>
          ))}
        </ul>
        <span class="grow" />
        <Segmented
          label={t('timeline.gaps')}
          value={gaps}
          options={[
            ['short', t('timeline.gaps_short')],
            ['true', t('timeline.gaps_true')],
          ]}
          onChange={setGaps}
        />
        <label class="inline-field small">
          {t('timeline.zoom')}
          <input type="range" min="1" max="20" step="0.5" value={zoom} onInput={(event) => setZoom(Number(event.currentTarget.value))} />
        </label>
      </div>
      <div class="card flush timeline">
        <ul class="lane-names" aria-hidden="true">
          {lanes.map((lane) => (
            <li key={lane.id}>
              <Avatar name={lane.name} size="s" />
              <span class="ellipsis">{lane.name}</span>
            </li>
          ))}
        </ul>
        <div class="lane-scroll" ref={box} tabIndex={0} role="group" aria-label={t('tab.timeline')}>
          <svg width={full} height={height}>
            {ticks(scale, full).map((at) => (
              <g key={at}>
                <line class="grid" x1={x(at)} x2={x(at)} y1={TOP - 6} y2={height} />
                <text class="tick" x={x(at) + 3} y={14}>
                  {clock(at)}
                </text>
              </g>
            ))}
            {lanes.map((lane, row) => (
              <g key={lane.id} transform={`translate(0 ${TOP + row * LANE})`}>
                <line class="lane-line" x1={0} x2={full} y1={LANE} y2={LANE} />
                {lane.segments.map((segment, nth) => {
                  const left = x(segment.from);
                  const right = x(segment.to ?? end);
                  const label = `${lane.name}: ${t(`timeline.${segment.kind}`)} ${labelOf(model, segment)}, ${clock(segment.from)}, ${duration((segment.to ?? end) - segment.from)}`;
                  const show = () => go(['s', id, 'agent', lane.id], segment.item ? { at: segment.item } : undefined);
                  return (
                    <rect
                      key={nth}
                      class={`seg seg-${segment.kind}${segment.to === null ? ' open' : ''}`}
                      x={left}
                      y={segment.kind === 'tool' ? 17 : 7}
                      width={Math.max(2, right - left)}
                      height={segment.kind === 'tool' ? 11 : segment.kind === 'model' ? 9 : 21}
                      rx={3}
                      tabIndex={0}
                      role="link"
                      aria-label={label}
                      onClick={show}
                      onKeyDown={(event) => (event.key === 'Enter' || event.key === ' ') && show()}
                    >
                      <title>{label}</title>
                    </rect>
                  );
                })}
              </g>
            ))}
          </svg>
        </div>
      </div>
      <p class="muted small">{t('timeline.hint')}</p>
    </div>
  );
}

interface Lane {
  id: string;
  name: string;
  segments: Segment[];
}

function laneList(model: Model): Lane[] {
  return [...model.agents.values()].map((agent) => ({ id: agent.id, name: agent.name, segments: order(model.lanes.get(agent.id) ?? []) })).filter((lane) => lane.segments.length > 0);
}

/** Waiting is drawn below work. */
function order(segments: Segment[]): Segment[] {
  const weight = (segment: Segment) => (segment.kind === 'model' || segment.kind === 'tool' ? 1 : 0);
  return [...segments].sort((a, b) => weight(a) - weight(b) || a.from - b.from);
}

function labelOf(model: Model, segment: Segment): string {
  if (segment.kind === 'person') return plain(model.questions.get(segment.label)?.message ?? '');
  return plain(segment.label.replace(/#[^#]*$/, ''));
}

interface Scale {
  /** From 0 to 1. */
  at: (time: number) => number;
  back: (part: number) => number;
}

/** Time on the page. Long pauses in which no agent works are shortened on request. */
export function timeScale(lanes: Segment[][], first: number, end: number, short: boolean): Scale {
  const span = Math.max(1, end - first);
  if (!short) return { at: (time) => (time - first) / span, back: (part) => first + part * span };
  const busy = lanes
    .flat()
    .filter((segment) => segment.kind !== 'person' && segment.kind !== 'dependency')
    .map((segment) => [segment.from, segment.to ?? end] as [number, number])
    .sort((a, b) => a[0] - b[0]);
  const points: [number, number][] = [[first, 0]];
  let until = first;
  let shown = 0;
  const advance = (to: number, pause: boolean) => {
    if (to <= until) return;
    shown += pause ? Math.min(to - until, PAUSE_MAX_MS / 12) : to - until;
    until = to;
    points.push([until, shown]);
  };
  for (const [from, to] of busy) {
    advance(from, true);
    advance(to, false);
  }
  advance(end, true);
  const total = Math.max(1, shown);
  const find = (value: number, from: 0 | 1, to: 0 | 1) => {
    let low = 0;
    let high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle]![from] <= value) low = middle;
      else high = middle;
    }
    const [a, b] = [points[low]!, points[Math.min(high, points.length - 1)]!];
    const width = b[from] - a[from];
    const part = width > 0 ? Math.max(0, Math.min(1, (value - a[from]) / width)) : 0;
    return a[to] + part * (b[to] - a[to]);
  };
  return { at: (time) => find(time, 0, 1) / total, back: (part) => find(part * total, 1, 0) };
}

function ticks(scale: Scale, width: number): number[] {
  const count = Math.max(2, Math.floor(width / 130));
  return Array.from({ length: count }, (_, nth) => scale.back(nth / count));
}

/** Time by kind, and how many agents worked at once while any did. */
export function measure(lanes: Segment[][], end: number): Record<SegmentKind, number> & { parallel: number } {
  const sums = { model: 0, tool: 0, person: 0, dependency: 0, limit: 0 };
  const steps: [number, number][] = [];
  for (const lane of lanes) {
    for (const segment of lane) {
      const to = segment.to ?? end;
      sums[segment.kind] += Math.max(0, to - segment.from);
      if ((segment.kind === 'model' || segment.kind === 'tool') && to > segment.from) steps.push([segment.from, 1], [to, -1]);
    }
  }
  steps.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  let open = 0;
  let covered = 0;
  let since = 0;
  for (const [at, step] of steps) {
    if (open === 0 && step > 0) since = at;
    open += step;
    if (open === 0) covered += at - since;
  }
  return { ...sums, parallel: covered > 0 ? (sums.model + sums.tool) / covered : 0 };
}
