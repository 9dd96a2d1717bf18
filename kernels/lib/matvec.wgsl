// matvec - what products of few rows with matrices share. A row group, LANES lanes of a workgroup,
// takes R rows of W: lib/lanes adds its lanes up. The axes, of which a kernel has one value each:
//
//   matrices  1: w      2: w and w2, of one size      3: w, w2 and w3, each of its own size
//   input     memory: the buffer x      shared_row: the row is in workgroup memory
//             partials: as shared_row, where it is what the splits of attention add up to
//             none: the kernel reads x itself, since it has many rows
//   acts      rows: f32, row by row      f32, int8: in planes, which lib/acts describes
//   product   linear: the kernels linear* as a whole, and what matmul is bound to
//             gate_up: see lib/gate_up      own: the kernel's own
//   adapter   of linear. given: there may be adapters, and a gelu      none: fewer buffers, each of
//             which costs the host

//!include lib/base.wgsl
//!if format in f32 f16 bf16
//!include quant/floats.wgsl
//!else
//!include quant/$format.wgsl
//!end
//!if input != none
//!include lib/acts.wgsl
//!end

//!if input == memory && (product in linear gate_up || matrices == 3)
// ---- the order of workgroups ----

override PROCESSORS : u32 = 132u; // of the device: the recorder knows them

// Which of n pieces of a matrix the i-th workgroup takes: those that begin together are far from
// each other, so that each processor goes on where it has been. A large model has more memory than
// a device keeps translated addresses of, and each that it must look up again costs time.
fn swizzle_group(i : u32, n : u32) -> u32 {
    let at = i % PROCESSORS;
    return at * (n / PROCESSORS) + min(at, n % PROCESSORS) + i / PROCESSORS;
}

//!end
// ---- where weights come from ----

//!if matrices == 1
fn w_at(i : u32) -> vec4<u32> {
    return w[i];
}

fn word_at(i : u32) -> u32 {
    return w[i >> 2u][i & 3u];
}
//!elif matrices == 2
var<private> second : bool; // W2

fn w_at(i : u32) -> vec4<u32> {
    if (second) {
        return w2[i];
    }
    return w[i];
}

fn word_at(i : u32) -> u32 {
    if (second) {
        return w2[i >> 2u][i & 3u];
    }
    return w[i >> 2u][i & 3u];
}
//!else
var<private> which : u32; // matrix

fn w_at(i : u32) -> vec4<u32> {
    if (which == 0u) {
        return w[i];
    }
    if (which == 1u) {
        return w2[i];
    }
    return w3[i];
}

fn word_at(i : u32) -> u32 {
    if (which == 0u) {
        return w[i >> 2u][i & 3u];
    }
    if (which == 1u) {
        return w2[i >> 2u][i & 3u];
    }
    return w3[i >> 2u][i & 3u];
}

//!end

// Where the second and third parts of a weight begin, in words: src/gpu/repack.h.
//!if matrices == 3
// One of those in Params: p.w[0], p.w[1] and p.w[2] say what the buffers w, w2 and w3 hold.
struct Matrix {
    rows : u32, // 0: there is no such matrix
    scales : u32,
    high : u32,
    d : u32,
}

// Of the three numbers that of `which`. No array is indexed by a variable: where `which` is a
// number that the compiler sees, nothing is left to choose.
fn of_which(first : u32, second : u32, third : u32) -> u32 {
    return select(select(third, second, which == 1u), first, which == 0u);
}

fn w_scales() -> u32 {
    return of_which(p.w[0].scales, p.w[1].scales, p.w[2].scales);
}

fn w_high() -> u32 {
    return of_which(p.w[0].high, p.w[1].high, p.w[2].high);
}

fn w_d() -> u32 {
    return of_which(p.w[0].d, p.w[1].d, p.w[2].d);
}
//!else
fn w_scales() -> u32 {
    return p.scales;
}

fn w_high() -> u32 {
    return p.high;
}

fn w_d() -> u32 {
    return p.d;
}
//!end

// ---- where activations come from, sixteen at a time ----

//!if input == memory
//!if acts == rows
fn x_at(i : u32) -> vec4<f32> {
    return x[i];
}
//!else
fn ready_at(base : u32, i : u32) -> Ready {
    let runs = p.cols / 16u;
    let at = base + i;
    return Ready(bitcast<vec4<u32>>(x[at]), bitcast<vec4<u32>>(x[at + runs]),
                 bitcast<vec4<u32>>(x[at + 2u * runs]), bitcast<vec4<u32>>(x[at + 3u * runs]));
}
//!end
//!elif input in shared_row partials
override SHARED_ROW : u32 = 512u; // vec4s of a row, rounded up to a multiple of 8

var<workgroup> shared_row : array<vec4<u32>, SHARED_ROW>;

// Where run i lies in its plane. Lanes read every run, every second, or two or four of every four
// or eight: in this order any eight neighbours hit different banks.
fn run_place(i : u32) -> u32 {
    return i ^ (7u * ((i >> 3u) & 1u));
}

