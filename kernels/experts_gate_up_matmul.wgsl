// experts_gate_up_matmul - y[slot] = gelu(gate_e x[t]) * up_e x[t] for the slots of experts_plan's tiles
//   (prefill), adapters included
//
//   x     read   n_tok x cols f32                       grid   a workgroup per tile and 32 columns of y,
//   plan  read   of experts_plan                               tiles first
//   w     read   n_mat x 2 n_ff x cols, gate first      bytes  W_e once a tile, x once per 32 columns
//   z     read   n_slots x rank f32                     needs  x_stride % 4 == 0; x finite up to 8-fold
//   b     read   see lib/lora.wgsl                             columns; rank 0: z and b are any buffers,
//   y     write  n_slots x n_ff f32                            unread
//
// A tile's 64 rows of W are 32 of gate and the same 32 of up, so a thread has both of its columns. The buffer
// holds the experts [mat0, mat0 + n_mat): y of other experts' slots stays as it is.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/grid.wgsl
//!include lib/gelu.wgsl
struct Params {
    cols : u32,
    n_ff : u32, // rows of gate, and of up
    mat0 : u32, // first expert of this buffer
    n_mat : u32,
    n_tiles : u32,
    n_used : u32,
    by_slot : u32, // 1: x has a row for every slot
    x_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_rows : u32,
    b_scales : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> plan : array<u32>;
@group(0) @binding(3) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> z : array<f32>;
@group(0) @binding(5) var<storage, read> b : array<f32>;
@group(0) @binding(6) var<storage, read_write> y : array<f32>;

//!include lib/one_weight.wgsl
//!include lib/shape_$SHAPE.wgsl
//!include lib/experts_tile.wgsl

fn mat_rows() -> u32 {
    return 2u * p.n_ff;
}

fn w_row(row0 : u32, i : u32) -> u32 {
    return i / 32u * p.n_ff + min(row0 + i % 32u, p.n_ff - 1u);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    let col0 = group / p.n_tiles * 32u;
    let tile = tile_at(group % p.n_tiles);
    if (!tile.exists || col0 >= p.n_ff) {
        return;
    }
    let sum = tile_products(tile, col0, id);
    for (var i = 0u; i < 4u; i++) {
        let t = id / 8u + 8u * i;
        let h = gelu_tanh(sum.low[i]) * sum.high[i];
        for (var j = 0u; j < 4u; j++) {
            let col = col0 + id % 8u + 8u * j;
            if (t < tile.n && col < p.n_ff) {
                y[slot_of(tile, t) * p.n_ff + col] = h[j];
            }
        }
    }
}
