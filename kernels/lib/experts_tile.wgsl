// experts_tile - a tile of experts_plan, up to 32 slots, times some rows of its expert's W: what
// the kernels of tiles share, and what they are bound to. Needs Params with cols, mat0,
// n_mat, n_tiles, n_used, x_stride, by_slot and those of lib/lora.wgsl; mat_rows(): how many rows
// an expert has. In the matrix tier also w_row(row0, i), which row of the expert is row i of the
// block, and put_eight(), see lib/matrix.

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind plan read array<u32>
//!bind w read array<vec4<u32>>
//!bind z read array<f32>
//!bind b read array<f32>
//!bind y update array<f32>

struct Tile {
    exists : bool,
    mat : u32,   // its expert, counted in this buffer
    first : u32, // of its slots in the list
    n : u32,
}

fn tile_at(i : u32) -> Tile {
    let n = plan[4u * i + 2u];
    let mat = plan[4u * i] - p.mat0;
    return Tile(n > 0u && mat < p.n_mat, mat, plan[4u * i + 1u], n);
}

// Slot j of the tile; past the end, the last one.
fn slot_of(tile : Tile, j : u32) -> u32 {
    return plan[4u * p.n_tiles + tile.first + min(j, tile.n - 1u)];
}

var<private> now : Tile;

//!if tier == matrix
var<private> row0 : u32; // first row of W

//!include lib/lora.wgsl
//!include lib/matrix.wgsl

fn w_eight(i : u32, col : u32) -> u32 {
    return (now.mat * mat_rows() + w_row(row0, i)) * ((p.cols + 7u) / 8u) + col;
}

fn row_of(slot : u32) -> u32 {
    return select(slot / p.n_used, slot, p.by_slot == 1u);
}

fn x_row(i : u32) -> u32 {
    return row_of(slot_of(now, i));
}
//!else
// A thread has two rows of W, and the results of both for all slots of the tile in registers: so a
// weight is decoded once, and multiplied with every slot. The slots' x is staged in workgroup
// memory, STEP vec4s of columns at a time; all threads read the same number of it at once. Slots
// come in eights, and eights that the tile does not have are left out.
//!include lib/tile.wgsl

const STEP : u32 = 16u;

var<workgroup> x_tile : array<vec4<f32>, 512>; // a row of STEP for each of up to 32 slots

// The adapters' B and z are more columns of W and x.
fn w_eight(row : u32, col : u32) -> Eight {
    let eights = (p.cols + 7u) / 8u;
    if (col < eights) {
        return eight((now.mat * mat_rows() + row) * eights + col);
    }
    if (LORA == 1u && col - eights < lora_eights()) {
        return lora_eight(now.mat + p.mat0, row, col - eights);
    }
    return Eight();
}

fn w_part(row : u32, col : u32) -> Sixteen {
    let eights = (p.cols + 7u) / 8u;
    if (col + 1u < eights) {
        return sixteen((now.mat * mat_rows() + row) * eights + col);
    }
    return two_eights(w_eight(row, col), w_eight(row, col + 1u));
}

fn x_eight(slot : u32, col : u32) -> Eight {
    let eights = (p.cols + 7u) / 8u;
    if (col < eights) {
        let at = select(slot / p.n_used, slot, p.by_slot == 1u) * (p.x_stride / 4u) + 2u * col;
        return Eight(x[at], x[at + 1u]);
    }
    if (LORA == 1u && col - eights < lora_eights()) {
        return z_eight(slot * p.rank, col - eights);
    }
    return Eight();
}

// Columns from eight `first` on of the tile's slots.
fn stage_x(tile : Tile, first : u32, id : u32) {
    let n = (tile.n + 7u) / 8u * 8u;
    for (var i = id; i < n * (STEP / 2u); i += WG) {
        let e = x_eight(slot_of(tile, i / (STEP / 2u)), first + i % (STEP / 2u));
        x_tile[2u * i] = e.a;
        x_tile[2u * i + 1u] = e.b;
    }
}

