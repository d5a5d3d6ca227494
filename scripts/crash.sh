#!/usr/bin/env bash
# Proves what docs/en/concepts/journal.md promises: whole teams simulated and killed at their commits, planted bugs that must be
# caught, the real program killed at system calls and at random instants, and bad surroundings.
# scripts/crash.sh [--short] [--json] [sim|planted|sweep|random|faults] [--seed N]
# `sim --seed N` plays one schedule again, `random --seed N` begins with those instants. The long form takes hours on
# two cores, the short one about a minute beside the build.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"

part='' short='' seed=() json=()
while [ $# -gt 0 ]; do
  case "$1" in
    --short) short=1 ;;
    --json) json=(--json) ;;
    --seed) seed=(--seed "$2"); shift ;;
    sim | planted | sweep | random | faults) part="$1" ;;
    *) sed -n '2,6p' "$0" >&2; exit 2 ;;
  esac
  shift
done

# The long form is about the program as it is shipped; the short one takes what the tests have built already, which is
# only the same if the whole workspace is named.
if [ -n "$short" ]; then
  cargo build --quiet --locked --workspace --bin max-team --example sim --example outside
  bin="$target/debug/max-team" sim="$target/debug/examples/sim" outside="$target/debug/examples/outside"
  schedules=150
else
  cargo build --quiet --locked --profile dist -p max-team
  cargo build --quiet --locked --profile proof -p max-team-runtime --example sim
  cargo build --quiet --locked --profile proof -p max-team-testkit --example outside
  bin="$target/dist/max-team" sim="$target/proof/examples/sim" outside="$target/proof/examples/outside"
  schedules=100000
fi

rows="$(mktemp)"
trap 'rm -f "$rows"' EXIT
prove() { # part, command
  [ -z "$part" ] || [ "$part" = "$1" ] || return 0
  shift
  "$@" "${json[@]}" | tee -a "$rows" || failed=1
}

failed=''
if [ "$part" = sim ] && [ ${#seed[@]} -gt 0 ]; then
  exec "$sim" "${seed[@]}"
fi
prove sim "$sim" --schedules "$schedules"
prove planted "$sim" --plants
for kind in sweep random faults; do
  prove "$kind" "$outside" --bin "$bin" "$kind" ${short:+--short} "${seed[@]}"
done
# The tests kill at a sample of these calls; here it is each of them.
if [ -z "$short" ] && { [ -z "$part" ] || [ "$part" = sweep ]; }; then
  KILL_EVERY=1 cargo test --quiet --locked -p max-team --test it -- killed_ || failed=1
fi
if [ ${#json[@]} -eq 0 ]; then
  printf '%s rows, %s failed\n' "$(wc -l <"$rows")" "$(grep -cE '^(FAILED|MISSED)' "$rows" || true)"
fi
[ -z "$failed" ]
