// From the server's grid to points on the screen.
import type { Layout } from './types';

export const NODE = { width: 216, height: 84, gapX: 72, gapY: 22, pad: 24 };

export interface Point {
  x: number;
  y: number;
}

export function cell(column: number, row: number): Point {
  return { x: NODE.pad + column * (NODE.width + NODE.gapX), y: NODE.pad + row * (NODE.height + NODE.gapY) };
}

export function size(layout: Layout): { width: number; height: number } {
  const rows = Math.max(layout.rows, 1, ...layout.edges.flatMap((edge) => (edge.via ?? []).map(([, row]) => row + 1)));
  return {
    width: NODE.pad * 2 + Math.max(1, layout.columns) * (NODE.width + NODE.gapX) - NODE.gapX,
    height: NODE.pad * 2 + rows * (NODE.height + NODE.gapY) - NODE.gapY,
  };
}

/** A smooth line from the right side of a node to the left side of another, through the free cells between. */
export function edgePath(from: [number, number], to: [number, number], via: [number, number][] = []): string {
  const middle = NODE.height / 2;
  const start = cell(...from);
  const end = cell(...to);
  let x = start.x + NODE.width;
  let y = start.y + middle;
  let path = `M${x} ${y}`;
  const curve = (toX: number, toY: number) => {
    const half = (toX - x) / 2;
    path += toY === y ? `H${toX}` : `C${x + half} ${y} ${toX - half} ${toY} ${toX} ${toY}`;
    x = toX;
    y = toY;
  };
  for (const [column, row] of via) {
    const free = cell(column, row);
    curve(free.x, free.y + middle);
    x = free.x + NODE.width;
    path += `H${x}`;
  }
  curve(end.x - 5, end.y + middle);
  return path;
}
