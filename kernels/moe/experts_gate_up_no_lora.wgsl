// experts_gate_up_no_lora - y[t][slot] = gelu(gate_e x[t]) * up_e x[t], e = ids[t][slot]
//   (decode: one or a few rows t)
//
//   x        read   n_tok x cols, ready
//   w        read   gate, n_mat matrices
//   w2       read   up, as w
//   choice   read   n_tok x n_used i32: ids, or
//                   n_tok x n_expert f32: scores
//   y        write  n_tok x n_used x rows f32
//   s        write  y, ready
//   ids      write  n_tok x n_used i32
//   weights  write  n_tok x n_used f32
//   grid   each (t, slot) in turn: a workgroup per R WG / LANES columns of y; with ROUTES before
//          them one for each t
//   bytes  both matrices of e once a (t, slot); x comes from the cache
//   needs  cols % 16 == 0; R 1 or 2; where p.makes_ready rows % 16 == 0 and R WG / LANES % 16 == 0,
//          else s is any buffer, unwritten; ROUTES 1: n_used <= n_expert <= 256; 0: the others are
//          any buffers, unwritten
//
// As experts_gate_up, for rows that an earlier kernel has left ready (lib/acts) and matrices
// without adapters. Where one tensor has both, gate first, w and w2 are the same. The buffers hold
// the experts [mat0, mat0 + n_mat): y of other experts stays as it is. With ROUTES there are no ids
// yet: every workgroup finds its expert by the scores, and some workgroups write ids and weights as
// router does.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 2
//!axis input memory
//!without format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/gate_up.wgsl

struct Params {
    cols : u32,
    rows : u32,   // of gate, and of up
    stride : u32, // rows from expert to expert, in both buffers
    up_at : u32,  // the row where an expert's up begins in w2
    mat0 : u32,   // first expert of these buffers
    n_mat : u32,
    n_tok : u32,
    n_used : u32,
    n_expert : u32, // where it routes
    y_stride : u32, // f32 from slot to slot
    scales : u32,   // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    makes_ready : u32, // see put_rows() in lib/gate_up.wgsl
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind w2 read array<vec4<u32>>
//!bind choice read array<u32>
//!bind y update array<f32>
//!bind s update array<vec4<u32>>
//!bind ids update array<u32>
//!bind weights update array<f32>

override ROUTES : u32 = 0u; // 1: choice has the scores

const ROUTE_FOURS : u32 = 64u;
//!include lib/route.wgsl

fn score_at(i : u32) -> f32 {
    return bitcast<f32>(choice[i]);
}

fn sum_two(v : vec2<f32>, id : u32) -> vec2<f32> {
    return add_some(vec4<f32>(v, 0.0, 0.0), 2u, id, WG).xy;
}

var<workgroup> found : u32;

// The expert of a slot; the whole workgroup looks for it.
fn expert_of(slot : u32, id : u32) -> u32 {
    if (ROUTES == 0u) {
        return choice[slot];
    }
    put_keys(slot / p.n_used, id);
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let e = id + turn * WG;
        if (e >= p.n_expert) {
            break;
        }
        if (rank_of(e) == slot % p.n_used) {
            found = e;
        }
    }
    return workgroupUniformLoad(&found);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let row_groups = WG / LANES;
    let per_slot = (p.rows + R * row_groups - 1u) / (R * row_groups);
    var group = flat_group(wid, num);
    if (ROUTES == 1u) {
        if (group < p.n_tok) {
            route(group, id);
            return;
        }
        group -= p.n_tok;
    }
    let slot = group / per_slot; // counted through all t
    if (slot >= p.n_tok * p.n_used) {
        return;
    }
    let mat = expert_of(slot, id) - p.mat0;
    if (mat >= p.n_mat) {
        return;
    }
    let first = R * (group % per_slot * row_groups + id / LANES);
    let rows = min(vec4<u32>(first, first + 1u, 0u, 0u), vec4<u32>(p.rows - 1u));
    let units = (p.cols + UNIT - 1u) / UNIT;
    let at = (rows + mat * p.stride) * units;
    let x_base = slot / p.n_used * (p.cols / 4u);
    // One loop, so that the loads of both are on their way together.
    var mine = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let u = id % LANES + turn * LANES;
        if (u >= units) {
            break;
        }
        let v = acts(x_base, u);
        second = false;
        let gate = unit_dots(at, u, v).xy;
        second = true;
        mine += vec4<f32>(gate, unit_dots(at + p.up_at * units, u, v).xy);
    }
    let sum = add_over(mine, id, LANES);
    put_rows(slot, first, vec4<f32>(sum.xy, 0.0, 0.0), vec4<f32>(sum.zw, 0.0, 0.0), id);
}
