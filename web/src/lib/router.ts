// The place in the interface is the fragment of the address, so that the server needs to know one page only.
import { signal } from '@preact/signals';

export interface Place {
  /** Parts of the path, decoded. */
  path: string[];
  query: URLSearchParams;
}

export function parsePlace(hash: string): Place {
  const [path, query] = hash.replace(/^#\/?/, '').split('?', 2) as [string, string?];
  const decode = (part: string) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query ?? '') };
}

export function link(path: (string | number)[], query?: Record<string, string>): string {
  const search = query ? `?${new URLSearchParams(query)}` : '';
  return `#/${path.map((part) => encodeURIComponent(String(part))).join('/')}${search}`;
}

export const place = signal<Place>(parsePlace(typeof location === 'undefined' ? '' : location.hash));

export function go(path: (string | number)[], query?: Record<string, string>, replace = false) {
  const target = link(path, query);
  if (replace) {
    history.replaceState(null, '', target);
    place.value = parsePlace(target);
  } else {
    location.hash = target;
  }
}

export function startRouter() {
  addEventListener('hashchange', () => {
    place.value = parsePlace(location.hash);
  });
}
