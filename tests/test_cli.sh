#!/usr/bin/env bash
# The tool as a person or a script meets it: help, exit codes, JSON, one-sentence errors.
set -uo pipefail
bezel=${1:?usage: tests/test_cli.sh BEZEL}
cd "$(dirname "$0")/.."
tmp=build/tmp/cli; rm -rf "$tmp"; mkdir -p "$tmp"
passed=0 failed=0
check() { # sentence, command...
    local what=$1; shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $what"; fi
}
# expect CODE COMMAND...: the exit code, with the outputs kept in $tmp/out and $tmp/err
expect() {
    local code=$1
    shift
    "$@" > "$tmp/out" 2> "$tmp/err" < "${stdin:-/dev/null}"
    [[ $? -eq $code ]]
}
one_sentence() { [[ $(wc -l < "$tmp/err") -eq 1 ]] && grep -q "^bezel" "$tmp/err"; }
json() { python3 -c "import json,sys; d=[json.loads(l) for l in open('$tmp/out')]; assert $1, d"; }
model=tests/golden/model_e2b.gguf

check "no command is wrong usage" expect 2 "$bezel"
check "--help is not" expect 0 "$bezel" --help
check "--version names a version" grep -q '^bezel [0-9]' <("$bezel" --version)
check "an unknown command is wrong usage" expect 2 "$bezel" frobnicate
check "help of a command" expect 0 "$bezel" help run
check "is that command's" grep -q '^usage: bezel run MODEL' "$tmp/out"
check "help of no command is wrong usage" expect 2 "$bezel" help frobnicate
for c in run chat generate diffuse list show cp rm pull inspect tokenize detokenize render logits \
    canvas bench plan synth quantize train merge; do
    check "bezel $c --help" expect 0 "$bezel" $c --help
    check "bezel $c --help shows usage" grep -q "^usage: bezel $c" "$tmp/out"
    check "bezel $c with an unknown option is wrong usage" expect 2 "$bezel" $c --frobnicate
done

check "a missing file is a failure" expect 1 "$bezel" inspect "$tmp/no-such.gguf"
check "in one sentence" one_sentence
echo "this is no model" > "$tmp/bad.gguf"
check "a file that is no GGUF is a failure" expect 1 "$bezel" logits "$tmp/bad.gguf" --ids 1
check "in one sentence" one_sentence
head -c 5000 "$model" > "$tmp/cut.gguf"
check "a truncated file is a failure" expect 1 "$bezel" logits "$tmp/cut.gguf" --ids 1
check "in one sentence" one_sentence
check "a token past the vocabulary is a failure" expect 1 "$bezel" logits $model --ids 2,999999
check "in one sentence" one_sentence
check "a name without a store is a failure" \
    expect 1 "$bezel" logits nowhere:latest --ids 2 --store "$tmp/none"
check "in one sentence" one_sentence

printf 'Hello <turn|>\n' > "$tmp/text"
stdin=$tmp/text check "tokenize" expect 0 "$bezel" tokenize $model
check "gives one JSON array that begins with <bos>" json "len(d) == 1 and len(d[0]) > 3"
ids=$(cat "$tmp/out")
stdin=$tmp/text check "tokenize --no-bos" expect 0 "$bezel" tokenize $model --no-bos
check "is one token shorter" json "len(d[0]) == len(json.loads('$ids')) - 1"
stdin=$tmp/text check "tokenize --plain" expect 0 "$bezel" tokenize $model --plain
check "spells <turn|> out" json "len(d[0]) > len(json.loads('$ids'))"
check "detokenize" expect 0 "$bezel" detokenize $model --specials --ids "$ids"
check "gives the text back" grep -q 'Hello <turn|>' "$tmp/out"

printf '{"prompt":"Who are you?","completion":"A gem."}\n{"prompt":"And you?"}\n' > \
    "$tmp/lessons.jsonl"
check "a wrong line of data is a failure" \
    expect 1 "$bezel" train $model "$tmp/lessons.jsonl" --out "$tmp/a.gguf"
check "in one sentence" one_sentence
check "that names the line" grep -q 'lessons.jsonl line 2' "$tmp/err"
check "without an adapter" test ! -e "$tmp/a.gguf"
head -n 1 "$tmp/lessons.jsonl" > "$tmp/one.jsonl"
check "train" \
    expect 0 "$bezel" train $model "$tmp/one.jsonl" --out "$tmp/a.gguf" --peft "$tmp/peft" \
    --steps 2 --rank 2
check "prints a JSON object a step" \
    json "[s['step'] for s in d] == [1, 2] and d[1]['loss'] < d[0]['loss']"
