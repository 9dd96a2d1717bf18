// attn_reduce_linear - y = W o, where for each head
//   o = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest top_s
//   (decode: one row)
//
//   partial  read   n_head x n_split x (head_dim + 4) f32
//   w        read   rows x cols
//   y        write  rows f32
//   grid   any number of workgroups
//   bytes  W once; partial comes from the cache
//   needs  splits of attention_split or attn_decode; head_dim % 16 == 0; cols = n_head head_dim <=
//          4 SHARED_ROW and 16 WG
//
// Every workgroup adds up the splits for itself, as attn_reduce does: while they are few, that is
// cheaper than a dispatch for which all would wait.
//
// Reference: attention() and linear() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 1
//!axis input partials
//!without acts == int8 && format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl

struct Params {
    cols : u32,
    rows : u32,
    head_dim : u32,
    n_split : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind partial read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind y update array<f32>

fn rank4() -> u32 {
    return 0u;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    if (4u * id < p.cols / 4u) {
        keep(4u * id, merged(4u * id));
    }
    workgroupBarrier();
    // Each workgroup takes several blocks of rows, so that few workgroups merge the splits.
    let row_groups = WG / LANES;
    let groups = num.x * num.y;
    let lane = id % LANES;
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = flat_group(wid, num) + i * groups;
        if (block * R * row_groups >= p.rows) {
            break;
        }
        let first = R * (block * row_groups + id / LANES);
        let rows = four_from(first, p.rows);
        let sum = add_lanes(four_rows(rows, 0u, lane), id);
        for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
            let r = lane + k * LANES;
            if (r >= R) {
                break;
            }
            if (first + r < p.rows) {
                y[first + r] = sum[r];
            }
        }
        workgroupBarrier(); // before the next block's sum
    }
}
