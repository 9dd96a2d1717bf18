// experts_matmul_bwd - dx[slot] = W_e' dy[slot] + sum of the adapters s A_e' u[slot], for the slots
//   of experts_plan's tiles; with add it is added     (training)
//
//   dy    read    n_slots x rows f32          grid   a workgroup per tile and 64 columns of W_e,
//   plan  read    of experts_plan                    tiles first
//   w     read    n_mat x rows x cols         bytes  W_e once a tile, dy once per 64 columns
//   u     read    n_slots x rank f32          needs  cols, rows % 4 == 0; rank 0: u, a and s are
//   a     read    rank x cols f32 an expert          any buffers, unread
//   s     read    rank f32 at s_at
//   dx    update  n_slots x cols f32
//
// The buffer holds the experts [mat0, mat0 + n_mat): dx of other experts' slots stays as it is.
//
// Reference: cpu_experts_bwd() in src/ops/ops_cpu_bwd_experts.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis product own
//!axis matrices 1
//!axis input none
//!include lib/matvec.wgsl

struct Params {
    cols : u32,
    rows : u32, // of one expert
    mat0 : u32, // first expert of this buffer
    n_mat : u32,
    n_tiles : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of all adapters, see lib/lora.wgsl
    s_at : u32,
    add : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind dy read array<vec4<f32>>
//!bind plan read array<u32>
//!bind w read array<vec4<u32>>
//!bind u read array<vec4<f32>>
//!bind a read array<vec4<f32>>
//!bind s read array<f32>
//!bind dx update array<vec4<f32>>

//!include train/tile_bwd.wgsl

fn put(slot : u32, col4 : u32, v : vec4<f32>) {
    let n4 = p.cols / 4u;
    if (col4 >= n4) {
        return;
    }
    if (p.add == 1u) {
        dx[slot * n4 + col4] += v;
    } else {
        dx[slot * n4 + col4] = v;
    }
}

fn scales4(at : u32) -> vec4<f32> {
    return vec4<f32>(s[at], s[at + 1u], s[at + 2u], s[at + 3u]);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    let tile = group % p.n_tiles;
    let col0 = group / p.n_tiles * 64u;
    let n = plan[4u * tile + 2u];
    let mat = plan[4u * tile] - p.mat0; // counted in this buffer
    let slots = 4u * p.n_tiles + plan[4u * tile + 1u];
    if (n == 0u || mat >= p.n_mat || col0 >= p.cols) {
        return;
    }
    let eights = (p.cols + 7u) / 8u;
    let last = (p.rows + 31u) / 32u;
    let r = id % 8u;
    let t = id / 8u;
    let col = col0 / 8u + r;
    var s0 = mat4x4<f32>();
    var s1 = mat4x4<f32>();
    for (var step = 0u; step < last + (p.rank + 31u) / 32u; step++) {
        let adapter = step >= last;
        let k0 = select(step, step - last, adapter) * 32u;
        for (var i = 0u; i < 4u; i++) {
            let k = t + 8u * i;
            var e = Eight();
            if (col < eights) {
                if (adapter) {
                    if (k0 + k < p.rank) {
                        let at = 2u * (((mat + p.mat0) * p.rank + k0 + k) * eights + col);
                        e = Eight(a[at], a[at + 1u]);
                    }
                } else if (k0 + k < p.rows) {
                    e = eight((mat * p.rows + k0 + k) * eights + col);
                }
            }
            put_right(k, 2u * r, e.a);
            put_right(k, 2u * r + 1u, e.b);
            // As a loader on the left: four factors of four slots.
            let slot = plan[slots + min(k, n - 1u)];
            let factor = k0 + 4u * r;
            var v = vec4<f32>();
            if (adapter) {
                if (factor < p.rank) {
                    v = u[(slot * p.rank + factor) / 4u] * scales4(p.s_at + factor);
                }
            } else if (factor < p.rows) {
                v = dy[(slot * p.rows + factor) / 4u];
            }
            put_left(k, r, v);
        }
        workgroupBarrier();
        for (var k4 = 0u; k4 < 8u; k4++) {
            let x0 = x_rows(t, k4);
            s0 = plus_product(s0, right_rows(k4, r), x0);
            s1 = plus_product(s1, right_rows(k4, r + 8u), x0);
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < 4u; i++) {
        if (t + 8u * i < n) {
            let slot = plan[slots + t + 8u * i];
            put(slot, col0 / 4u + r, s0[i]);
            put(slot, col0 / 4u + r + 8u, s1[i]);
        }
    }
}
