# lanes.sh - run commands side by side, one for each core; sourced by the runners of the tests.
#
#   one NAME COMMAND...   as soon as a lane is free; its output goes to $build/tmp/NAME.log
#   finish                wait for the rest
#
# A line is printed as each ends, and the end of the log where it failed. Counts: passed, failed,
# and the names of those that failed. BEZEL_LANES=1 runs one after the other, as does a bash that
# cannot wait for whichever ends first.

lanes=${BEZEL_LANES:-$(nproc 2> /dev/null || echo 1)}
((lanes <= 4)) || lanes=4 # browsers and software devices take memory
((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)) || lanes=1
passed=0 failed=0 names="" running=0
declare -a lane_name lane_start # by process id

# NAME STATUS SECONDS: what a test that ended has to say. Skipped tests are failures where CI runs.
show() {
    local log=$build/tmp/$1.log
    if (($2)); then
        failed=$((failed + 1)) names+=" $1"
        printf '%-18s FAILED\n' "$1"
        tail -n 40 "$log"
        return
    fi
    passed=$((passed + 1))
    printf '%-18s ok    %s (%d s)\n' "$1" "$(tail -n 1 "$log")" "$3"
    grep 'skipped "' "$log" || return 0
    if [[ -n ${BEZEL_CI:-} ]]; then failed=$((failed + 1)) names+=" $1(skip)"; fi
}

reap() {
    local pid status=0
    wait -n -p pid || status=$?
    running=$((running - 1))
    show "${lane_name[pid]}" "$status" $((SECONDS - lane_start[pid]))
}

finish() { while ((running)); do reap; done; }

one() {
    local name=$1 start=$SECONDS status=0
    shift
    if ((lanes < 2)); then
        "$@" > "$build/tmp/$name.log" 2>&1 || status=$?
        show "$name" "$status" $((SECONDS - start))
        return
    fi
    while ((running >= lanes)); do reap; done
    "$@" > "$build/tmp/$name.log" 2>&1 &
    lane_name[$!]=$name lane_start[$!]=$SECONDS
    running=$((running + 1))
}
