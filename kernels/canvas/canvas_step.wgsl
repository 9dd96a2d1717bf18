// canvas_step - the sampler's decisions, into the canvas: which positions are accepted, the next
//   tokens, whether the canvas has stopped. Nothing if it has; once it has, the step has no rows
//
//   entropy  read    n f32                     grid   one workgroup
//   picks    read    n x 2 i32                 bytes  some n words; n^2 reads of entropies
//   canvas   update  see src/ops/canvas.h      needs  n <= 4096
//   order    update  2 n u32: rows by entropy,
//                    then what each takes
//   state    update  struct Step
//
// A row's place is how many rows come before it: n of 256 is too few for anything better. One
// thread adds entropies up, in that order, so the sums are those of the C loop.
// Reference: cpu_canvas_step() in src/ops/ops_cpu_canvas.c. Tolerance 0: the same f32 sums.

//!include lib/base.wgsl
//!include lib/key.wgsl
//!include canvas/rows.wgsl

struct Params {
    n : u32,
    n_vocab : u32,
    ids : u32, // words of the canvas before its parts
    best : u32,
    entropy : u32,
    accepted : u32,
    fixed : u32,
    draws : u32,
    fresh : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind entropy read array<f32>
//!bind picks read array<vec2<u32>>
//!bind canvas update array<u32>
//!bind order update array<u32>
//!bind state update array<u32>

override WG : u32 = 256u;

const ACCEPTED : u32 = 1u;
const GOES_ON : u32 = 0u;
const STABLE : u32 = 1u;
const STEPS : u32 = 2u;

var<workgroup> stopped : u32;
var<workgroup> n_new : atomic<u32>;  // positions whose best token is another than before
var<workgroup> n_free : atomic<u32>; // positions that are not fixed

fn is_token(word : u32) -> bool {
    return word < 0x80000000u;
}

// By entropy; NaN comes last, and its key is the only one with all bits.
fn sort_key(row : u32) -> u32 {
    let key = key_of(bitcast<f32>(canvas[p.entropy + row]));
    return select(key, 0xffffffffu, key == 0u);
}

// How many rows come before this one.
fn place_of(row : u32) -> u32 {
    let key = sort_key(row);
    var before = 0u;
    for (var i = 0u; i < p.n; i++) {
        let other = sort_key(i);
        before += select(0u, 1u, other < key || (other == key && i < row));
    }
    return before;
}

// Entropies and best tokens; a fixed row is certain of its own.
fn look(row : u32) {
    let stays = canvas[p.fixed + row];
    let certain = is_token(stays);
    let best = select(picks[row].x, stays, certain);
    if (!certain) {
        atomicAdd(&n_free, 1u);
    }
    if (canvas[p.best + row] != best) {
        atomicAdd(&n_new, 1u);
    }
    canvas[p.best + row] = best;
    canvas[p.entropy + row] = select(bitcast<u32>(entropy[row]), 0u, certain);
}

// Walks the rows in their order. Returns the sum of all entropies.
fn accept_rows() -> f32 {
    let bound = bitcast<f32>(canvas[STATE_BOUND]);
    var before = 0.0;
    var broken = false; // a sum with NaN in it
    var n = 0u;
    for (var i = 0u; i < p.n; i++) {
        let row = order[i];
        let takes = !broken && before <= bound;
        order[p.n + row] = select(0u, ACCEPTED, takes);
        n += select(0u, 1u, takes);
        broken = broken || sort_key(row) == 0xffffffffu;
        before += bitcast<f32>(canvas[p.entropy + row]);
    }
    canvas[STATE_ACCEPTED] = n;
    return before;
}

fn token_of(row : u32, done : u32) -> u32 {
    let stays = canvas[p.fixed + row];
    let given = canvas[p.draws + row];
    if (order[p.n + row] == ACCEPTED) {
        return select(select(picks[row].y, given, is_token(given)), stays, is_token(stays));
    }
    let fresh = canvas[p.fresh + row];
    if (is_token(fresh)) {
        return fresh;
    }
    let of_row = row_key(canvas[STATE_KEY], done, row);
    return random_bits(of_row, vec4<u32>(0xffffffffu)).x % p.n_vocab;
}

// For one thread, at the end.
fn end_step(done : u32, sum : f32) {
    let free = atomicLoad(&n_free);
    let mean = select(0.0, sum / f32(free), free > 0u);
    let same = done > 1u && atomicLoad(&n_new) == 0u;
    let stable = select(0u, canvas[STATE_STABLE] + 1u, same);
    let sure = mean < bitcast<f32>(canvas[STATE_CONFIDENCE]);
    var why = GOES_ON;
    if (done >= canvas[STATE_N_STEPS]) {
        why = STEPS;
    }
    if (stable >= canvas[STATE_N_STABLE] && sure) {
        why = STABLE;
    }
    canvas[STATE_STEP] = done;
    canvas[STATE_STABLE] = stable;
    canvas[STATE_ENTROPY] = bitcast<u32>(mean);
    canvas[STATE_STOPPED] = why;
    if (why != GOES_ON) {
        state[STEP_ROWS] = 0u;
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lid : u32) {
    if (lid == 0u) {
        stopped = canvas[STATE_STOPPED];
        atomicStore(&n_new, 0u);
        atomicStore(&n_free, 0u);
        if (stopped != GOES_ON) {
            state[STEP_ROWS] = 0u;
        }
    }
    if (workgroupUniformLoad(&stopped) != GOES_ON) {
        return;
    }
    let done = canvas[STATE_STEP] + 1u;
    for (var i = lid; i < p.n; i += WG) {
        look(i);
    }
    storageBarrier();
    for (var i = lid; i < p.n; i += WG) {
        order[place_of(i)] = i;
    }
    storageBarrier();
    var sum = 0.0;
    if (lid == 0u) {
        sum = accept_rows();
    }
    storageBarrier();
    for (var i = lid; i < p.n; i += WG) {
        canvas[p.ids + i] = token_of(i, done);
    }
    for (var i = lid; i < (p.n + 31u) / 32u; i += WG) {
        var bits = 0u;
        for (var k = 32u * i; k < min(32u * i + 32u, p.n); k++) {
            bits |= order[p.n + k] << (k % 32u);
        }
        canvas[p.accepted + i] = bits;
    }
    storageBarrier();
    workgroupBarrier();
    if (lid == 0u) {
        end_step(done, sum);
    }
}
