// Every op of the table in tests/ops_cases.h: the GPU backend and its kernels against the reference
// loops.
//
//   node tests/web/test_ops.mjs [build/wasm/ops_test.wasm] [--tier plain|subgroup|matrix]
//     [--profile NAME] [--as PROFILE,…] [--only OP,OP]
//
// --profile makes a smaller device; --as tells the core, after that, that this one is smaller.
// In Node on Chromium's software adapter (BEZEL_ADAPTER=real: the machine's own), and in Deno.
import fs from 'node:fs';

import './software_adapter.mjs';
import { runTable } from './ops_table.mjs';

const args = process.argv.slice(2);
const option = (name) => (args.includes(name) ? args.splice(args.indexOf(name), 2)[1] : undefined);
const tiers = option('--tier')?.split(','), profile = option('--profile');
const as = option('--as')?.split(','), only = option('--only');
const wasm = fs.readFileSync(args[0] ?? 'build/wasm/ops_test.wasm');
process.exitCode = Math.min(
  100, await runTable(wasm, { ...(tiers && { tiers }), profile, ...(as && { as }), only }),
);
