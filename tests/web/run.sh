#!/usr/bin/env bash
# run.sh BUILD - the tests of the wasm module, the GPU and the page: in Node, Deno, Chromium,
# Firefox and WebKit; exit code = how many failed. Needs `make web` and BUILD/wasm/ops_test.wasm.
# The longest come first.
set -uo pipefail
build=${1:?usage: tests/web/run.sh BUILD}
cd "$(dirname "$0")/../.."
mkdir -p "$build/tmp" build/tmp
source tests/lanes.sh
ops=$build/wasm/ops_test.wasm
deno=web/engine/node_modules/.bin/deno
one wasm tools/check_wasm.py "$build/wasm/bezel.wasm" "$build"/gen/*.wgsl
one ops_node node tests/web/test_ops.mjs "$ops" --as spec,apple
one ops_deno "$deno" run -A tests/web/test_ops.mjs "$ops"
one app_views node tests/web/app/test_views.mjs
one app_stores node tests/web/app/test_stores.mjs
one gpu_session_deno "$deno" run -A tests/web/test_gpu_session.mjs "$build/bezel"
one gpu_session_device_deno "$deno" run -A tests/web/test_gpu_session_device.mjs "$build/bezel"
one app_durable node tests/web/app/test_durable.mjs
one app_canvas node tests/web/app/test_canvas.mjs
one app_json node tests/web/app/test_json.mjs
one app_models node tests/web/app/test_models.mjs
one app_history node tests/web/app/test_history.mjs
one app_train node tests/web/app/test_train.mjs
one app_firefox node tests/web/app/test_firefox.mjs
one app_webkit node tests/web/app/test_webkit.mjs
one train_facts node tests/web/test_facts.mjs cpu
one ops_chromium node tests/web/test_browser.mjs "$ops"
one train_chromium node tests/web/test_train_browser.mjs gpu
one api_gpu node tests/web/test_api.mjs gpu
one api_sessions_gpu node tests/web/test_api_sessions.mjs gpu
one matrix node tests/web/test_matrix.mjs "$ops"
one node node tests/web/test_node.mjs "$build/bezel"
one node_gpu node tests/web/test_node_gpu.mjs "$build/bezel"
one gpu_session node tests/web/test_gpu_session.mjs "$build/bezel"
one constrained node tests/web/test_constrained.mjs "$build/bezel"
one constrained_deno "$deno" run -A tests/web/test_constrained.mjs "$build/bezel"
one gpu_session_device node tests/web/test_gpu_session_device.mjs "$build/bezel"
one app node tests/web/app/test_app.mjs
one app_chat node tests/web/app/test_chat.mjs
one gpu_model node tests/web/test_gpu_model.mjs "$build/bezel"
one gpu_model_deno "$deno" run -A tests/web/test_gpu_model.mjs "$build/bezel"
one canvas node tests/web/test_canvas.mjs "$build/bezel"
one canvas_deno "$deno" run -A tests/web/test_canvas.mjs "$build/bezel"
one gpu_train node tests/web/test_gpu_train.mjs
one gpu_load node tests/web/test_gpu_load.mjs "$build/bezel"
one gpu_tiers node tests/web/test_gpu_tiers.mjs "$build/bezel"
one gpu_table node tests/web/test_gpu_table.mjs "$build/bezel"
one gpu_validation node tests/web/test_gpu_validation.mjs "$build/bezel"
one train_cpu node tests/web/test_train.mjs cpu
one pull node tests/web/test_pull.mjs "$build/bezel"
one models node tests/web/test_models.mjs "$build/bezel"
one pull_faults node tests/web/test_pull_faults.mjs
one store node tests/web/test_store.mjs
one store_files node tests/web/test_store_files.mjs
one store_damage node tests/web/test_store_damage.mjs
one merge node tests/web/test_merge.mjs "$build/bezel"
one package node tests/web/test_package.mjs "$build/bezel"
one diffusion node tests/web/test_diffusion.mjs "$build/bezel"
one diffusion_gpu node tests/web/test_diffusion_gpu.mjs "$build/bezel"
one diffusion_server node tests/web/test_diffusion_server.mjs "$build/bezel"
one server_clients node tests/web/test_server_clients.mjs
one structured node tests/web/test_structured.mjs
one structured_cases node tests/web/test_structured_cases.mjs
one api_cpu node tests/web/test_api.mjs cpu
one api_sessions_cpu node tests/web/test_api_sessions.mjs cpu
one api_load_gpu node tests/web/test_api_load.mjs gpu
one api_load_cpu node tests/web/test_api_load.mjs cpu
one node_core node tests/web/test_node_core.mjs
one api_constraint node tests/web/test_api_constraint.mjs
one language_model node tests/web/test_language_model.mjs
one server_changes node tests/web/test_server_changes.mjs
one server_faults node tests/web/test_server_faults.mjs
one server_hold node tests/web/test_server_hold.mjs
one server node tests/web/test_server.mjs
one server_queue node tests/web/test_server_queue.mjs
one server_requests node tests/web/test_server_requests.mjs
one order node tests/web/test_order.mjs
one grammar node tests/web/test_grammar.mjs "$build/bezel"
one calls node tests/web/test_calls.mjs
one limits node tests/web/test_limits.mjs "$ops"
one gpu node tests/web/test_gpu.mjs
one kernels_node node tests/web/test_kernels.mjs
one kernels_deno "$deno" run -A tests/web/test_kernels.mjs
one load_chromium node tests/web/test_load_browser.mjs
finish
[[ -n $names ]] && echo "failed:$names"
echo "$passed passed, $failed failed"
exit "$failed"