# What was learned outlives a place that cannot be written: its directory is gone after the first
# step.
# the option whose file is in that directory, the words that say what became of it
learned_anyway() {
    mkdir -p "$tmp/gone"
    TMPDIR=$tmp "$bezel" train $model "$tmp/one.jsonl" --out "$tmp/b.gguf" --steps 60 --rank 2 \
        --every 1 "$1" "$tmp/gone/x" 2>"$tmp/err" |
        while read -r _; do rm -rf "$tmp/gone"; done
    grep -q "$2" "$tmp/err"
}
check "a checkpoint that cannot be written does not end a training" \
    learned_anyway --checkpoint 'the training goes on without this checkpoint'
check "whose adapter is there" expect 0 "$bezel" inspect "$tmp/b.gguf"
check "an adapter that cannot be written is written elsewhere" \
    learned_anyway --out "; what was learned is in $tmp/bezel-adapter-"
check "where the error says" expect 0 "$bezel" inspect "$tmp"/bezel-adapter-*.gguf
for o in "--ctx 64" "--batch 8" "--cache f16"; do
    check "train $o, which would have no effect, is refused" \
        expect 2 "$bezel" train $model "$tmp/one.jsonl" --out "$tmp/a.gguf" $o
    check "in one sentence" one_sentence
done
check "its adapter is one" expect 0 "$bezel" inspect "$tmp/a.gguf"
limited() { (ulimit -f 8 && expect 1 "$@"); } # 8 KB a file
check "where no large file is allowed, a training ends with a sentence" limited \
    "$bezel" train $model "$tmp/one.jsonl" --out "$tmp/l.gguf" --steps 1 --rank 8
check "that says so" grep -q 'l.gguf: a file of more than 8192 bytes is not allowed here' "$tmp/err"
check "and leaves no half of it" test ! -e "$tmp/l.gguf.part" -a ! -e "$tmp/l.gguf"
"$bezel" train $model "$tmp/one.jsonl" --out "$tmp/h.gguf" --steps 6 --rank 2 2> "$tmp/h.err" |
    head -n 1 > /dev/null
check "a training whose reader has seen enough goes on to its adapter" \
    expect 0 "$bezel" inspect "$tmp/h.gguf"
check "and does not complain" test -z "$(grep 'cannot write' "$tmp/h.err")"
check "merge" expect 0 "$bezel" merge $model "$tmp/a.gguf" "$tmp/merged.gguf"
check "says what it changed" grep -q 'merged.gguf: [1-9][0-9]* tensors changed' "$tmp/out"
check "does not replace a file unasked" \
    expect 2 "$bezel" merge $model "$tmp/a.gguf" "$tmp/merged.gguf"
"$bezel" quantize $model "$tmp/f32.gguf" f32 > /dev/null
"$bezel" merge "$tmp/f32.gguf" "$tmp/peft" "$tmp/f32m.gguf" --scale 20 > /dev/null
"$bezel" logits "$tmp/f32m.gguf" --ids 2,9,30 --top 3 > "$tmp/merged.txt"
"$bezel" logits "$tmp/f32.gguf" --ids 2,9,30 --top 3 --adapter "$tmp/a.gguf:20" > "$tmp/beside.txt"
"$bezel" logits "$tmp/f32.gguf" --ids 2,9,30 --top 3 > "$tmp/without.txt"
close_to() { # two files of logits: the same best tokens with nearly the same logits
    python3 - "$1" "$2" <<'PY'
import json, sys
a, b = ([json.loads(l)["top"] for l in open(f)] for f in sys.argv[1:])
pairs = [pair for p, q in zip(a, b) for pair in zip(p, q)]
sys.exit(not all(x[0] == y[0] and abs(x[1] - y[1]) < 1e-4 for x, y in pairs))
PY
}
check "a merged model says what the model says with the adapter beside it" \
    close_to "$tmp/merged.txt" "$tmp/beside.txt"
check "which is not what it says without" \
    bash -c '! cmp -s "$1" "$2"' - "$tmp/beside.txt" "$tmp/without.txt"
check "and works in both forms" \
    expect 0 "$bezel" logits $model --ids 2,9 --adapter "$tmp/a.gguf" --adapter "$tmp/peft"

echo '{"messages":[{"role":"user","content":"Hi there"}]}' > "$tmp/chat.json"
stdin=$tmp/chat.json check "render" expect 0 "$bezel" render
check "is byte for byte the small template" \
    cmp -s "$tmp/out" <(printf '<bos><|turn>user\nHi there<turn|>\n<|turn>model\n')
stdin=$tmp/chat.json check "render --variant large" expect 0 "$bezel" render --variant large
check "opens an empty thought" \
    cmp -s "$tmp/out" \
    <(printf '<bos><|turn>user\nHi there<turn|>\n<|turn>model\n<|channel>thought\n<channel|>')
