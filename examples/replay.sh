#!/bin/sh
# Runs looked at again, without a key and without a network: a demo is recorded twice, played, held against the team of
# today, and compared. `sh examples/replay.sh` in a folder where two files may be written.
set -eu
max_team=${MAX_TEAM:-max-team}

# The first line of a demo ends with the folder of its project.
project=$("$max_team" demo feature --yes --keep --record first.jsonl | sed -n '1s/.* //p')
"$max_team" demo feature --yes --record second.jsonl >/dev/null
first=$PWD/first.jsonl

echo '# What happened, from the recording alone'
"$max_team" replay first.jsonl | tail -n 3

echo '# Would the team of today send the same requests?'
(cd "$project" && "$max_team" replay --strict "$first")

echo '# And if the project told it something else?'
echo 'Answer in verse.' >"$project/AGENTS.md"
(cd "$project" && "$max_team" replay --strict "$first" 2>&1) || echo "exit code $?"

echo '# Where did the two part?'
"$max_team" compare first.jsonl second.jsonl
rm -rf "${project%/*}"
