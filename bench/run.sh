#!/usr/bin/env bash
# run.sh BUILD - the measurements of docs/PERFORMANCE.md that need no GPU. BEZEL_BENCH_DIR keeps the
# files (3.4 GB).
set -euo pipefail
build=${1:?usage: bench/run.sh BUILD}
cd "$(dirname "$0")/.."
dir=${BEZEL_BENCH_DIR:-$build/bench/files}
mkdir -p "$dir"

echo "tokenizer, 262,144 tokens and 514,906 merges:"
"$build/bench/tokenizer"

echo "a small model (tiny-e2b, random weights):"
[[ -e $dir/tiny-e2b.gguf ]] || "$build/bezel" synth tiny-e2b "$dir/tiny-e2b.gguf" --quant q4_k_m
"$build/bezel" bench "$dir/tiny-e2b.gguf"

echo "E2B in full size (random weights, 3.4 GB):"
[[ -e $dir/e2b.gguf ]] || "$build/bezel" synth e2b "$dir/e2b.gguf" --quant q4_k_m
"$build/bezel" bench "$dir/e2b.gguf" --pp 64 --tg 16 --repeats 3
echo "peak memory of a short generation:"
/usr/bin/env python3 - "$build/bezel" "$dir/e2b.gguf" <<'P'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "generate", sys.argv[2], "--ids", "2,105,2364,107", "--n", "8",
                "--greedy", "--stats"], check=True, stdout=subprocess.DEVNULL)
print(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20:.2f} GiB")
P
