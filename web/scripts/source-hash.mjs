// Hashes what `dist` is built from, so that a test without Node can tell whether `dist` is up to date.
// The algorithm is described in web/README.md; a change here must be made there and in the Rust test.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = dirname(dirname(fileURLToPath(import.meta.url)));

function files(dir) {
  return readdirSync(join(web, dir), { withFileTypes: true }).flatMap((entry) => {
    const path = `${dir}/${entry.name}`;
    return entry.isDirectory() ? files(path) : [path];
  });
}

export function sourceHash() {
  const paths = [...files('src'), 'package-lock.json', 'vite.config.ts'];
  paths.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const hash = createHash('sha256');
  for (const path of paths) {
    hash.update(path).update('\0').update(readFileSync(join(web, path)));
  }
  return hash.digest('hex');
}

const stored = join(web, 'dist', 'SOURCE_SHA256');
if (process.argv.includes('--write')) {
  writeFileSync(stored, `${sourceHash()}\n`);
} else if (readFileSync(stored, 'utf8').trim() !== sourceHash()) {
  console.error('web/dist is older than its sources: run `npm run build` in web/');
  process.exit(1);
}