// Results of eight slots, of the thread's first row of W and of the other.
struct Sums {
    a : vec4<f32>, // slots 0 to 3
    b : vec4<f32>,
    other_a : vec4<f32>,
    other_b : vec4<f32>,
}

// Of all slots, by eights.
struct Results {
    e0 : Sums,
    e1 : Sums,
    e2 : Sums,
    e3 : Sums,
}

fn plus_dot(sum : f32, w : vec4<f32>, v : vec4<f32>) -> f32 {
    return fma(w.w, v.w, fma(w.z, v.z, fma(w.y, v.y, fma(w.x, v.x, sum))));
}

fn plus_dot16(sum : f32, w : Sixteen, v : Sixteen) -> f32 {
    return plus_dot(plus_dot(plus_dot(plus_dot(sum, w.a, v.a), w.b, v.b), w.c, v.c), w.d, v.d);
}

// Sixteen columns of both rows times those of a slot.
fn plus_slot(sum : f32, sum2 : f32, w : Sixteen, w2 : Sixteen, at : u32) -> vec2<f32> {
    let v = Sixteen(x_tile[at], x_tile[at + 1u], x_tile[at + 2u], x_tile[at + 3u]);
    return vec2<f32>(plus_dot16(sum, w, v), plus_dot16(sum2, w2, v));
}

fn plus_slots(sum : Sums, w : Sixteen, w2 : Sixteen, at : u32) -> Sums {
    let s0 = plus_slot(sum.a.x, sum.other_a.x, w, w2, at);
    let s1 = plus_slot(sum.a.y, sum.other_a.y, w, w2, at + STEP);
    let s2 = plus_slot(sum.a.z, sum.other_a.z, w, w2, at + 2u * STEP);
    let s3 = plus_slot(sum.a.w, sum.other_a.w, w, w2, at + 3u * STEP);
    let s4 = plus_slot(sum.b.x, sum.other_b.x, w, w2, at + 4u * STEP);
    let s5 = plus_slot(sum.b.y, sum.other_b.y, w, w2, at + 5u * STEP);
    let s6 = plus_slot(sum.b.z, sum.other_b.z, w, w2, at + 6u * STEP);
    let s7 = plus_slot(sum.b.w, sum.other_b.w, w, w2, at + 7u * STEP);
    return Sums(vec4<f32>(s0.x, s1.x, s2.x, s3.x), vec4<f32>(s4.x, s5.x, s6.x, s7.x),
                vec4<f32>(s0.y, s1.y, s2.y, s3.y), vec4<f32>(s4.y, s5.y, s6.y, s7.y));
}

// The products of the tile's slots with two rows of its expert's W.
fn tile_products(tile : Tile, row : u32, other : u32, id : u32) -> Results {
    now = tile;
    let eights = (p.cols + 7u) / 8u + lora_eights();
    var sum = Results();
    for (var first = 0u; first < eights; first += STEP / 2u) {
        workgroupBarrier(); // nobody reads the columns before any more
        stage_x(tile, first, id);
        workgroupBarrier();
        for (var k = 0u; k < STEP / 4u; k++) {
            let w = w_part(row, first + 2u * k);
            let w2 = w_part(other, first + 2u * k);
            sum.e0 = plus_slots(sum.e0, w, w2, 4u * k);
            if (tile.n > 8u) {
                sum.e1 = plus_slots(sum.e1, w, w2, 4u * k + 8u * STEP);
            }
            if (tile.n > 16u) {
                sum.e2 = plus_slots(sum.e2, w, w2, 4u * k + 16u * STEP);
            }
            if (tile.n > 24u) {
                sum.e3 = plus_slots(sum.e3, w, w2, 4u * k + 24u * STEP);
            }
        }
    }
    return sum;
}
//!end
