// linear_z_partials - y = W x + s B z, where z is the sum of n_parts rows     (decode: one row)
//
//   x   read   cols, ready
//   w   read   rows x cols
//   z   read   from vec4 z_at on n_parts x rank f32
//   b   read   see lib/lora.wgsl
//   y   write  rows f32
//   grid   a workgroup per R WG / LANES rows of W
//   bytes  W and B once; x and z come from the cache
//   needs  cols % 16 == 0; rank % 4 == 0; rank <= WG / 4
//
// As linear, where each workgroup of the dispatch before has computed a part of z = A x.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 1
//!axis input memory
//!without format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
//!include lib/lora.wgsl

struct Params {
    cols : u32,
    rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32,
    n_parts : u32,
    z_at : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind z read array<vec4<f32>>
//!bind b read array<f32>
//!bind y update array<f32>

const SUMS : u32 = 16u; // that are left of all parts in workgroup memory

var<workgroup> z_some : array<vec4<f32>, WG>;
var<workgroup> z_sums : array<vec4<f32>, WG>; // SUMS times rank / 4

// A thread's parts are every so many vec4s, number `turn` of them; past the end nothing.
fn part_at(turn : u32, id : u32) -> vec4<f32> {
    let rank4 = p.rank / 4u;
    let apart = WG / rank4 * rank4;
    let i = id + turn * apart;
    if (id >= apart || i >= p.n_parts * rank4) {
        return vec4<f32>();
    }
    return z[p.z_at + i];
}

// z from what each thread has of it. The whole workgroup takes part.
fn sum_parts(mine : vec4<f32>, id : u32) {
    let rank4 = p.rank / 4u;
    z_some[id] = mine;
    workgroupBarrier();
    if (id < SUMS * rank4) {
        var sum = vec4<f32>();
        for (var i = id; i < WG / rank4 * rank4; i += SUMS * rank4) {
            sum += z_some[i];
        }
        z_sums[id] = sum;
    }
    workgroupBarrier();
}

fn z_of(k : u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < SUMS; i++) {
        sum += z_sums[i * (p.rank / 4u) + k / 4u][k % 4u];
    }
    return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let lane = id % LANES;
    let first = R * (flat_group(wid, num) * (WG / LANES) + id / LANES);
    let rows = four_from(first, p.rows);
    // On their way while W is multiplied.
    let z0 = part_at(0u, id);
    let z1 = part_at(1u, id);
    let z2 = part_at(2u, id);
    let z3 = part_at(3u, id);
    let z4 = part_at(4u, id);
    let z5 = part_at(5u, id);
    let product = four_rows(rows, 0u, lane);
    var mine = ((z0 + z1) + (z2 + z3)) + (z4 + z5);
    for (var turn = 6u; turn < MOST_TURNS; turn++) {
        if (turn * (WG / (p.rank / 4u) * (p.rank / 4u)) >= p.n_parts * (p.rank / 4u)) {
            break;
        }
        mine += part_at(turn, id);
    }
    sum_parts(mine, id);
    let sum = add_lanes(product + adapter_rows(rows, lane), id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r < R && first + r < p.rows) {
            y[first + r] = sum[r];
        }
    }
}
