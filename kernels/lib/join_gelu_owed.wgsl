// join_gelu_owed - the kernel of that name without add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/gelu.wgsl
//!include lib/joining.wgsl
//!include lib/spread.wgsl
//!include lib/joined_row.wgsl
//!include lib/put_ahead.wgsl

struct Params {
    cols : u32,
    rows : u32,
    n_more : u32, // rows of W after those of y
    by_col : u32, // column of `by` that meets column 0 of y
    has_branch : u32,
    owed_rank : u32, // see lib/owed.wgsl
    owed_at : u32,
    owed_parts : u32,
    owed_scales : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> post : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w : array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> by : array<f32>;
@group(0) @binding(6) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y : array<f32>;
@group(0) @binding(8) var<storage, read> b : array<vec4<f32>>;

var<workgroup> room : array<vec4<f32>, 512>; // 8 WG columns

fn put_lacking(i : u32, v : vec4<f32>) {
    room[i] = v;
}

fn lacking(i : u32) -> vec4<f32> {
    return room[i];
}

fn post_of(i : u32) -> vec4<f32> {
    return post[i];
}

fn factor() -> f32 {
    return 1.0;
}

fn normed() -> bool {
    return false;
}

fn lead(i : u32) -> vec4<f32> {
    return vec4<f32>(1.0);
}

// The thread's columns of a row of W; past the last row of that.
fn w_columns(row : u32, id : u32) -> Four {
    if (id >= p.cols / 16u) {
        return Four();
    }
    let at = min(row, p.rows + p.n_more - 1u) * (p.cols / 4u) + first4(id);
    return Four(w[at], w[at + apart4()], w[at + 2u * apart4()], w[at + 3u * apart4()]);
}

fn dot_four(u : Four, v : Four) -> f32 {
    return (dot(u.a, v.a) + dot(u.b, v.b)) + (dot(u.c, v.c) + dot(u.d, v.d));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // A workgroup has four rows of W, a thread sixteen columns of them, which are on their way while the row is joined.
    let group = flat_group(wid, num);
    let first = 4u * group;
    if (first >= p.rows + p.n_more) {
        return;
    }
    let w0 = w_columns(first, id);
    let w1 = w_columns(first + 1u, id);
    let w2 = w_columns(first + 2u, id);
    let w3 = w_columns(first + 3u, id);
    let v = joined_row(0u, id, group == 0u).state;
    workgroupBarrier(); // before the next sum
    let sums = add_over(vec4<f32>(dot_four(w0, v), dot_four(w1, v), dot_four(w2, v), dot_four(w3, v)), id, WG);
    if (id >= 4u) {
        return;
    }
    let row = first + id;
    if (row < p.rows) {
        y[row] = gelu(sums[id]) * by[p.by_col + row];
    } else if (row < p.rows + p.n_more) {
        put_ahead(row - p.rows, sums[id]);
    }
}