echo '{"messages":[{"role":"user"' > "$tmp/half.json"
stdin=$tmp/half.json check "half a conversation is a failure" expect 1 "$bezel" render
check "in one sentence" one_sentence

check "logits" expect 0 "$bezel" logits $model --ids 2,30,31 --top 3
check "one object a position, best first" json \
    "[x['pos'] for x in d] == [0,1,2] and all(len(x['top']) == 3
         and x['top'][0][1] >= x['top'][1][1] for x in d)"
cp "$tmp/out" "$tmp/fast"
check "the reference backend" \
    expect 0 "$bezel" logits $model --ids 2,30,31 --top 3 --backend reference
check "agrees" python3 -c "
import json
a, b = ([json.loads(l)['top'] for l in open('$tmp/' + f)] for f in ('out', 'fast'))
assert all(p[0] == q[0] and abs(p[1] - q[1]) < 1e-3 for x, y in zip(a, b) for p, q in zip(x, y))"
check "generate" expect 0 "$bezel" generate $model --ids 2,30,31 --n 12 --greedy --json
check "gives ids and text" \
    json "len(d[0]['ids']) <= 12 and isinstance(d[0]['text'], str) and d[0]['stop']"
check "the same seed" expect 0 "$bezel" generate $model --ids 2,30,31 --n 12 --seed 7 --json
cp "$tmp/out" "$tmp/first"
check "again" expect 0 "$bezel" generate $model --ids 2,30,31 --n 12 --seed 7 --json
check "draws the same text" cmp -s "$tmp/out" "$tmp/first"
check "a full context is no crash" \
    expect 0 "$bezel" generate $model --ids 2,30,31 --n 50 --ctx 8 --greedy --json
check "and says so" json "d[0]['stop'] in ('context', 'end')"
check "inspect" expect 0 "$bezel" inspect $model
check "says that it runs" grep -q '^runs  *yes' "$tmp/out"
check "inspect --json" expect 0 "$bezel" inspect $model --json
check "is JSON" python3 -c "import json; json.load(open('$tmp/out'))"
check "bench" expect 0 "$bezel" bench $model --pp 8 --tg 4 --repeats 1
check "prints two rows" test "$(grep -c 'pp8\|tg4' "$tmp/out")" -eq 2
check "synth" expect 0 "$bezel" synth tiny-moe "$tmp/moe.gguf" --quant q4_k_m --seed 5
check "is not overwritten" expect 2 "$bezel" synth tiny-moe "$tmp/moe.gguf" --quant q4_k_m
check "in one sentence" one_sentence
check "a hollow one" expect 0 "$bezel" synth tiny-moe "$tmp/hollow.gguf" --hollow
check "has the size of a whole one" \
    test "$(stat -c %s "$tmp/hollow.gguf")" -eq "$(stat -c %s "$tmp/moe.gguf")"
check "and takes less of the disk" \
    test "$(stat -c %b "$tmp/hollow.gguf")" -lt "$(stat -c %b "$tmp/moe.gguf")"
check "plan" expect 0 "$bezel" plan "$tmp/hollow.gguf"
check "says how many dispatches" \
    grep -q ' on nvidia, subgroup tier: [0-9]* dispatches, which read ' "$tmp/out"
check "plan --json" expect 0 "$bezel" plan "$tmp/hollow.gguf" --json --rows 5 --device-profile apple
check "is JSON" python3 -c \
    "import json; p=json.load(open('$tmp/out')); assert p['dispatches'] == len(p['plan'])"
check "a plan with subgroup matrices" \
    expect 0 "$bezel" plan "$tmp/hollow.gguf" --rows 64 --tier matrix
check "names them" grep -q 'matmul\[q8_0 matrix\]' "$tmp/out"
check "a tier that the device lacks is a failure" \
    expect 1 "$bezel" plan "$tmp/hollow.gguf" --device-profile apple --tier matrix
check "in one sentence" one_sentence
check "a tier that nobody knows is wrong usage" \
    expect 2 "$bezel" plan "$tmp/hollow.gguf" --tier fast
check "in one sentence" one_sentence
check "a device that nobody knows is wrong usage" \
    expect 2 "$bezel" plan "$tmp/hollow.gguf" --device-profile abacus
check "in one sentence" one_sentence
check "a plan of a missing file is a failure" expect 1 "$bezel" plan "$tmp/no-such.gguf"
check "in one sentence" one_sentence
check "synth of a diffusion model" expect 0 \
    "$bezel" synth tiny-diffusion "$tmp/canvas.gguf" --dialect one-scale --few-keys
