#!/usr/bin/env bash
# run.sh FOLDER SECONDS - run every fuzz target of a folder for some seconds on its seeds.
set -uo pipefail
folder=${1:?usage: tests/fuzz/run.sh FOLDER SECONDS} seconds=${2:?}
cd "$(dirname "$0")/../.."
passed=0 failed=0
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    mkdir -p "$folder/corpus/$name" "tests/fuzz/seeds/${name#fuzz_}"
    if "$folder/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$folder/$name-" "$folder/corpus/$name" "tests/fuzz/seeds/${name#fuzz_}" \
        > "$folder/$name.log" 2>&1; then
        passed=$((passed + 1))
        printf '%-18s ok    %s runs\n' "$name" "$(sed -n 's/stat::number_of_executed_units: *//p' "$folder/$name.log")"
    else
        failed=$((failed + 1))
        printf '%-18s FAILED\n' "$name"; tail -n 30 "$folder/$name.log"
    fi
done
echo "fuzz: $passed targets held, $failed did not"
exit "$failed"