fn ready_at(base : u32, i : u32) -> Ready {
    let at = run_place(i);
    let plane = SHARED_ROW / 4u;
    return Ready(shared_row[at], shared_row[at + plane], shared_row[at + 2u * plane],
                 shared_row[at + 3u * plane]);
}

//!if acts == f32
// Four columns, for weights that are floats.
fn x_at(i : u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(shared_row[run_place(i >> 2u) + (i & 3u) * (SHARED_ROW / 4u)]);
}
//!end

// Sixteen columns from vec4 i on.
fn keep(i : u32, v : Sixteen) {
    let s = make_ready(v.a, v.b, v.c, v.d);
    let at = run_place(i / 4u);
    shared_row[at] = s.a;
    shared_row[at + SHARED_ROW / 4u] = s.b;
    shared_row[at + SHARED_ROW / 2u] = s.c;
    shared_row[at + 3u * SHARED_ROW / 4u] = s.d;
}
//!end

//!if input == partials
// Attention's answer from its splits, which the kernel then keeps. Needs p with head_dim and
// n_split, the buffer partial, and rank4(): vec4s of z = A o that a split has behind it, see
// lib/attn_decode.

// Of z of the head that the thread has columns of: vec4 (its sixteens before them), where that is
// one.
var<private> z_merged : vec4<f32>;

// Columns 4i .. 4i + 15 of all heads. The splits are added up one after the other, scaled by the
// largest top so far: so each is read once, and all loads can be on their way together.
fn merged(i : u32) -> Sixteen {
    let n4 = p.head_dim / 4u;
    let split = n4 + 1u + rank4();
    let at = i / n4 * p.n_split * split;
    let col = at + i % n4;
    let z_col = n4 + 1u + min(i % n4 / 4u, max(rank4(), 1u) - 1u);
    var sum = Sixteen();
    var z = vec4<f32>();
    var top = -3.0e38;
    var total = 0.0;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        if (turn >= p.n_split) {
            break;
        }
        let s = turn * split;
        let end = partial[at + s + n4]; // top and total
        let o = Sixteen(partial[col + s], partial[col + s + 1u], partial[col + s + 2u],
                        partial[col + s + 3u]);
        var z_share = vec4<f32>();
        if (rank4() > 0u) {
            z_share = partial[at + s + z_col];
        }
        if (end.y > 0.0) { // a split without positions has no o
            let higher = max(top, end.x);
            let before = exp(top - higher);
            let now = exp(end.x - higher);
            sum = Sixteen(before * sum.a + now * o.a, before * sum.b + now * o.b,
                          before * sum.c + now * o.c,
                       before * sum.d + now * o.d);
            z = before * z + now * z_share;
            total = before * total + now * end.y;
            top = higher;
        }
    }
    z_merged = z / total;
    return Sixteen(sum.a / total, sum.b / total, sum.c / total, sum.d / total);
}
//!end

//!if input != none
//!if acts in rows f32
struct Run {
    v : mat4x4<f32>,
    sum : f32, // of the activations
}

// placed4() has 256 times the odd codes: the activations that meet them are divided once, for all
// rows.
fn run_of(v : mat4x4<f32>) -> Run {
    let f = vec4<f32>(1.0, 0.00390625, 1.0, 0.00390625);
    return Run(mat4x4<f32>(v[0] * f, v[1] * f, v[2] * f, v[3] * f),
               sum_four((v[0] + v[1]) + (v[2] + v[3])));
}

// Sixteen activations: run i of the row that begins at vec4 `base`.
fn run_at(base : u32, i : u32) -> Run {
//!if acts == rows
    let at = base + 4u * i;
    return run_of(mat4x4<f32>(x_at(at), x_at(at + 1u), x_at(at + 2u), x_at(at + 3u)));
//!else
    let r = ready_at(base, i);
    return run_of(mat4x4<f32>(bitcast<vec4<f32>>(r.a), bitcast<vec4<f32>>(r.b),
                              bitcast<vec4<f32>>(r.c), bitcast<vec4<f32>>(r.d)));
//!end
}

// Codes are bytes below 256, `zero` the one that stands for 0.
fn dot16(q : vec4<u32>, zero : f32, r : Run) -> f32 {
    return sum_four(placed4(q.x, zero) * r.v[0] + placed4(q.y, zero) * r.v[1] +
                    placed4(q.z, zero) * r.v[2] +
                  placed4(q.w, zero) * r.v[3]);
}

// The same of the high nibbles: where they are they stand for 16 times as much, exactly.
fn dot16_high(q : vec4<u32>, zero : f32, r : Run) -> f32 {
    return 0.0625 * dot16(q & vec4<u32>(0xf0f0f0f0u), 16.0 * zero, r);
}

fn dot16_signed(q : vec4<u32>, r : Run) -> f32 {
    return dot16(q ^ vec4<u32>(0x80808080u), 128.0, r);
}
//!else
// Sixteen activations as whole numbers with one scale, see Ready: x = scale v with |v| <= 2^21.
// That is four times coarser than f32 for the largest of the sixteen, so that its sum with codes
// below 64 fits 32 bits. One digit of four activations is a word, so that dot4I8Packed multiplies
// four codes with four digits and adds them up, exactly, in one instruction. Decoding codes to
// floats takes twice as long; on large GPUs that and not memory sets the speed. Making the digits
// costs as much as four rows save, so they are for rows that many products read.
struct Run {
    high : vec4<u32>, // a digit of sixteen activations
    middle : vec4<u32>,
    low : vec4<u32>,
    scale : f32,
    sum : f32, // of the activations
}