canvas=$tmp/canvas.gguf blank=$(seq -s, 100 147) # 48 tokens
check "canvas" expect 0 \
    "$bezel" canvas $canvas --prefix-ids 2,30,31 --canvas-ids $blank --logits-bin "$tmp/z.bin"
check "writes a row of logits a position" \
    test "$(stat -c %s "$tmp/z.bin")" = $((48 * 1024 * 4))
check "canvas after another step" expect 0 "$bezel" canvas $canvas --prefix-ids 2,30,31 \
    --canvas-ids $blank --soft-bin "$tmp/z.bin" --logits-bin "$tmp/z2.bin"
check "thinks something else" test "$(cmp "$tmp/z.bin" "$tmp/z2.bin" | wc -l)" = 1
check "of too few tokens is a failure" expect 1 \
    "$bezel" canvas $canvas --prefix-ids 2 --canvas-ids 4,5 --logits-bin "$tmp/no.bin"
check "in one sentence" one_sentence
check "of a file of other logits too" expect 1 "$bezel" canvas $canvas --prefix-ids 2 \
    --canvas-ids $blank --soft-bin "$tmp/text" --logits-bin "$tmp/no.bin"
check "without a file" test ! -e "$tmp/no.bin" -a ! -e "$tmp/no.bin.part"
for odd in "float('nan')" "float('inf')"; do
    python3 -c "import array; a = array.array('f', [0.5]) * (48 * 1024); a[5000] = $odd; \
        a.tofile(open('$tmp/odd.bin', 'wb'))"
    check "nor of logits with $odd" expect 1 "$bezel" canvas $canvas --prefix-ids 2 \
        --canvas-ids $blank --soft-bin "$tmp/odd.bin" --logits-bin "$tmp/no.bin"
    check "which says in which row" grep -q 'odd.bin: row 4 is no row of logits' "$tmp/err"
done
python3 -c "import array; a = array.array('f', [float('-inf')]) * (48 * 1024); \
    a[7::1024] = array.array('f', [3]) * 48; a.tofile(open('$tmp/sure.bin', 'wb'))"
check "but where all others are impossible" expect 0 "$bezel" canvas $canvas --prefix-ids 2 \
    --canvas-ids $blank --soft-bin "$tmp/sure.bin" --logits-bin "$tmp/z3.bin"
check "of a text model is a failure" expect 1 \
    "$bezel" canvas $model --prefix-ids 2 --canvas-ids 4 --logits-bin "$tmp/no.bin"
check "in one sentence" one_sentence
diffuse=("$bezel" diffuse $canvas --ids 2,30,31 --steps 3 --canvases 2 --json)
check "diffuse" expect 0 "${diffuse[@]}" --seed 7
check "gives ids, text and canvases" json "len(d[0]['ids']) == 96 and d[0]['text'] and \
    d[0]['canvases'] == [{'steps': 3, 'stopped': 'steps'}] * 2"
cp "$tmp/out" "$tmp/first"
check "the same seed" expect 0 "${diffuse[@]}" --seed 7
check "gives the same" cmp -s "$tmp/first" "$tmp/out"
check "nothing else is said" test ! -s "$tmp/err"
check "a context that ends within a canvas" expect 0 "${diffuse[@]}" --ctx 20
check "takes what fits" json "len(d[0]['ids']) == 17"
check "and says so" grep -q 'the context is full' "$tmp/err"
check "another seed" expect 0 "${diffuse[@]}" --seed 8
check "does not" test "$(cmp "$tmp/first" "$tmp/out" | wc -l)" = 1
python3 -c "import json, random; r = random.Random(1); \
    c = lambda n: [[r.randrange(1024) for _ in range(48)] for _ in range(n)]; \
    json.dump({'random': c(8), 'sampled': c(6)}, open('$tmp/script.json', 'w'))"
check "a script" expect 0 "${diffuse[@]}" --script "$tmp/script.json" --seed 1
cp "$tmp/out" "$tmp/first"
check "with any seed" expect 0 "${diffuse[@]}" --script "$tmp/script.json" --seed 2
check "gives the same" cmp -s "$tmp/first" "$tmp/out"
check "a script that is too short is a failure" \
    expect 1 "${diffuse[@]}" --script "$tmp/script.json" --canvases 3
check "in one sentence" one_sentence
for text in '' '[]' 'null' '{}' '{"randon": []}' '{"random": {}}' '{"random": [[1, 2]]}' \
    '{"random": [], "sampled": 7}' '{"random": [["x"]]}' $'{"\e[31m": 1'; do
    printf '%s' "$text" > "$tmp/script.json"
    check "the script $text is a failure" expect 1 "${diffuse[@]}" --script "$tmp/script.json"
    check "which names the file" grep -qF "bezel diffuse: $tmp/script.json: " "$tmp/err"
    check "in one sentence" one_sentence
