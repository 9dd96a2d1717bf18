// merge_linear_z - the kernel of that name without its shape and add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/held.wgsl
//!include lib/merged.wgsl
//!include lib/adapter_rows.wgsl
//!include lib/four_rows.wgsl

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
