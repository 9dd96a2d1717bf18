// The tier of subgroup matrices, which no software adapter has: the products of 16 x 16 pieces are
// spelled out here in plain WGSL, everything else of the kernels and of the core runs as it is,
// through the table of tests/ops_cases.h.
//
//   node tests/web/test_matrix.mjs [build/wasm/ops_test.wasm] [--only OP]
import fs from 'node:fs';

import { withNames } from './kernel_names.mjs';
import './software_adapter.mjs';
import { runTable } from './ops_table.mjs';

/** What the builtins do, for subgroups of 32 neighbours: a lane has row lane / 2 of a piece,
 *  eight tokens of it. */
const spelled = `
struct Piece { a : vec4<f32>, b : vec4<f32> }
fn half_in(words : vec4<u32>, i : u32) -> f32 {
    let two = unpack2x16float(words[i / 2u]);
    return select(two.x, two.y, i % 2u == 1u);
}
// Places of pieces: which stage, and where in it; of W also whether its columns are the rows.
fn product(w_at : vec3<u32>, x_at : vec3<u32>, sum : Piece) -> Piece {
    let row = lane_id / 2u;
    let tok = lane_id % 2u * 8u;
    var out = sum;
    for (var k = 0u; k < 16u; k++) {
        let at = select(vec2<u32>(row, k), vec2<u32>(k, row), w_at.z == 1u);
        let w = half_in(stage[w_at.x][w_at.y + at.x * PITCH + at.y / 8u], at.y % 8u);
        for (var i = 0u; i < 4u; i++) {
            out.a[i] += w * half_in(stage[x_at.x][x_at.y + (tok + i) * PITCH + k / 8u], k % 8u);
            out.b[i] +=
                w * half_in(stage[x_at.x][x_at.y + (tok + i + 4u) * PITCH + k / 8u], k % 8u);
        }
    }
    return out;
}
fn store_piece(unit : u32, at : u32, m : Piece) {
    for (var i = 0u; i < 4u; i++) {
        let row = lane_id % 2u * 8u + i;
        stage[unit][at + row * 4u + lane_id / 8u][lane_id / 2u % 4u] = bitcast<u32>(m.a[i]);
        stage[unit][at + (row + 4u) * 4u + lane_id / 8u][lane_id / 2u % 4u] = bitcast<u32>(m.b[i]);
    }
}
var<private> lane_id : u32;
`;

const PIECE = /subgroup_matrix_(left|right)<f16,\s*16,\s*16>/.source;
const LOADS = new RegExp(
  `subgroupMatrixLoad<${PIECE},\\s*(row|col)_major>`
    + '\\(\\s*&stage\\[(\\w+)\\],(\\w+),PITCH\\)',
  'g',
);

function spellOut(source) {
  const out = spelled + withNames(source)
    .replace(/enable [^;]*;/g, '')
    .replace(/subgroup_matrix_result<f32,\s*16,\s*16>\(\)/g, 'Piece()')
    .replace(
      LOADS,
      (_, side, major, unit, at) =>
        `vec3<u32>(${unit},${at},${+(side === 'left' && major === 'col')})`,
    )
    .replace(/subgroupMatrixMultiplyAccumulate\((\w+),(\w+),(\w+)\)/g, 'product($1,$2,$3)')
    .replace(
      /subgroupMatrixStore<col_major>\(&stage\[(\w+)\],(\w+),(\w+),4u\)/g, 'store_piece($1,$2,$3)',
    )
    .replace(/,\s*@builtin\(subgroup_id\)\s*subgroup\s*:\s*u32/g, '')
    .replace(/(fn main\([^{]*\{)/, '$1let subgroup=id/32u;lane_id=id%32u;');
  const left = /subgroup_?[mM]atrix\w*/.exec(out);
  if (left) throw new Error(`${left[0]} is not spelled out`);
  return out;
}

const args = process.argv.slice(2), at = args.indexOf('--only');
const only = at < 0 ? undefined : args.splice(at, 2)[1];
const wasm = fs.readFileSync(args[0] ?? 'build/wasm/ops_test.wasm');
// In one call, so that the device compiles a kernel once for all of them.
const products = 'linear,linear_splits,linear_gelu,gate_up,experts,canvas_head';
process.exitCode = Math.min(
  100, await runTable(wasm, { tiers: ['matrix'], only: only ?? products, spell: spellOut }),
);
