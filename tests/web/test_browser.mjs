// The op table inside Chromium: node tests/web/test_browser.mjs [build/wasm/ops_test.wasm] [more of
// the query]
import { runPage } from './browser.mjs';
import { zeroedByLoop } from './dawn_toggles.mjs';

const [wasm = 'build/wasm/ops_test.wasm', query = ''] = process.argv.slice(2);
process.exitCode = Math.min(
  100,
  await runPage(`/tests/web/ops.html?wasm=${wasm}&${query}`, {
    seconds: 1800, flags: [zeroedByLoop],
  }),
);
