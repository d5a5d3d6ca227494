import { useEffect, useState } from 'preact/hooks';
import { get } from '../lib/api';
import { explain } from '../lib/store';

/** Fetches when `path` or `change` changes; the old answer stays until the new one is there. */
export function useFetch<T>(path: string | null, change: unknown = 0): { data: T | null; error: string } {
  const [state, setState] = useState<{ path: string | null; data: T | null; error: string }>({ path: null, data: null, error: '' });
  useEffect(() => {
    if (path === null) return;
    let current = true;
    get<T>(path).then(
      (data) => current && setState({ path, data, error: '' }),
      (error) => current && setState((before) => ({ path, data: before.path === path ? before.data : null, error: explain(error) })),
    );
    return () => {
      current = false;
    };
  }, [path, change]);
  return state.path === path ? state : { data: null, error: '' };
}

/** A value that follows another one with a delay, so that a burst of changes counts once. */
export function useSettled<T>(value: T, delay = 600): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), delay);
    return () => clearTimeout(timer);
  }, [value, delay]);
  return settled;
}