// Run i of the row that begins at vec4 `base`.
fn run_at(base : u32, i : u32) -> Run {
    let s = ready_at(base, i);
    return Run(s.a, s.b, s.c, bitcast<f32>(s.d.x), bitcast<f32>(s.d.y));
}

// Sixteen products on top of `sum`.
fn add_planes(sum : i32, q : vec4<u32>, digit : vec4<u32>) -> i32 {
    return dot4I8Packed(q.w, digit.w) +
        (dot4I8Packed(q.z, digit.z) +
         (dot4I8Packed(q.y, digit.y) + (dot4I8Packed(q.x, digit.x) + sum)));
}

// Codes are bytes below 64, `zero` the one that stands for 0. What overflows on the way comes back:
// the sum fits.
fn dot16(q : vec4<u32>, zero : f32, r : Run) -> f32 {
    let sum = add_planes(add_planes(add_planes(0, q, r.high) << 8u, q, r.middle) << 8u, q, r.low);
    return r.scale * f32(sum) - zero * r.sum;
}

fn dot16_high(q : vec4<u32>, zero : f32, r : Run) -> f32 {
    return dot16(high_nibbles(q), zero, r);
}

// Codes are signed bytes.
fn dot16_signed(q : vec4<u32>, r : Run) -> f32 {
    let low = add_planes(add_planes(0, q, r.middle) << 8u, q, r.low);
    return r.scale * fma(f32(add_planes(0, q, r.high)), 65536.0, f32(low));
}
//!end
//!end

// ---- linear ----

//!if product == linear
struct Params {
    cols : u32,     // activations a row
    rows : u32,     // rows of W in this buffer
    row0 : u32,     // which rows of the whole W they are: y[t][row0 ...]
    n_tok : u32,    // rows of x and y
    x_stride : u32, // f32 from row to row, a multiple of 4
    y_stride : u32,
    scales : u32, // offsets in u32 words
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_rows : u32,
    b_scales : u32,
    z_parts : u32, // linear: z is the sum of so many rows of it
    by_stride : u32, // f32 from row to row of `by`
    by_col : u32,    // its column that meets column 0 of y
    scale : f32,     // times all
    n_split : u32,   // matmul: splits of the columns, each with a y of its own; 0 or 1: all at once
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!if adapter == given
//!bind z read array<f32>
//!bind b read array<f32>
//!bind by read array<f32>
//!end
//!bind y update array<f32>

//!if adapter == given
override GELU : u32 = 0u; // 1: y = gelu(...) * by

fn put(tok : u32, row : u32, value : f32) {
    var v = p.scale * value;
    if (GELU == 1u) {
        v = gelu_tanh(vec4<f32>(v)).x * by[tok * p.by_stride + p.by_col + p.row0 + row];
    }
    y[tok * p.y_stride + p.row0 + row] = v;
}
//!else
fn put(tok : u32, row : u32, value : f32) {
    y[tok * p.y_stride + p.row0 + row] = p.scale * value;
}
//!end

//!if input != none
//!if adapter == given
//!include lib/lora.wgsl

override LORA : u32 = 0u; // 1: there are adapters; 2: and z, of one row t, is the sum of z_parts

fn part_z(i : u32, k : u32) -> f32 {
    return select(0.0, z[min(i, p.z_parts - 1u) * p.rank + k], i < p.z_parts);
}

// Eight parts are on their way at a time.
fn sum_z(k : u32) -> f32 {
    var sum = 0.0;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let i = 8u * turn;
        if (i >= p.z_parts) {
            break;
        }
        sum += ((part_z(i, k) + part_z(i + 1u, k)) + (part_z(i + 2u, k) + part_z(i + 3u, k))) +
               ((part_z(i + 4u, k) + part_z(i + 5u, k)) + (part_z(i + 6u, k) + part_z(i + 7u, k)));
    }
    return sum;
}

fn adapted(rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    if (LORA == 1u) {
        return lora_rows(0u, rows, tok * p.rank, lane, LANES);
    }
    if (LORA == 2u) {
        var sum = vec4<f32>();
        for (var k = lane; k < p.rank; k += LANES) {
            let at = rows + k * p.b_rows;
            sum += sum_z(k) * b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
        }
        return sum;
    }
    return vec4<f32>();
}
//!else
fn adapted(rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    return vec4<f32>();
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
    let lane = id % LANES;
    let mine = four_rows(rows, tok * (p.x_stride / 4u), lane) + adapted(rows + p.row0, tok, lane);
    let sum = add_lanes(mine, id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r >= R) {
            break;
        }
        if (first + r < p.rows) {
            put(tok, first + r, sum[r]);
        }
    }
}
//!end
//!end