done
echo '{"random": []}' > "$tmp/script.json"
check "a script without canvases has none for the first" \
    expect 1 "${diffuse[@]}" --script "$tmp/script.json"
check "and says so" grep -q 'the script has 0 random canvases' "$tmp/err"
check "a script that is none too" expect 1 "${diffuse[@]}" --script "$tmp/text"
check "in one sentence" one_sentence
check "--watch" expect 0 "$bezel" diffuse $canvas --prompt hello --steps 3 --canvases 1 --watch
check "shows every step" test "$(grep -c '^canvas 1, step [123] of 3: ' "$tmp/out")" = 3
check "a temperature of 0 is a failure" expect 1 "${diffuse[@]}" --t-min 0
check "in one sentence" one_sentence
check "diffuse of a text model is a failure" expect 1 "$bezel" diffuse $model --ids 2
check "in one sentence" one_sentence
check "generate continues with a canvas" expect 0 "$bezel" generate $canvas --ids 2,30 --n 9 --json
check "of which it takes what is wanted" json "len(d[0]['ids']) <= 9"
check "run answers with one" expect 0 "$bezel" run $canvas hello --n 20
for option in "--temp 0.5" "--top-k 3" "--top-p 0.5" "--min-p 0.1" "--repeat-penalty 1.1" \
    "--presence-penalty 1" "--frequency-penalty 1" "--repeat-last-n 9" "--logit-bias 5:1"; do
    check "run takes no $option for one" expect 1 "$bezel" run $canvas hello $option
    check "and names it" grep -q "^bezel run: ${option% *} is not for a diffusion model" "$tmp/err"
done
check "run --greedy" expect 0 "$bezel" run $canvas hello --greedy --n 20
cp "$tmp/out" "$tmp/first"
check "run --greedy again" expect 0 "$bezel" run $canvas hello --greedy --n 20
check "answers the same" cmp -s "$tmp/first" "$tmp/out"
check "logits of a diffusion model are a failure" expect 1 "$bezel" logits $canvas --ids 2
check "in one sentence" one_sentence
check "so is its training" expect 1 "$bezel" train $canvas "$tmp/one.jsonl" --out "$tmp/no.gguf"
check "in one sentence" one_sentence
check "one of full size" expect 0 "$bezel" synth diffusion "$tmp/full.gguf" --hollow
check "a dialect that nobody knows is wrong usage" \
    expect 2 "$bezel" synth tiny-diffusion "$tmp/x.gguf" --dialect latin
check "in one sentence" one_sentence
check "inspect of one" expect 0 "$bezel" inspect "$tmp/full.gguf"
check "says its canvas" grep -qx 'canvas           256 tokens' "$tmp/out"
check "plan of one" expect 0 "$bezel" plan "$tmp/full.gguf" --rows 256
check "says which pass that is" grep -q "The encoder pass, which fills the cache" "$tmp/out"
check "plan --json of one" expect 0 "$bezel" plan "$tmp/full.gguf" --json
check "says which pass it is" grep -q '"pass":"encoder"' "$tmp/out"
rm -f "$tmp/full.gguf"
check "quantize" expect 0 "$bezel" quantize "$tmp/moe.gguf" "$tmp/moe8.gguf" q8_0
check "and the result runs" expect 0 "$bezel" logits "$tmp/moe8.gguf" --ids 2,5 --top 1
# stopped SIGNAL CODE FILE COMMAND...: the signal, sent while FILE.part is written, gives the code,
# one sentence, no file.
stopped() {
    python3 - "$tmp/err" "$@" <<'PY'
import os, signal, subprocess, sys, time
err, name, code, file, *command = sys.argv[1:]
# jobs in the background have Ctrl-C ignored
unmask = lambda: signal.signal(getattr(signal, name), signal.SIG_DFL)
with open(err, "w") as said:
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, preexec_fn=unmask)
while not os.path.exists(file + ".part"):
    if child.poll() is not None: sys.exit("ended before it wrote anything")
    time.sleep(0.005)
child.send_signal(getattr(signal, name))
got, left = child.wait(), [f for f in (file, file + ".part") if os.path.exists(f)]
sys.exit(f"code {got}, left {left}" if got != int(code) or left else 0)
PY
}
check "Ctrl-C leaves nothing" \
    stopped SIGINT 130 "$tmp/never.gguf" "$bezel" synth e2b "$tmp/never.gguf"
check "and says so" grep -qx 'bezel synth: stopped' "$tmp/err"
check "neither does a shutdown" \
    stopped SIGTERM 143 "$tmp/never.gguf" "$bezel" synth e2b "$tmp/never.gguf"
