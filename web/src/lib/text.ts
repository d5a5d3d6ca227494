// Text that comes from agents, tools and commands is made plain before it is shown.

// CSI, OSC (ended by BEL or ST), and other two-character escape sequences.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)?|[PX^_][^\u001b]{0,4096}(?:\u001b\\)?|[ -/]*[0-~])|\u009b[0-?]*[ -/]*[@-~]/g;
// Control characters except tab and newline, and characters that reorder or hide text.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Removes terminal escapes, control characters and bidirectional overrides. */
export function plain(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(ESCAPES, '').replace(/^.*\r(?!$)/gm, '').replace(CONTROLS, '');
}

// What JSON texts hold if a string in them is not plain.
const ESCAPED = /\\u00[0189]|\\r|[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;

/** Reads JSON; all strings in it are made plain. */
export function parsePlain(json: string): unknown {
  return ESCAPED.test(json) ? JSON.parse(json, (_, value: unknown) => (typeof value === 'string' ? plain(value) : value)) : JSON.parse(json);
}

/** The text, cut to a number of characters. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const end = /[\ud800-\udbff]/.test(text.charAt(max - 1)) ? max - 1 : max;
  return `${text.slice(0, end)}…`;
}

/** Long ids are shown by their ends, which tell them apart. */
export function shortIds(text: string): string {
  return text.replace(/\b((?:ses|agt|pln|env|trn|ask)_)[0-9a-f]{20,}\b/g, (id, kind: string) => `${kind}${id.slice(-6)}`);
}

/** The first line that is not empty. */
export function firstLine(text: string): string {
  return text.split('\n', 40).map((line) => line.trim()).find((line) => line !== '') ?? '';
}
