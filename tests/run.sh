#!/usr/bin/env bash
# run.sh BUILD - run every test program of a build and every script test; exit code = how many failed.
set -uo pipefail
build=${1:?usage: tests/run.sh BUILD}
cd "$(dirname "$0")/.."
mkdir -p "$build/tmp" build/tmp
passed=0 failed=0 names=""
one() { # name, command...
    local name=$1; shift
    local start=$SECONDS
    if "$@" > "$build/tmp/$name.log" 2>&1; then
        passed=$((passed + 1))
        printf '%-18s ok    %s (%d s)\n' "$name" "$(tail -n 1 "$build/tmp/$name.log")" $((SECONDS - start))
        if grep -q 'skipped "' "$build/tmp/$name.log"; then
            grep 'skipped "' "$build/tmp/$name.log"
            if [[ -n ${BEZEL_CI:-} ]]; then failed=$((failed + 1)); names+=" $name(skip)"; fi
        fi
    else
        failed=$((failed + 1)); names+=" $name"
        printf '%-18s FAILED\n' "$name"
        tail -n 40 "$build/tmp/$name.log"
    fi
}
for t in tests/test_*.c; do
    name=$(basename "$t" .c)
    one "${name#test_}" "$build/tests/$name"
done
for t in tests/test_*.sh; do
    [[ -e $t ]] || continue
    name=$(basename "$t" .sh)
    one "${name#test_}" "$t" "$build/bezel"
done
for t in tests/test_*.py; do
    name=$(basename "$t" .py)
    one "${name#test_}" python3 "$t"
done
one tiny_data python3 -m unittest discover -s tools/tiny -p 'test_*.py'
[[ -n $names ]] && echo "failed:$names"
echo "$passed passed, $failed failed" | tee "$build/tmp/summary"
exit "$failed"
