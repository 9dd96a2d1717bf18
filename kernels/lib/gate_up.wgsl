// gate_up - gelu(gate x) * up x: the kernels gate_up* (product gate_up) as a whole, and what others
// share with them. axis adapter: none or given.

//!include lib/matvec.wgsl
//!include lib/lora.wgsl

// four_rows() of two matrices in one loop, so that the loads of both are on their way together.
struct Pair {
    first : vec4<f32>,
    second : vec4<f32>,
}

fn pair_rows(rows : vec4<u32>, x_base : u32, lane : u32) -> Pair {
    let units = (p.cols + UNIT - 1u) / UNIT;
    let at = rows * units;
    var sum = Pair();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let u = lane + turn * LANES;
        if (u >= units) {
            break;
        }
        let v = acts(x_base, u);
        second = false;
        sum.first += unit_dots(at, u, v);
        second = true;
        sum.second += unit_dots(at, u, v);
    }
    return sum;
}

// Every lane learns the sums of its row group.
fn add_pair(mine : Pair, id : u32) -> Pair {
    if (R == 1u) {
        let both = add_some(vec4<f32>(mine.first.x, mine.second.x, 0.0, 0.0), 2u, id, LANES);
        return Pair(vec4<f32>(both.x, 0.0, 0.0, 0.0), vec4<f32>(both.y, 0.0, 0.0, 0.0));
    }
    if (R == 2u) {
        let both = add_some(vec4<f32>(mine.first.xy, mine.second.xy), 4u, id, LANES);
        return Pair(vec4<f32>(both.xy, 0.0, 0.0), vec4<f32>(both.zw, 0.0, 0.0));
    }
    let first = add_lanes(mine.first, id);
    workgroupBarrier(); // before the second sum
    return Pair(first, add_lanes(mine.second, id));
}

// Where a row group's R results go: to y and, where p.makes_ready, to s in planes. Then a workgroup
// has whole runs of sixteen rows, as the matrix has.
var<workgroup> made : array<f32, 256>; // R WG / LANES results

fn made_at(i : u32) -> vec4<f32> {
    return vec4<f32>(made[i], made[i + 1u], made[i + 2u], made[i + 3u]);
}

fn put_rows(tok : u32, first : u32, gate : vec4<f32>, up : vec4<f32>, id : u32) {
    let row_group = id / LANES;
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = id % LANES + k * LANES;
        if (r >= R) {
            break;
        }
        let h = gelu(gate[r]) * up[r];
        if (first + r < p.rows) {
            y[tok * p.y_stride + first + r] = h;
        }
        made[R * row_group + r] = h;
    }
    if (p.makes_ready == 0u) {
        return;
    }
    workgroupBarrier();
    let n = R * (WG / LANES);
    let start = first - R * row_group; // the workgroup's first row
    let i = 16u * id; // a run for each of the first threads: there are fewer runs than threads
    if (i < n && start + i < p.rows) {
        let v = make_ready(made_at(i), made_at(i + 4u), made_at(i + 8u), made_at(i + 12u));
        put_run(tok * (p.rows / 4u), p.rows, (start + i) / 16u, v);
    }
}

//!if product == gate_up
struct Params {
    lora : array<Adapter, 2>, // z lies in x
    cols : u32,
    rows : u32,     // of each matrix
    n_tok : u32,    // rows of x and y
    x_stride : u32, // f32 from row to row, a multiple of 4
    y_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    makes_ready : u32, // see put_rows()
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind w2 read array<vec4<u32>>
//!bind y update array<f32>
//!bind s update array<vec4<u32>>
//!if adapter == given
//!bind b read array<f32>
//!bind b2 read array<f32>

// Of B of the first matrix or the second.
fn b_word(i : u32) -> f32 {
    if (second) {
        return b2[i];
    }
    return b[i];
}

// Column k of B for R rows; no more are read.
fn b_rows(rows : vec4<u32>, k : u32) -> vec4<f32> {
    let at = rows + k * p.rows;
    var v = vec4<f32>(b_word(at.x), 0.0, 0.0, 0.0);
    if (R > 1u) {
        v.y = b_word(at.y);
    }
    if (R > 2u) {
        v.z = b_word(at.z);
        v.w = b_word(at.w);
    }
    return v;
}

// s_k z_k B[:, k] of R rows of the first matrix or the second.
fn adapted_by(lora : Adapter, rows : vec4<u32>, tok : u32, k : u32) -> vec4<f32> {
    return z_of(lora.z_at + tok * lora.rank + k) * b_word(lora.b_scales + k) * b_rows(rows, k);
}

// This lane's part of some rows, with what the adapters add.
fn adapted(mine : Pair, rows : vec4<u32>, tok : u32, lane : u32) -> Pair {
    var sum = mine;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= max(p.lora[0].rank, p.lora[1].rank)) {
            break;
        }
        second = false;
        if (k < p.lora[0].rank) {
            sum.first += adapted_by(p.lora[0], rows, tok, k);
        }
        second = true;
        if (k < p.lora[1].rank) {
            sum.second += adapted_by(p.lora[1], rows, tok, k);
        }
    }
    return sum;
}

// Of z = A x, which lies behind x.
fn z_of(at : u32) -> f32 {
    return x[at >> 2u][at & 3u];
}
//!else
fn adapted(mine : Pair, rows : vec4<u32>, tok : u32, lane : u32) -> Pair {
    return mine;
}
//!end

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let row_groups = WG / LANES;
    let per_tok = (p.rows + R * row_groups - 1u) / (R * row_groups);
    let turn = turn_of(flat_group(wid, num), per_tok);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    let first = R * (swizzle_group(turn.at, per_tok) * row_groups + id / LANES);
    let rows = four_from(first, p.rows);
    let mine = pair_rows(rows, tok * (p.x_stride / 4u), id % LANES);
    let sums = add_pair(adapted(mine, rows, tok, id % LANES), id);
    put_rows(tok, first, sums.first, sums.second, id);
}
//!end
