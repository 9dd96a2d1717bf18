// attn_reduce - y = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest
//   top_s
//
//   partial  read   rows x n_head x n_split x
//                   (head_dim + 4) f32
//   y        write  rows x n_head x head_dim f32
//   s        write  y, ready; LORA: behind it,
//                   from word z_at on, A y of each
//                   workgroup's columns:
//                   n_head x pieces x rank f32
//   a        read   rank x n_head x head_dim f32
//   grid   rows * n_head * pieces workgroups, pieces = ceil(head_dim / 64)
//   bytes  partial once, y once
//   needs  splits of attention_split, n_split <= 144, head_dim % 4 == 0; makes_ready 0: no s; else
//          head_dim % 16 == 0; LORA: makes_ready, rows 1; else a is any buffer, unread
//
// Reference: attention() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.

//!axis acts f32 int8
//!include lib/base.wgsl
//!include lib/acts.wgsl
//!include lib/lora.wgsl

struct Params {
    n_vec : u32, // rows * n_head
    n_head : u32,
    head_dim : u32,
    n_split : u32,
    makes_ready : u32, // s is wanted
    rank : u32,    // of the adapters of the product after it, see lib/lora.wgsl
    z_at : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind partial read array<vec4<f32>>
//!bind y update array<vec4<f32>>
//!bind s update array<vec4<u32>>
//!bind a read array<vec4<f32>>

override LORA : u32 = 0u; // 1: the product after it has adapters

const WG : u32 = 256u;
const SPLITS : u32 = 144u; // at most, a multiple of SLICES
const COLS : u32 = 16u;    // vec4s of a head that a workgroup has
const SLICES : u32 = WG / COLS;

// top and total; once the largest top is known, the weight of o, and total
var<workgroup> ends : array<vec2<f32>, SPLITS>;
// the same of every SLICES-th split: the largest top; the sum of totals
var<workgroup> some : array<vec2<f32>, SLICES>;
var<workgroup> sums : array<vec4<f32>, WG>;
var<workgroup> spread : array<f32, WG>; // with LORA

// A split without positions has no o: its weight is 0.
fn weigh_splits(at : u32, split : u32, lid : u32) {
    if (lid < SPLITS) {
        var end = vec2<f32>(-3.0e38, 0.0);
        if (lid < p.n_split) {
            let told = partial[at + lid * split + split - 1u];
            if (told.y > 0.0) {
                end = told.xy;
            }
        }
        ends[lid] = end;
    }
    workgroupBarrier();
    if (lid < SLICES) {
        var top = ends[lid].x;
        for (var i = SLICES; i < SPLITS; i += SLICES) {
            top = max(top, ends[lid + i].x);
        }
        some[lid].x = top;
    }
    workgroupBarrier();
    if (lid < SPLITS) {
        var top = some[0].x;
        for (var i = 1u; i < SLICES; i++) {
            top = max(top, some[i].x);
        }
        let worth = select(0.0, exp(ends[lid].x - top), ends[lid].y > 0.0);
        ends[lid] = vec2<f32>(worth, worth * ends[lid].y);
    }
    workgroupBarrier();
    if (lid < SLICES) {
        var total = 0.0;
        for (var i = 0u; i < SPLITS; i += SLICES) {
            total += ends[lid + i].y;
        }
        some[lid].y = total;
    }
}

var<private> z_to : u32; // where the workgroup's part of z begins in s

fn o_four(i : u32) -> vec4<f32> {
    return sums[i];
}

fn put_z(k : u32, z : f32) {
    let at = z_to + k;
    s[at >> 2u][at & 3u] = bitcast<u32>(z);
}

fn worth_of(i : u32, start : u32, split : u32) -> vec4<f32> {
    let o = partial[start + min(i, p.n_split - 1u) * split];
    let worth = select(0.0, ends[min(i, SPLITS - 1u)].x, i < p.n_split);
    return select(vec4<f32>(), worth * o, vec4<bool>(worth > 0.0));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let n4 = p.head_dim / 4u;
    let pieces = (n4 + COLS - 1u) / COLS;
    let group = flat_group(wid, num);
    let vec = group / pieces;
    let first = group % pieces * COLS; // of the workgroup's vec4s
    if (vec >= p.n_vec) {
        return;
    }
    let split = n4 + 1u;
    let at = vec * p.n_split * split;
    if (LORA == 1u) {
        begin_z(vec * n4 + first, min(COLS, n4 - first), p.n_vec * n4, lid);
    }
    weigh_splits(at, split, lid);
    // Threads over (slice of splits, 4 columns), four loads on their way at a time.
    let mine = lid % COLS;
    let start = at + min(first + mine, n4 - 1u);
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let i = lid / COLS + 4u * SLICES * turn;
        if (4u * SLICES * turn >= p.n_split) {
            break;
        }
        sum += (worth_of(i, start, split) + worth_of(i + SLICES, start, split)) +
               (worth_of(i + 2u * SLICES, start, split) + worth_of(i + 3u * SLICES, start, split));
    }
    sums[lid] = sum;
    workgroupBarrier();
    if (lid < COLS) {
        var total = some[0].y;
        for (var i = 1u; i < SLICES; i++) {
            sum += sums[i * COLS + lid];
            total += some[i].y;
        }
        sum /= total;
        sums[lid] = sum; // no other thread reads the first slice's
        if (first + lid < n4) {
            y[vec * n4 + first + lid] = sum;
        }
    }
    if (p.makes_ready == 0u) {
        return;
    }
    workgroupBarrier();
    let i = 4u * lid;
    if (i < COLS && first + i < n4) {
        let v = make_ready(sums[i], sums[i + 1u], sums[i + 2u], sums[i + 3u]);
        let heads = p.n_head * n4; // vec4s of a row
        put_run(vec / p.n_head * heads, 4u * heads, (vec % p.n_head * n4 + first + i) / 4u, v);
    }
    if (LORA == 1u) {
        z_to = p.z_at + group * p.rank;
        make_z(vec * n4 + first, min(COLS, n4 - first), p.n_vec * n4, lid);
    }
}