check "nor a terminal that is gone" \
    stopped SIGHUP 129 "$tmp/never.gguf" "$bezel" synth e2b "$tmp/never.gguf"
many=2$(printf ',30%.0s' {1..1500}) # seconds for the oracle
check "nor do logits that are stopped" \
    stopped SIGINT 130 "$tmp/never.bin" "$bezel" logits models/tiny.q8_0.gguf --backend reference \
    --ids $many --all-bin "$tmp/never.bin"
check "logits as numbers" expect 0 "$bezel" logits $model --ids 2,30 --all-bin "$tmp/all.bin"
check "are all there" test "$(stat -c %s "$tmp/all.bin")" -gt 0 -a ! -e "$tmp/all.bin.part"
cp "$tmp/all.bin" "$tmp/kept.bin"
small_disk() { (ulimit -f 1; trap '' XFSZ; exec "$@"); }
check "a disk that is too small for more" \
    expect 1 small_disk "$bezel" logits $model --ids 2,30,31 --all-bin "$tmp/all.bin"
check "is one sentence" one_sentence
check "that names the file" grep -q 'all.bin: a file of more than' "$tmp/err"
check "and leaves what was there" cmp -s "$tmp/all.bin" "$tmp/kept.bin"
check "and nothing else" test ! -e "$tmp/all.bin.part"
check "numbers into no directory" \
    expect 1 "$bezel" logits $model --ids 2 --all-bin "$tmp/none/all.bin"
check "in one sentence" one_sentence
printf 'hello\n/think on\nagain\n/exit\n' > "$tmp/lines"
stdin=$tmp/lines check "chat with piped lines" \
    expect 0 "$bezel" chat $model --n 4 --greedy --ctx 200

# A store: name, system prompt, stop strings and limits come along.
store=$tmp/store; mkdir -p "$store/blobs" "$store/manifests/registry.ollama.ai/library/small"
blob() {
    local hex
    hex=$(sha256sum "$1" | cut -d' ' -f1)
    cp "$1" "$store/blobs/sha256-$hex"
    echo "\"digest\":\"sha256:$hex\",\"size\":$(stat -c %s "$1")"
}
layer() { echo "{\"mediaType\":\"$1\",$(blob "$2")}"; }
echo '{"model_format":"gguf","model_family":"gemma4"}' > "$tmp/config"
echo '{"num_predict":3,"temperature":0,"stop":["never seen"]}' > "$tmp/params"
type=application/vnd.ollama.image
layers="$(layer $type.model $model),$(layer $type.params "$tmp/params")"
echo "{\"schemaVersion\":2,\"config\":$(layer x "$tmp/config"),\"layers\":[$layers]}" \
    > "$store/manifests/registry.ollama.ai/library/small/latest"
check "list" expect 0 "$bezel" list --store "$store"
check "names the model" grep -q '^small:latest' "$tmp/out"
check "a name from the store" expect 0 "$bezel" generate small --store "$store" --ids 2,30 --json
check "brings its limit along" json "len(d[0]['ids']) <= 3"
echo 'hello' > "$tmp/lines"
stdin=$tmp/lines check "chat from the store" expect 0 "$bezel" chat small --store "$store" --stats
check "keeps to the limit too" grep -q '^([123] tokens' "$tmp/err"
check "a diffusion model in a store" \
    expect 0 python3 tools/tiny/store.py "$tmp/canvases" canvas="$tmp/canvas.gguf"
check "is found by its name" expect 0 "$bezel" inspect canvas --store "$tmp/canvases" --json
check "and says what it leaves to its defaults" json \
    "d[0]['store_name'] == 'canvas:latest' and len(d[0]['canvas']['defaults']) == 6"
check "the shipped models as a store" \
    expect 0 python3 tools/tiny/store.py "$tmp/tiny" tiny=models/tiny.q8_0.gguf \
    moe=models/tiny-moe.q8_0.gguf
check "are listed" expect 0 "$bezel" list --store "$tmp/tiny"
check "both" test "$(grep -c ':latest' "$tmp/out")" -eq 2
echo 'What is the capital of France?' > "$tmp/lines"
for name in tiny moe:latest library/tiny registry.ollama.ai/library/Tiny:Latest; do
    stdin=$tmp/lines check "$name answers" expect 0 "$bezel" chat $name --store "$tmp/tiny" --greedy
    check "Paris" grep -q Paris "$tmp/out"
done
mkdir -p "$tmp/here/small"
check "a folder of that name is not in the way" \
    expect 0 env -C "$tmp/here" "$(realpath "$bezel")" logits small --store "$(realpath "$store")" \
    --ids 2
