#!/usr/bin/env bash
# The browser interface: types, unit tests, that `web/dist` is what the sources build, and the pages in Chromium against
# the program. Usage: scripts/web.sh [PROGRAM]; without PROGRAM, the one that cargo built last.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/packages.sh

need_package npm npm
need_package chromium chromium

target="${CARGO_TARGET_DIR:-target}"
program="$(realpath "${1:-$target/debug/max-team}")"

# Vite needs Node 20.19. Where the system's is older, the one that scripts/test.sh installs for MCP servers is used.
is_new_enough() { "$1" -e 'const [major, minor] = process.versions.node.split("."); process.exit(major * 100 + +minor >= 2019 ? 0 : 1)' 2>/dev/null; }
node="$(command -v node)"
is_new_enough "$node" || node="$(realpath -m "$target/mcp-servers/node_modules/node/bin/node")"
is_new_enough "$node" || { say "Node is older than 20.19: the pages are not tested"; exit 0; }

# The packages are kept beside what cargo builds, so that another clone with the same target folder need not fetch them.
if [ ! -d web/node_modules ] || [ -L web/node_modules ]; then
  packages="$(realpath -m "$target/web")"
  mkdir -p "$packages"
  if [ ! -d "$packages/node_modules" ] || ! cmp -s web/package-lock.json "$packages/package-lock.json"; then
    say "installing the packages of web/ from npm"
    cp web/package.json web/package-lock.json "$packages/"
    if ! (cd "$packages" && npm ci --no-audit --no-fund --silent); then
      rm -rf "$packages/node_modules"
      say "the packages of web/ cannot be installed from npm: the pages are not tested"
      exit 0
    fi
  fi
  ln -sfn "$packages/node_modules" web/node_modules
fi

# Runs a script of package.json. Debian's npm runs with Debian's Node only.
cd web
export PATH="$PWD/node_modules/.bin:$(dirname "$node"):$PATH"
script() { sh -c "$(node -p 'require("./package.json").scripts[process.argv[1]]' "$1")"; }

say "web: types and unit tests"
script check
script test
say "web: dist is up to date"
node scripts/source-hash.mjs
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
vite build --logLevel error --outDir "$fresh/dist" --emptyOutDir
diff --recursive --exclude SOURCE_SHA256 "$fresh/dist" dist
say "web: the pages in Chromium"
MAX_TEAM_BIN="$program" script test:browser
