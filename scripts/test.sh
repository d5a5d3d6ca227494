#!/usr/bin/env bash
# Everything that must hold, on a fresh Debian machine: installs what is missing, then format, lints, tests, docs.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/packages.sh

need_build_tools
need_package tmux tmux
need_package strace strace
need_package prometheus prometheus
need_package pytest python3-pytest-cov
need_package npm npm
need_package chromium chromium
need_package Xvfb xvfb
need_package bwrap bubblewrap
need_package ip iproute2

# MCP servers that others wrote, for the tests of our client.
servers="${CARGO_TARGET_DIR:-target}/mcp-servers"
mkdir -p "$servers"
servers="$(cd "$servers" && pwd)"
cp crates/mcp/tests/servers/package.json crates/mcp/tests/servers/package-lock.json "$servers/"
if [ -x "$servers/node_modules/node/bin/node" ] || (say "installing MCP servers from npm" && cd "$servers" && npm ci --no-audit --no-fund --silent); then
  export MAX_TEAM_MCP_SERVERS="$servers"
else
  rm -rf "$servers/node_modules"
  say "the MCP servers cannot be installed from npm: their tests do nothing"
fi
for version in 1 2; do
  if [ ! -d "$servers/python/$version" ]; then
    say "installing version $version of PyPI's mcp"
    python3 -m pip install --quiet --disable-pip-version-check --target "$servers/python/$version.new" \
      --requirement "crates/mcp/tests/servers/python-$version.txt" 2>/dev/null && mv "$servers/python/$version.new" "$servers/python/$version"
  fi
done || true
if [ -d "$servers/python/1" ] && [ -d "$servers/python/2" ]; then
  export MAX_TEAM_MCP_PYTHON="$servers/python"
else
  say "the MCP servers cannot be installed from PyPI: their tests do nothing"
fi

# Registries of packages, for the tests of projects that install some.
registries="${CARGO_TARGET_DIR:-target}/registries"
mkdir -p "$registries"
registries="$(cd "$registries" && pwd)"
cp crates/max-team/tests/it/registries/package.json crates/max-team/tests/it/registries/package-lock.json "$registries/"
if [ ! -d "$registries/node_modules/verdaccio" ]; then
  say "installing verdaccio from npm"
  if ! (cd "$registries" && npm ci --no-audit --no-fund --silent); then
    rm -rf "$registries/node_modules"
    say "verdaccio cannot be installed from npm: its test does nothing"
  fi
fi
if [ ! -d "$registries/python" ]; then
  say "installing pypiserver from PyPI"
  python3 -m pip install --quiet --disable-pip-version-check --target "$registries/python.new" \
    --requirement crates/max-team/tests/it/registries/requirements.txt 2>/dev/null && mv "$registries/python.new" "$registries/python" ||
    say "pypiserver cannot be installed from PyPI: its test does nothing"
fi
export MAX_TEAM_REGISTRIES="$registries"

export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

say "format"
cargo fmt --all --check

say "lints"
cargo clippy --workspace --all-targets --locked -- -D warnings

say "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

say "tests"
if command -v cargo-nextest >/dev/null 2>&1; then
  cargo test --workspace --locked --doc --quiet
  cargo nextest run --workspace --locked --no-fail-fast
else
  cargo test --workspace --locked
fi

if command -v bwrap >/dev/null 2>&1; then
  say "hostile commands, within namespaces that bubblewrap makes"
  MAX_TEAM_SANDBOX=bubblewrap cargo test --locked --quiet -p max-team-sandbox -p max-team-tools --test it
  MAX_TEAM_SANDBOX=bubblewrap cargo test --locked --quiet -p max-team --test it -- obeyed hands running
fi

if [ -n "${MAX_TEAM_MCP_SERVERS:-}" ]; then
  say "conformance with the Model Context Protocol"
  scripts/conformance.sh
else
  say "without npm there is no conformance suite: it is not run"
fi

say "the browser interface"
scripts/web.sh

say "killed and started again"
scripts/crash.sh --short

say "hostile input at random"
seconds="${FUZZ_SECONDS:-60}"
cargo build --quiet --locked --workspace --example fuzz_shell --example fuzz_path
"${CARGO_TARGET_DIR:-target}/debug/examples/fuzz_shell" "$seconds"
"${CARGO_TARGET_DIR:-target}/debug/examples/fuzz_path" "$seconds"

say "all green"