if [[ -e /dev/full ]]; then
    full() { "$@" > /dev/full 2> "$tmp/err"; [[ $? -eq 1 ]]; }
    for c in "--help" "inspect $model" "logits $model --ids 2" "generate $model --ids 2 --n 2"; do
        check "bezel $c into a full disk fails" full "$bezel" $c
        check "in one sentence" one_sentence
    done
fi
# The models that ship have names.
# with no store; the service's is on no test machine
alone() { env -u OLLAMA_MODELS HOME="$(realpath "$tmp")/home" "$@"; }
mkdir -p "$tmp/home"
check "list without a store" expect 0 alone "$bezel" list
check "shows what ships" test "$(grep -cE '^tiny(-moe|-diffusion)?:latest ' "$tmp/out")" -eq 3
check "an empty OLLAMA_MODELS names no store" expect 0 alone OLLAMA_MODELS= "$bezel" list
check "list of a folder that is no store is a failure" expect 1 "$bezel" list --store "$tmp/home"
check "inspect tiny" expect 0 alone "$bezel" inspect tiny
check "run tiny" expect 0 alone "$bezel" run tiny "What is the capital of France?" --greedy
check "answers" grep -q Paris "$tmp/out"
check "run tiny-diffusion" \
    expect 0 alone "$bezel" run tiny-diffusion "What is the capital of France?" --seed 1
check "answers too" grep -q Paris "$tmp/out"
check "diffuse Tiny-Diffusion:latest" \
    expect 0 alone "$bezel" diffuse Tiny-Diffusion:latest --chat --seed 1 --json \
    --prompt "What is the capital of France?"
check "says how its canvas ended" json "d[0]['canvases'][0]['stopped'] == 'stable'"
check "run tiny:latest of a store that lacks it is a failure" \
    expect 1 "$bezel" run tiny:latest hi --store "$store"
check "in one sentence" one_sentence
echo 'France' > "$tmp/question"
stdin=$tmp/question check "run with a question on standard input and in PROMPT" \
    expect 0 "$bezel" run tiny \
    "What is the capital of this?" --greedy
check "reads both" grep -q Paris "$tmp/out"
: > "$tmp/empty"
stdin=$tmp/empty check "run with nothing to ask is a failure" expect 1 "$bezel" run tiny
check "in one sentence" one_sentence

# What an answer keeps to.
printf '%s' '{"type":"object","properties":{"city":{"type":"string","maxLength":20},' \
    '"capital":{"type":"boolean"}},"required":["city","capital"],"additionalProperties":false}' \
    > "$tmp/schema.json"
echo 'root ::= "yes " [0-9] | "no " [a-f]' > "$tmp/answer.gbnf"
ask="What is the capital of France?"
check "run --schema" expect 0 "$bezel" run tiny "$ask" --seed 1 --schema "$tmp/schema.json"
check "answers with JSON of the schema" \
    json "type(d[0]['city']) is str and type(d[0]['capital']) is bool and len(d[0]) == 2"
check "run --schema --thinking" \
    expect 0 "$bezel" run tiny "$ask" --greedy --thinking --schema "$tmp/schema.json"
check "thinks first" grep -q 'The user asks' <(head -n 1 "$tmp/out")
check "and then answers with it" \
    grep -qE '^\{"city":".*","capital":(true|false)\}$' <(tail -n 1 "$tmp/out")
check "generate --grammar" \
    expect 0 "$bezel" generate tiny --prompt "$ask" --seed 3 --json --grammar "$tmp/answer.gbnf"
check "writes a text of the grammar, and ends" \
    json "__import__('re').fullmatch('yes [0-9]|no [a-f]', d[0]['text']) and d[0]['stop'] == 'end'"
printf '%s\n' "$ask" "And of Japan?" > "$tmp/lines"
stdin=$tmp/lines check "chat --regex" expect 0 "$bezel" chat tiny --greedy --regex '[A-Z][a-z]+!'
check "answers each line so" test "$(grep -cE '^[A-Z][a-z]+!$' "$tmp/out")" -eq 2
check "run --json-object" expect 0 "$bezel" run tiny "$ask" --greedy --json-object
check "answers with an object" json "type(d[0]) is dict"
check "two of them are wrong usage" \
    expect 2 "$bezel" run tiny "$ask" --json-object --regex a
echo '{"type":"text"}' > "$tmp/wrong.json"
check "a schema that is none is a failure" \
    expect 1 "$bezel" run tiny "$ask" --schema "$tmp/wrong.json"
check "in one sentence" one_sentence
check "that names file and keyword" grep -q 'wrong.json: type at' "$tmp/err"
echo '{"type":"object"},"regex":"a"' > "$tmp/wrong.json"
check "so is a file that is no JSON" \
    expect 1 "$bezel" generate tiny --prompt "$ask" --schema "$tmp/wrong.json"
