// Questions that were answered while this page was open, with who answered them and where.
import { signal } from '@preact/signals';

export interface Answered {
  question: string;
  words: string;
  said: string;
  by: string;
  at: number;
}

/** As many as the page lists. */
const ANSWERED_MAX = 30;

export const answeredHere = signal<Answered[]>([]);

export function noteAnswer(one: Answered) {
  const others = answeredHere.value.filter((other) => other.question !== one.question);
  answeredHere.value = [one, ...others].slice(0, ANSWERED_MAX);
}
