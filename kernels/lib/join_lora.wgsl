// join_lora - the kernel of that name without add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/settle.wgsl
//!include lib/put_run.wgsl
//!include lib/join_vectors.wgsl
//!include lib/joining.wgsl
//!include lib/sixteens.wgsl
//!include lib/joined_row.wgsl
//!include lib/a_row.wgsl
//!include lib/put_ahead.wgsl

struct Params {
    cols : u32,
    n_tok : u32, // rows of x and of the results
    has_branch : u32,
    has_scale : u32,
    has_next : u32,
    puts : u32,    // norm is wanted
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    rows : u32,
    rows2 : u32,
    rows3 : u32,
    at : u32, // where the results of each matrix begin in s, in words
    at2 : u32,
    at3 : u32,
    more : u32, // rows behind those, see lib/ahead.wgsl; then all rows are in a, and n_tok is 1
    owed_rank : u32, // see lib/owed.wgsl; then n_tok is 1
    owed_at : u32,
    owed_parts : u32,
    owed_scales : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> b : array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> a : array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> a2 : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> a3 : array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> norm : array<vec4<f32>>;
@group(0) @binding(10) var<storage, read_write> s : array<vec4<u32>>;

var<workgroup> room : array<vec4<f32>, 512>; // 8 WG columns

fn put_lacking(i : u32, v : vec4<f32>) {
    room[i] = v;
}

fn lacking(i : u32) -> vec4<f32> {
    return room[i];
}

fn normed() -> bool {
    return p.has_next != 0u;
}

// Of the rows of all matrices, one after the other.
fn a_at(i : u32) -> vec4<f32> {
    let n = p.cols / 4u;
    let second = p.rows * n;
    let third = second + p.rows2 * n;
    if (i < second || p.more > 0u) {
        return a[i];
    }
    if (i < third) {
        return a2[i - second];
    }
    return a3[i - third];
}

fn put_z(tok : u32, row : u32, z : f32) {
    let second = p.rows;
    let third = p.rows + p.rows2;
    var at = p.at + tok * p.rows + row;
    if (row >= third) {
        at = p.at3 + tok * p.rows3 + row - third;
    } else if (row >= second) {
        at = p.at2 + tok * p.rows2 + row - second;
    }
    s[at >> 2u][at & 3u] = bitcast<u32>(z);
}

// Columns from vec4 i of row tok on.
fn put_row(tok : u32, i : u32, v : Four) {
    let row = tok * (p.cols / 4u);
    let at = row + i;
    if (p.puts != 0u) {
        norm[at] = v.a;
        norm[at + 1u] = v.b;
        norm[at + 2u] = v.c;
        norm[at + 3u] = v.d;
    }
    put_run(row, p.cols, i / 4u, settle(v.a, v.b, v.c, v.d));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // The first of a row's workgroups writes it, the others take the rows of A in turn.
    let groups = groups_a_row(num, p.n_tok);
    let turn = turn_of(flat_group(wid, num), groups);
    let tok = turn.row;
    let which = turn.at;
    let i = 4u * id;
    if (tok >= p.n_tok) {
        return;
    }
    var mine = Four();
    if (which > 0u) {
        mine = a_columns(which - 1u, i);
    }
    let joined = joined_row(tok, id, which == 0u);
    if (which == 0u) {
        if (i < p.cols / 4u) {
            put_row(tok, i, joined.h);
        }
        return;
    }
    for (var i = 0u; i < MOST_TURNS; i++) {
        let row = which - 1u + i * (groups - 1u);
        let own = p.rows + p.rows2 + p.rows3;
        if (row >= own + p.more) {
            break;
        }
        if (i > 0u) {
            mine = a_columns(row, 4u * id);
        }
        var v = joined.h;
        if (row >= own) {
            v = joined.state;
        }
        let z = a_row(mine, v, id);
        if (id == 0u) {
            if (row >= own) {
                put_ahead(row - own, z);
            } else {
                put_z(tok, row, z);
            }
        }
    }
}
