// merge_linear_z - the kernel of that name without its shape and add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/held.wgsl
//!include lib/merged.wgsl
//!include lib/a_row.wgsl
//!include lib/led_rows.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,
    groups : u32, // workgroups that share W; each of those before them takes a row of `more`
    head_dim : u32,
    n_split : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl; a multiple of 4
    n_more : u32, // rows of `more`
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> partial : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> b : array<f32>;
@group(0) @binding(4) var<storage, read> more : array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y : array<f32>;

var<workgroup> z_heads : array<vec4<f32>, WG>; // rank / 4 for each head

fn rank4() -> u32 {
    return p.rank / 4u;
}

fn a_at(i : u32) -> vec4<f32> {
    return more[i];
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
    // Those that take a row of `more` come first.
    let at = flat_group(wid, num);
    let group = select(at - p.n_more, at + p.groups, at < p.n_more);
    let i = 4u * id;
    let mine = i < p.cols / 4u;
    if (at >= p.groups + p.n_more) {
        return;
    }
    if (group >= p.groups) {
        let row = group - p.groups;
        let of_a = a_columns(row, i);
        var o = Four();
        if (mine) {
            o = merged(i);
        }
        let sum = a_row(of_a, o, id);
        if (id == 0u) {
            y[p.rows + row] = sum;
        }
        return;
    }
    if (mine) {
        keep(i, merged(i));
        let n4 = p.head_dim / 4u;
        if (i % n4 / 4u < rank4()) {
            z_heads[i / n4 * rank4() + i % n4 / 4u] = z_merged;
        }
    }
    workgroupBarrier();
    let lane = id % LANES;
    let first = R * (group * (WG / LANES) + id / LANES);
    let rows = four_from(first, p.rows);
    let sum = add_lanes(four_rows(rows, 0u, lane) + led_rows(rows, p.rows, p.rank, 0u, 0u, lane), id);
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
