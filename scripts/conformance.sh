#!/usr/bin/env bash
# The conformance suite of the Model Context Protocol, against our client and our server.
# MAX_TEAM_MCP_SERVERS names the folder with the suite and its Node; scripts/test.sh installs both.
set -euo pipefail
cd "$(dirname "$0")/.."
servers="${MAX_TEAM_MCP_SERVERS:?names the folder with node_modules}"
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
expected="tests/conformance/expected.yml"
suite=("$servers/node_modules/node/bin/node" "$servers/node_modules/@modelcontextprotocol/conformance/dist/index.js")

# With the whole workspace named, cargo takes what the tests have built; a single package would build its dependencies again.
cargo build --quiet --locked --workspace --bin max-team --example conformance_client --example conformance_server

work="$(mktemp -d)"
server=""
trap 'if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi; rm -rf "$work"' EXIT

echo "conformance of the client"
"${suite[@]}" client --command "$target/debug/examples/conformance_client" --suite all --timeout 20000 \
  --expected-failures "$expected" >"$work/client.txt" 2>&1 || { cat "$work/client.txt"; exit 1; }
tail -n 3 "$work/client.txt"

echo "conformance of the server"
mkdir "$work/project" "$work/home"
(cd "$work/project" && exec env HOME="$work/home" "$target/debug/max-team" mcp serve --http --port 0) >"$work/serve.txt" 2>&1 &
server=$!
for _ in $(seq 100); do
  url="$(grep -o 'http://[^ ]*/mcp' "$work/serve.txt" | head -n 1 || true)"
  [ -n "$url" ] && break
  sleep 0.1
done
[ -n "$url" ] || { cat "$work/serve.txt"; exit 1; }
for scenario in server-initialize ping tools-list dns-rebinding-protection; do
  "${suite[@]}" server --url "$url" --scenario "$scenario" --expected-failures "$expected" >"$work/server.txt" 2>&1 \
    || { cat "$work/server.txt"; exit 1; }
  echo "  $scenario"
done
kill "$server"

echo "conformance of the server's code, with the suite's tools, prompts and resources"
"$target/debug/examples/conformance_server" >"$work/fixtures.txt" &
server=$!
for _ in $(seq 100); do
  [ -s "$work/fixtures.txt" ] && break
  sleep 0.1
done
"${suite[@]}" server --url "$(head -n 1 "$work/fixtures.txt")" --suite all --expected-failures "$expected" >"$work/server.txt" 2>&1 \
  || { cat "$work/server.txt"; exit 1; }
tail -n 3 "$work/server.txt"
