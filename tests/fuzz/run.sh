#!/usr/bin/env bash
# run.sh FOLDER SECONDS - run every fuzz target of a folder for some seconds on its seeds, as many
# at a time as there are cores. An input of kilobytes that asks for 256 MB at once is a finding.
set -uo pipefail
build=${1:?usage: tests/fuzz/run.sh FOLDER SECONDS} seconds=${2:?}
cd "$(dirname "$0")/../.."
mkdir -p "$build/tmp"
source tests/lanes.sh

fuzz() { # NAME: the last line says how many inputs were tried
    local log=$build/fuzz_$1.stats words=()
    [[ -e tests/fuzz/$1.dict ]] && words=("-dict=tests/fuzz/$1.dict")
    mkdir -p "$build/corpus/fuzz_$1" "tests/fuzz/seeds/$1"
    "$build/fuzz_$1" "${words[@]}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 \
        -malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix="$build/fuzz_$1-" \
        "$build/corpus/fuzz_$1" "tests/fuzz/seeds/$1" 2>&1 | tee "$log" || return
    echo "$(sed -n 's/stat::number_of_executed_units: *//p' "$log") runs"
}
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    one "$name" fuzz "${name#fuzz_}"
done
for source in tests/fuzz/fuzz_*.mjs; do
    one "$(basename "$source" .mjs)" node "$source" "$seconds" "$build"
done
finish
echo "fuzz: $passed targets held, $failed did not"
exit "$failed"
