#!/usr/bin/env bash
# What Max Team costs by itself, as ratios against a minimal client in the same run.
# scripts/bench.sh [version|first|first-million|long|rss|turn|journal|steps|plan|teammates|handoff|mail|search|walls|judge|defs|mcp|pages|browser|serve] [--json] [--messages N] [--kills N] [--entries N]
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
cargo build --profile dist --quiet --locked -p max-team
cargo build --profile dist --quiet --locked -p max-team-testkit -p max-team-journal -p max-team-core -p max-team-runtime -p max-team-tools -p max-team-mcp \
  --example bench --example floor --example journal_bench --example plan_bench --example plan_steps --example long_journal \
  --example search --example isolation_bench --example judge_bench --example mcp_bench --example page_bench --example browser_bench
exec "$target/dist/examples/bench" --bin "$target/dist/max-team" --examples "$target/dist/examples" "$@"
