// Line icons, drawn here: no font and no sprite is loaded.
const PATHS = {
  now: 'M12 3v3M12 18v3M3 12h3M18 12h3M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8',
  chat: 'M4 5h16v11H9l-5 4z',
  inbox: 'M4 13 6.5 5h11L20 13v6H4zM4 13h5l1.5 2.5h3L15 13h5',
  plan: 'M4 5h6v5H4zM14 14h6v5h-6zM14 4h6v5h-6zM10 7h4M7 10v6.5h7',
  timeline: 'M4 6h9M8 12h10M6 18h7',
  replay: 'M4 12a8 8 0 1 0 2.5-5.8M4 4v4h4M12 8v4l3 2',
  messages: 'M4 6h16v12H4zM4 7l8 6 8-6',
  team: 'M9 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6M3.5 19c.5-3.5 2.6-5 5.5-5s5 1.5 5.5 5M15.5 5.3a3 3 0 0 1 0 5.4M17 14.3c2 .6 3.2 2.2 3.5 4.7',
  cost: 'M12 4v16M16 7.5c-.7-1.2-2.2-2-4-2-2.3 0-4 1.200-4 3s1.500 2.600 4 3.300 4.200 1.500 4.200 3.500-1.800 3.200-4.200 3.200c-2 0-3.500-.8-4.300-2.200',
  trace: 'M5 4v16M5 8h6M5 14h6M11 6h8v4h-8zM11 12h6v4h-6z',
  memory: 'M12 5a3 3 0 0 0-5.600-1A3.500 3.500 0 0 0 4 9.500 3.500 3.500 0 0 0 5 16a3.500 3.500 0 0 0 7 1zM12 5a3 3 0 0 1 5.600-1A3.500 3.500 0 0 1 20 9.500a3.500 3.500 0 0 1-1 6.500 3.500 3.500 0 0 1-7 1zM12 5v12',
  review: 'M6 3h8l4 4v14H6zM9 12h6M12 9v6M9 18h6',
  settings: 'M5 7h9M18 7h1M5 17h1M10 17h9M14 7a2 2 0 1 0 4 0 2 2 0 0 0-4 0M6 17a2 2 0 1 0 4 0 2 2 0 0 0-4 0',
  audit: 'M12 3 5 6v6c0 4 3 7 7 9 4-2 7-5 7-9V6zM9 12l2 2 4-4',
  plus: 'M12 5v14M5 12h14',
  send: 'M5 12h13M12 5l7 7-7 7',
  stop: 'M7 7h10v10H7z',
  check: 'M5 12.500 10 17 19 7',
  cross: 'M6 6l12 12M18 6 6 18',
  chevron: 'M9 6l6 6-6 6',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13.500 6.500l4 4',
  clock: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4l3 2',
  warn: 'M12 4 3 20h18zM12 10v4M12 17v.5',
  info: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 11v5M12 8v.5',
  lock: 'M6 11h12v9H6zM8.500 11V8a3.500 3.500 0 0 1 7 0v3',
  bell: 'M6 16V11a6 6 0 0 1 12 0v5l1.500 2h-15zM10 20.500h4',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.400 1.400M17.600 17.600 19 19M5 19l1.400-1.400M17.600 6.400 19 5',
  moon: 'M20 14.500A8 8 0 0 1 9.500 4 8 8 0 1 0 20 14.500',
  auto: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16',
  globe: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M4 12h16M12 4c5 5 5 11 0 16M12 4c-5 5-5 11 0 16',
  attach: 'M19 11l-7.500 7.500a4.500 4.500 0 0 1-6.400-6.400L13 4.200a3 3 0 0 1 4.300 4.300l-7.800 7.700a1.500 1.500 0 0 1-2.100-2.100L14 7.500',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  terminal: 'M4 5h16v14H4zM7 9l3 3-3 3M12 15h4',
  search: 'M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12M15.500 15.500 20 20',
  play: 'M8 5v14l11-7z',
  pause: 'M8 5v14M16 5v14',
  menu: 'M4 7h16M4 12h16M4 17h16',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  fork: 'M7 4v6a4 4 0 0 0 4 4h2a4 4 0 0 1 4 4v2M17 4v4a4 4 0 0 1-4 4M7 20v-6',
  agent: 'M12 4v2M6 8h12v9H6zM9.500 12v1M14.500 12v1M9 20h6M3.500 11v3M20.500 11v3',
  down: 'M12 5v14M6 13l6 6 6-6',
  path: 'M3 12h15M13 6l6 6-6 6',
  eye: 'M3 12c2.500-4.500 5.500-6.500 9-6.500s6.500 2 9 6.500c-2.500 4.500-5.500 6.500-9 6.500S5.500 16.500 3 12M12 9.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5',
  book: 'M5 4h6a3 3 0 0 1 1 .5A3 3 0 0 1 13 4h6v14h-6l-1 1-1-1H5zM12 4.500V19',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo({ size = 26 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="9" fill="#4b44d6" />
      <path d="M9 22V11l7 7 7-7v11" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round" />
      <circle cx="9" cy="9.200" r="2.200" fill="#ffd58a" />
      <circle cx="23" cy="9.200" r="2.200" fill="#9fe0c8" />
    </svg>
  );
}