check "in one sentence" one_sentence
check "a file that is missing" expect 1 "$bezel" chat tiny --grammar "$tmp/none.gbnf"
check "in one sentence" one_sentence
check "and a diffusion model" expect 1 "$bezel" run tiny-diffusion "$ask" --regex a
check "in one sentence" one_sentence

# A reader that leaves is no failure to talk about.
for c in "generate tiny --prompt the --n 500" "inspect tiny --tensors --keys" \
    "logits tiny --ids 2,3,4,5 --top 4000"; do
    check "bezel $c | head is quiet" test -z "$("$bezel" $c 2>&1 > >(head -c 1 > /dev/null))"
done
ends_early() { "$@" 2> "$tmp/err" | head -c 1 > /dev/null; [[ ${PIPESTATUS[0]} -eq 141 ]]; }
# More than a pipe holds, so that the reader is gone before all is written.
check "and ends as shells expect" ends_early "$bezel" logits tiny --ids 2,3,4,5 --top 4000

# Chat on a terminal.
typed() {
    local keys=$1
    shift
    expect 0 python3 tests/terminal.py "$keys" "$bezel" chat tiny --greedy "$@"
}
right17=$(printf '\\x06%.0s' {1..17}) left3='\x1b[D\x1b[D\x1b[D'
check "a line is edited" \
    typed 'What is the capitl of Frnce?\x01'$right17'a\x05'$left3'\x02a\r\x04'
check "and sent as it stands" grep -q 'What is the capital of France?' "$tmp/out"
check "and answered" grep -q 'Paris' "$tmp/out"
check "the line before comes back" typed 'What is the capital of Japan?\rx\x7f\x1b[A\r\x04' --n 20
check "and is asked again" test "$(grep -o 'is Tokyo' "$tmp/out" | wc -l)" -eq 2
check "three quotes begin several lines" typed '"""What is the capital\rof France?"""\r\x04'
check "as one question" grep -q 'is Paris' "$tmp/out"
check "a pasted text of two lines is one question" \
    typed '\x1b[200~What is the capital\nof France?\x1b[201~\r\x04'
check "too" test "$(grep -o 'is Paris' "$tmp/out" | wc -l)" -eq 1
check "a pasted command to the terminal" typed '\x1b[200~a\xc2\x9bb\x7fc\x1b[201~\r\x04' --n 4
check "is shown as a space" python3 -c "import sys; t = open('$tmp/out').read()
sys.exit('\x9b' in t or '\x7f' in t or 'a b' not in t)"
check "an unknown command" typed '/frobnicate now\r/think maybe\r/clear  \r\x04'
check "is named" grep -q 'There is no command /frobnicate now; /help lists them' "$tmp/out"
check "as is one with a word that it does not know" grep -q 'no command /think maybe;' "$tmp/out"
check "a space behind a known one does no harm" \
    bash -c '! grep -q "no command /clear" "$1"' - "$tmp/out"
check "a text in quotes that begins as a command" \
    typed '"""/frobnicate"""\r\x1b[200~/help\nme\x1b[201~\r\x04' --n 4
check "is none, nor are lines that were pasted" \
    bash -c '! grep -q "no command\|/clear" "$1"' - "$tmp/out"
# A model that writes nothing but the byte of ESC.
escape=$(printf '\033' | "$bezel" tokenize tiny --no-bos --plain | tr -d '[]')
check "a model that writes commands to the terminal" \
    typed 'hi\r\x04' --n 3 --logit-bias "$escape:1000"
check "shows them as unprintable" python3 -c "import sys; t = open('$tmp/out').read()
sys.exit('\ufffd\ufffd\ufffd' not in t or '\x1b\x1b' in t)"
check "and writes them as they are to a file" \
    expect 0 "$bezel" generate tiny --prompt a --n 3 --logit-bias "$escape:1000"
check "all three" test "$(tr -cd '\033' < "$tmp/out" | wc -c)" -eq 3
check "Ctrl-C at the prompt" typed 'hello\x03/exit\r'
check "says how to leave" grep -q 'Ctrl-D leaves' "$tmp/out"
printf '"""What is the capital\nof France?"""\n' > "$tmp/lines"
stdin=$tmp/lines check "three quotes in piped lines" expect 0 "$bezel" chat tiny --greedy
check "are one question" grep -q '^The capital of France is Paris' "$tmp/out"
check "a penalty that is no number is refused" \
    expect 2 "$bezel" generate $model --ids 2 --presence-penalty nan
check "in one sentence" one_sentence
check "a bias past the vocabulary is refused" \
    expect 1 "$bezel" generate $model --ids 2 --logit-bias 99999:1

echo "$passed passed, $failed failed"
exit "$failed"
