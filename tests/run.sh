#!/usr/bin/env bash
# run.sh BUILD - run every test program of a build and every script test; exit code = how many
# failed.
set -uo pipefail
build=${1:?usage: tests/run.sh BUILD}
cd "$(dirname "$0")/.."
mkdir -p "$build/tmp" build/tmp
source tests/lanes.sh
# these first, so that no lane ends with a long one
long="plan backward synth session train tiny ops"
for name in $long; do one "$name" "$build/tests/test_$name"; done
for t in tests/test_*.c; do
    name=$(basename "$t" .c) name=${name#test_}
    [[ " $long " == *" $name "* ]] || one "$name" "$build/tests/test_$name"
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
finish
[[ -n $names ]] && echo "failed:$names"
echo "$passed passed, $failed failed" | tee "$build/tmp/summary"
exit "$failed"
