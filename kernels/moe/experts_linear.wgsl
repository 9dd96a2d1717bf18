// experts_linear - y[t][slot] = W_e x[t] (or of x[t][slot]), adapters included, e = ids[t][slot]
//
//   x    read   n_tok [x n_used] x cols f32     grid   each (t, slot) in turn: a workgroup per
//   ids  read   n_tok x n_used i32                     4 WG / LANES rows of W_e
//   w    read   n_mat x rows x cols             bytes  W_e once a (t, slot)
//   z    read   n_tok x n_used x rank f32       needs  x_stride % 4 == 0, x_slot % 4 == 0;
//   b    read   see lib/lora.wgsl                      rank 0: z and b are any buffers, unread
//   y    write  n_tok x n_used x rows f32
//
// The buffer holds the experts [mat0, mat0 + n_mat): y of other experts stays as it is.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!axis product own
//!axis matrices 1
//!axis input memory
//!axis acts rows
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
//!include lib/lora.wgsl

struct Params {
    cols : u32,
    rows : u32, // of one expert
    mat0 : u32, // first expert of this buffer
    n_mat : u32,
    n_tok : u32,
    n_used : u32,
    x_stride : u32, // f32 from t to t
    x_slot : u32,   // f32 from slot to slot; 0: all slots of a t share a row
    y_stride : u32, // f32 from (t, slot) to the next
    scales : u32,   // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_rows : u32,
    b_scales : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind ids read array<i32>
//!bind w read array<vec4<u32>>
//!bind z read array<f32>
//!bind b read array<f32>
//!bind y update array<f32>

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let row_groups = WG / LANES;
    let per_slot = (p.rows + 4u * row_groups - 1u) / (4u * row_groups);
    let group = flat_group(wid, num);
    let slot = group / per_slot; // counted through all t
    if (slot >= p.n_tok * p.n_used) {
        return;
    }
    let mat = u32(ids[slot]) - p.mat0;
    if (mat >= p.n_mat) {
        return;
    }
    let first = 4u * (group % per_slot * row_groups + id / LANES);
    let rows = four_from(first, p.rows);
    let x_base = (slot / p.n_used * p.x_stride + slot % p.n_used * p.x_slot) / 4u;
    let lane = id % LANES;
    var mine = four_rows(rows + mat * p.rows, x_base, lane);
    if (p.rank > 0u) {
        mine += lora_rows(u32(ids[slot]), rows, slot * p.rank, lane, LANES);
    }
    let sum = add_lanes(mine, id);
    for (var r = lane; r < 4u; r += LANES) {
        if (first + r < p.rows) {
            y[slot * p.y_stride + first + r] = sum[r];
        }
    }
}
