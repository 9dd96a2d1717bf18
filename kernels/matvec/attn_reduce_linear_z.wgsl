// attn_reduce_linear_z - y = W o + sum of the adapters s B z, where for each head
//   o = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest top_s, and
//   z = A o is the same sum of the parts of z behind the splits     (decode: one row)
//
//   partial  read   n_head x n_split x (head_dim + 4 + rank) f32
//   w        read   rows x cols
//   b        read   see lib/lora.wgsl
//   y        write  rows f32
//   grid   a workgroup per R WG / LANES rows of W
//   bytes  W and B once; partial comes from the cache
//   needs  splits of attn_decode_lora or attn_decode_shared; head_dim % 16 == 0; rank <= head_dim /
//          4 and 64; cols = n_head head_dim <= 4 SHARED_ROW and 16 WG; n_head rank <= 4 WG; rows %
//          4 == 0
//
// As attn_reduce_linear where W has adapters.
//
// Reference: attention() and linear() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 1
//!axis input partials
//!without format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
//!include lib/lora.wgsl

struct Params {
    cols : u32,
    rows : u32,
    head_dim : u32,
    n_split : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl; a multiple of 4
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind partial read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind b read array<f32>
//!bind y update array<f32>

var<workgroup> z_heads : array<vec4<f32>, WG>; // rank / 4 for each head

fn rank4() -> u32 {
    return p.rank / 4u;
}

// Of all heads.
fn z_of(k : u32) -> f32 {
    var sum = 0.0;
    for (var head = 0u; head < MOST_TURNS; head++) {
        if (head * p.head_dim >= p.cols) {
            break;
        }
        sum += z_heads[head * rank4() + k / 4u][k % 4u];
    }
    return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = 4u * id;
    if (i < p.cols / 4u) {
        keep(i, merged(i));
        let n4 = p.head_dim / 4u;
        if (i % n4 / 4u < rank4()) {
            z_heads[i / n4 * rank4() + i % n4 / 4u] = z_merged;
        }
    }
    workgroupBarrier();
    let lane = id % LANES;
    let first = R * (flat_group(wid, num) * (WG / LANES) + id / LANES);
    let rows = four_from(first, p.rows);
    let sum = add_lanes(four_rows(rows, 0u, lane) + adapter_rows(rows, lane), id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r >= R) {
            break;
        }
        if (first + r < p.rows) {
            y[first + r] = sum[r];
        }
    }
}
