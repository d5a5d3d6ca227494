#!/usr/bin/env bash
# Plays ten jobs with the real program against scripted models, a strong and a weak one: is the outcome right, which calls were
# wasted, how much input was fixed, which results got lost. Exit 1 if a strong model's job is not done right, a weak model's fails
# in silence, or a result is lost.
# scripts/eval.sh [--json] [--keep FOLDER] [strong|weak] [JOB…]
# PROFILE=dist builds the program in another profile; BIN=PATH takes one that is built. With --keep, FOLDER/MODEL-JOB/trace.txt
# has what each model was told and did.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}" profile="${PROFILE:-dev}"
case "$profile" in dev) folder=debug ;; *) folder="$profile" ;; esac
for program in git python3; do
  command -v "$program" >/dev/null || { echo "eval: \`$program\` is missing; install it first" >&2; exit 2; }
done
[ -n "${BIN:-}" ] || cargo build --quiet --locked --profile "$profile" -p max-team
cargo build --quiet --locked -p max-team-testkit --example eval
exec "$target/debug/examples/eval" --bin "${BIN:-$target/$folder/max-team}" "$@"
