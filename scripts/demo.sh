#!/usr/bin/env bash
# Builds Max Team and starts the demo: recorded models, real tools; no key. Arguments go to `max-team demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

need_build_tools
exec cargo run --release --locked --quiet -- demo "$@"
