#!/usr/bin/env bash
# Files and places as a stranger would leave them: each is answered with one sentence, or changes
# nothing.
set -uo pipefail
bezel=${1:?usage: tests/test_hostile.sh BEZEL}
cd "$(dirname "$0")/.."
tmp=$(dirname "$bezel")/tmp/hostile; rm -rf "$tmp"; mkdir -p "$tmp"
passed=0 failed=0
check() { # sentence, command...
    local what=$1; shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $what"; fi
}
# expect CODE COMMAND...: the exit code, with the outputs kept in $tmp/out and $tmp/err
expect() {
    local code=$1 got; shift
    "$@" > "$tmp/out" 2> "$tmp/err" < /dev/null
    got=$?
    [[ $got -eq $code ]] || { echo "exit code $got of: $*"; tail -n 3 "$tmp/err"; return 1; }
}
says() { grep -qF "$1" "$tmp/err" || { tail -n 3 "$tmp/err"; return 1; }; }
hostile() { python3 tests/hostile.py "$@"; }
tiny=models/tiny.q8_0.gguf moe=models/tiny-moe.q8_0.gguf

# ---- training that leaves the range of numbers ----
printf '{"prompt":"Who are you?","completion":"A gem."}\n' > "$tmp/one.jsonl"
wild="--steps 6 --clip 0 --lr 1e10 --warmup 0 --schedule constant --rank 2"
check "experts whose scores are no numbers end a training" expect 1 \
    "$bezel" train $moe "$tmp/one.jsonl" --out "$tmp/wild.gguf" $wild
check "with its step and what helps" says "is no longer a number; a lower learning rate may help"
check "and what was learned before" expect 0 "$bezel" inspect "$tmp/wild.gguf"
hostile nan-router $moe "$tmp/nan.gguf"
check "a file whose router holds no numbers is not learned from" expect 1 \
    "$bezel" train "$tmp/nan.gguf" "$tmp/one.jsonl" --out "$tmp/none.gguf" --steps 2
check "since it is damaged" says "step 1: the loss is not a number before anything was learned"
check "without an adapter" test ! -e "$tmp/none.gguf"
check "what it generates is noise, and no crash" \
    expect 0 "$bezel" generate "$tmp/nan.gguf" --ids 2,5 --n 2

# ---- four dimensions ----
"$bezel" train $tiny "$tmp/one.jsonl" --out "$tmp/a.gguf" --steps 1 --rank 2 > /dev/null 2>&1
hostile four-dims $tiny "$tmp/four.gguf"
check "a tensor of four dimensions is not merged" \
    expect 1 "$bezel" merge "$tmp/four.gguf" "$tmp/a.gguf" "$tmp/merged.gguf"
check "and named" says "blk.0.attn_q.weight has four dimensions"
check "without a file" test ! -e "$tmp/merged.gguf"
check "nor computed with" expect 1 "$bezel" logits "$tmp/four.gguf" --ids 1
check "and named" says "blk.0.attn_q.weight is"

# ---- tensors that share bytes ----
hostile overlapping $tiny "$tmp/overlap.gguf"
for c in "inspect $tmp/overlap.gguf" "logits $tmp/overlap.gguf --ids 1" \
    "quantize $tmp/overlap.gguf $tmp/q.gguf f32"; do
    check "bezel ${c%% *}: tensors that overlap are refused" expect 1 "$bezel" $c
    check "and named" says "overlap: the file is damaged"
done

# ---- names that meet in one slot of a table, patterns that take for ever ----
hostile key-flood "$tmp/flood.gguf" 200000
check "200,000 keys made for one slot are read in seconds" \
    expect 0 timeout 20 "$bezel" inspect "$tmp/flood.gguf"
hostile peft-flood "$tmp/patterns"
check "an adapter with endless patterns is refused in seconds" \
    expect 1 timeout 60 "$bezel" inspect "$tmp/patterns"
check "and says why" says "too many patterns"

# ---- a NAME.part that is not ours ----
echo theirs > "$tmp/theirs"
ln -s theirs "$tmp/b.gguf.part"
check "train beside a link to a file of others" \
    expect 0 "$bezel" train $tiny "$tmp/one.jsonl" --out "$tmp/b.gguf" --steps 1 --rank 2
check "leaves that file" grep -qx theirs "$tmp/theirs"
check "and the link" test -L "$tmp/b.gguf.part" -a ! -e "$tmp/b.gguf.2.part"
check "and writes its own" expect 0 "$bezel" inspect "$tmp/b.gguf"

# ---- a checkpoint on another model than it was made on ----
worn() {
    "$bezel" train worn "$tmp/one.jsonl" --store "$tmp/store" --out "$tmp/w.gguf" --steps 2 \
        --rank 2 --checkpoint "$tmp/worn.ckpt"
}
hostile store "$tmp/store" $tiny "$tmp/a.gguf"
check "train a model that wears an adapter, with a checkpoint" expect 0 worn
check "and go on from it" expect 0 worn
"$bezel" train $tiny "$tmp/one.jsonl" --out "$tmp/c.gguf" --steps 1 --rank 2 --seed 2 \
    > /dev/null 2>&1
hostile store "$tmp/store" $tiny "$tmp/c.gguf"
check "not with another adapter in its place" expect 1 worn
check "and says why" says "the checkpoint belongs to another training"

echo "$((passed + failed)) checks: $passed passed, $failed failed"
exit "$failed"
