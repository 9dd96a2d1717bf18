// residual_norm_lora - to[t] = (x[t] + norm(branch[t]) * post) * scale[0],
//   h = norm(to[t]) * next_w (has_next 0: h = to[t]), then z[t] = A h of up to three matrices,
//   with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one or a few rows t)
//
//   x        read   n_tok x cols f32
//   branch   read   n_tok x cols f32
//   vectors  read   post, scale and next_w at their places, in vec4s
//   a        read   p.lora[0].rank x cols f32
//   a2       read   p.lora[1].rank x cols f32
//   a3       read   p.lora[2].rank x cols f32
//   to       write  n_tok x cols f32
//   norm     write  h; puts 0: any buffer, unwritten
//   s        write  h, ready; behind it z of each matrix i, f32: from word p.lora[i].z_at on
//                   n_tok x p.lora[i].rank
//   grid   each t in turn: two workgroups or more
//   bytes  each A once a row t; the rest comes from the cache
//   needs  cols % 16 == 0; cols <= 16 WG; has_branch 0: nothing is added, branch is any buffer;
//          has_scale 0: factor 1; rank 0: a2 or a3 is any buffer, unread
//
// The products after it (linears_lora, gate_up_lora, linear) read h and z. Every workgroup computes
// the residual and its norm for itself; there are few workgroups.
//
// Reference: the nodes of rule norm_linears, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis acts f32 int8
//!axis tier plain subgroup
//!axis vectors one
//!include lib/lanes.wgsl
//!include lib/residual.wgsl
//!include lib/acts.wgsl
//!include lib/lora.wgsl

// A workgroup's share of z = A x: one row of A, a thread sixteen columns of it, which are on their
// way while x is made.
fn a_columns(row : u32, i : u32) -> Sixteen {
    let n = p.cols / 4u;
    if (i >= n) {
        return Sixteen();
    }
    let at = row * n + i;
    return Sixteen(a_at(at), a_at(at + 1u), a_at(at + 2u), a_at(at + 3u));
}

// The row times x, of which a thread has the same columns. No barrier is needed after an earlier
// sum.
fn a_row(mine : Sixteen, x_mine : Sixteen, id : u32) -> f32 {
    let part =
        (dot(mine.a, x_mine.a) + dot(mine.b, x_mine.b)) +
        (dot(mine.c, x_mine.c) + dot(mine.d, x_mine.d));
    workgroupBarrier();
    return add_some(vec4<f32>(part, 0.0, 0.0, 0.0), 1u, id, WG).x;
}

struct Params {
    lora : array<Adapter, 3>, // rank: rows of A; z lies in s
    cols : u32,
    n_tok : u32, // rows of x and of the results
    has_branch : u32,
    has_scale : u32,
    has_next : u32,
    puts : u32,    // norm is wanted
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind branch read array<vec4<f32>>
//!bind vectors read array<vec4<f32>>
//!bind a read array<vec4<f32>>
//!bind a2 read array<vec4<f32>>
//!bind a3 read array<vec4<f32>>
//!bind to update array<vec4<f32>>
//!bind norm update array<vec4<f32>>
//!bind s update array<vec4<u32>>

fn normed() -> bool {
    return p.has_next != 0u;
}

// Of the rows of all matrices, one after the other.
fn a_at(i : u32) -> vec4<f32> {
    let n = p.cols / 4u;
    let second = p.lora[0].rank * n;
    let third = second + p.lora[1].rank * n;
    if (i < second) {
        return a[i];
    }
    if (i < third) {
        return a2[i - second];
    }
    return a3[i - third];
}

fn put_z(tok : u32, row : u32, z : f32) {
    let second = p.lora[0].rank;
    let third = second + p.lora[1].rank;
    var at = p.lora[0].z_at + tok * p.lora[0].rank + row;
    if (row >= third) {
        at = p.lora[2].z_at + tok * p.lora[2].rank + row - third;
    } else if (row >= second) {
        at = p.lora[1].z_at + tok * p.lora[1].rank + row - second;
    }
    s[at >> 2u][at & 3u] = bitcast<u32>(z);
}

// Columns from vec4 i of row tok on.
fn put_row(tok : u32, i : u32, v : Sixteen) {
    let row = tok * (p.cols / 4u);
    let at = row + i;
    if (p.puts != 0u) {
        norm[at] = v.a;
        norm[at + 1u] = v.b;
        norm[at + 2u] = v.c;
        norm[at + 3u] = v.d;
    }
    put_run(row, p.cols, i / 4u, make_ready(v.a, v.b, v.c, v.d));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // The first of a row's workgroups writes it, the others take the rows of A in turn.
    let groups = groups_a_row(num, p.n_tok);
    let of_row = turn_of(flat_group(wid, num), groups);
    let tok = of_row.row;
    let which = of_row.at;
    let i = 4u * id;
    if (tok >= p.n_tok) {
        return;
    }
    var mine = Sixteen();
    if (which > 0u) {
        mine = a_columns(which - 1u, i);
    }
    let at = tok * (p.cols / 4u) + i;
    var c = Columns();
    if (i < p.cols / 4u) {
        c = columns(at, i);
    }
    let j = residual_from(c.sums, at, id);
    let state = next_state(c, j);
    let h = block_input(c, j, state);
    if (which == 0u) {
        if (i < p.cols / 4u) {
            put_state(at, state);
            put_row(tok, i, h);
        }
        return;
    }
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let row = which - 1u + turn * (groups - 1u);
        if (row >= p.lora[0].rank + p.lora[1].rank + p.lora[2].rank) {
            break;
        }
        if (turn > 0u) {
            mine = a_columns(row, i);
        }
        let z = a_row(mine, h, id);
        if (id == 0u) {
            put_z(tok, row, z);
        }
    }
}
