#!/usr/bin/env bash
# Makes the journal that later versions must still open: a demo, and a session of its own in /usr with a scripted model.
# Run it once per release, and commit the file: scripts/journal-fixture.sh [VERSION]
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
version="${1:-$(cargo metadata --no-deps --format-version 1 | sed -n 's/.*"name":"max-team","version":"\([^"]*\)".*/\1/p')}"
to="crates/max-team/tests/it/journals/$version.db"
test ! -e "$to" || { echo "$to is there already: a released journal never changes" >&2; exit 1; }
cargo build --quiet --locked -p max-team
cargo build --quiet --locked -p max-team-testkit --example scripted
program="$(realpath "$target/debug/max-team")"
scratch="$(mktemp -d)"
"$target/debug/examples/scripted" --turns 1 --tool list_dir --args '{"path":"share"}' --final "It is a folder." > "$scratch/server" &
server=$!
trap 'kill $server; rm -rf "$scratch"' EXIT
until grep -q url "$scratch/server"; do sleep 0.1; done
url="$(sed 's/.*"url":"\([^"]*\)".*/\1/' "$scratch/server")"
clean() { env -i PATH="$PATH" HOME="$scratch" USER=owner TMPDIR="$scratch" LANG=C.UTF-8 "$@"; }
clean "$program" demo replan --yes --keep > "$scratch/demo.log"
home="$(ls -d "$scratch"/max-team-demo-*/home)"
(cd /usr && clean env MAX_TEAM_HOME="$home" ANTHROPIC_BASE_URL="$url" ANTHROPIC_API_KEY=sk-fixture \
  "$program" --solo -p "What is share?" > "$scratch/answer")
mkdir -p "$(dirname "$to")"
clean env MAX_TEAM_HOME="$home" "$program" backup "$(realpath -m "$to")"
