#!/usr/bin/env bash
# The browser interface: types, unit tests, that `web/dist` is what the sources build, and the pages in Chromium against
# the recorded team. Usage: scripts/web.sh [PROGRAM]; without PROGRAM, the one that cargo built last.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/packages.sh

need_package npm npm
need_package chromium chromium

program="${1:-${CARGO_TARGET_DIR:-target}/debug/max-team}"
program="$(cd "$(dirname "$program")" && pwd)/$(basename "$program")"

cd web
[ -d node_modules ] || npm ci --no-audit --no-fund --silent
say "web: types and unit tests"
npm run --silent check
npm test --silent
say "web: dist is up to date"
node scripts/source-hash.mjs
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
npx --no-install vite build --logLevel error --outDir "$fresh/dist" --emptyOutDir
diff --recursive --exclude SOURCE_SHA256 "$fresh/dist" dist
say "web: the pages in Chromium"
MAX_TEAM_BIN="$program" npm run --silent test:browser
