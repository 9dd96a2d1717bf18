#!/usr/bin/env bash
# run.sh BUILD - the tests of the wasm module and the GPU: in Node, in Deno and in Chromium; exit code = how many
# failed. Needs `make web` and BUILD/wasm/ops_test.wasm.
set -uo pipefail
build=${1:?usage: tests/web/run.sh BUILD}
cd "$(dirname "$0")/../.."
mkdir -p "$build/tmp" build/tmp
passed=0 failed=0
one() { # name, command...
    local name=$1; shift
    local start=$SECONDS
    if "$@" > "$build/tmp/$name.log" 2>&1; then
        passed=$((passed + 1))
        printf '%-18s ok    %s (%d s)\n' "$name" "$(tail -n 1 "$build/tmp/$name.log")" $((SECONDS - start))
    else
        failed=$((failed + 1))
        printf '%-18s FAILED\n' "$name"
        tail -n 40 "$build/tmp/$name.log"
    fi
}
ops=$build/wasm/ops_test.wasm
deno=web/engine/node_modules/.bin/deno
one wasm tools/check_wasm.py "$build/wasm/bezel.wasm"
one node node tests/web/test_node.mjs "$build/bezel"
one server node tests/web/test_server.mjs
one server_clients node tests/web/test_server_clients.mjs
one api_cpu node tests/web/test_api.mjs cpu
one api_gpu node tests/web/test_api.mjs gpu
one train_cpu node tests/web/test_train.mjs cpu
one train_facts node tests/web/test_facts.mjs cpu
one train_chromium node tests/web/test_train_browser.mjs cpu
one package node tests/web/test_package.mjs "$build/bezel"
one gpu node tests/web/test_gpu.mjs
one gpu_model node tests/web/test_gpu_model.mjs "$build/bezel"
one gpu_session node tests/web/test_gpu_session.mjs "$build/bezel"
one gpu_load node tests/web/test_gpu_load.mjs "$build/bezel"
one ops_deno "$deno" run -A tests/web/test_ops.mjs "$ops"
one ops_node node tests/web/test_ops.mjs "$ops"
one ops_spec_default node tests/web/test_ops.mjs "$ops" --profile spec-default
one store node tests/web/test_store.mjs
one app node tests/web/app/test_app.mjs
one app_views node tests/web/app/test_views.mjs
one app_train node tests/web/app/test_train.mjs
one ops_chromium node tests/web/test_browser.mjs "$ops"
echo "$passed passed, $failed failed"
exit "$failed"
