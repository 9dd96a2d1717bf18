// kv_write - row t of k and v becomes position pos + pos_offset + t of the cache, in slot position
//   % n_slots
//
//   k        read   rows x cols f32        grid   ceil(rows * cols / 4 / 64) workgroups
//   v        read   rows x cols f32               (with KV_F16: rows * cols / 8)
//   k_cache  write  n_slots x cols         bytes  1 read + 1 write an element
//   v_cache  write  n_slots x cols         needs  cols % 4 == 0 (KV_F16: % 8), rows <= n_slots
//
// Reference: kv_write() in src/ops/ops_cpu.c. Tolerance 0; KV_F16: one rounding to half.

//!include lib/base.wgsl
//!include lib/step.wgsl

struct Params {
    rows : u32,
    cols : u32,
    n_slots : u32,
    pos_offset : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind k read array<vec4<f32>>
//!bind v read array<vec4<f32>>
//!bind k_cache update array<vec4<u32>>
//!bind v_cache update array<vec4<u32>>
//!include lib/kv.wgsl

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let n = (p.cols / 4u) >> KV_F16; // of vec4<u32> in a row of the cache
    let i = flat_group(wid, num) * WG + lid;
    if (i >= p.rows * n) {
        return;
    }
    let slot = (step.pos + p.pos_offset + i / n) % p.n_slots;
    let to = slot * n + i % n;
    if (KV_F16 == 0u) {
        k_cache[to] = bitcast<vec4<u32>>(k[i]);
        v_cache[to] = bitcast<vec4<u32>>(v[i]);
    } else {
        k_cache[to] = kv_halves(k[2u * i], k[2u * i + 1u]);
        v_cache[to] = kv_halves(v[2u * i], v[2u * i + 1u]);
    }
}
