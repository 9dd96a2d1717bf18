// canvas_weigh - the next tokens of the vocabulary, those from `first` on, as a canvas's rows see
//   them: with v = cap tanh(z / cap) / T, and top the largest v so far, what is known of a row goes
//   on (total = sum e^(v - top), weighted = sum e^(v - top) (v - top), the tokens with the largest
//   v and with the largest v + gumbel), and z becomes e^(v - top)
//
//   canvas  read    see src/ops/canvas.h            grid   one workgroup a row
//   z       update  rows x stride f32               bytes  2 reads + 2 writes an element of z
//   known   update  rows x 2 vec4s, see Known       needs  stride % 4 == 0; cap 0: none; with
//   h       write   with HALVES z goes there, as           HALVES stride % 32 == 0
//                   to_halves leaves it
//
// Past the last of `cols` tokens z becomes 0. Whoever has summed e^(v - top) under an older top
// multiplies the sum with Known.shrink, as flash attention does.
// Reference: row_picks() in src/ops/ops_cpu_canvas.c. Tolerance 1e-9 nmse: f32 sums, and the
// device's exp, log and tanh; picks are equal unless two tokens are as near.

//!axis tier plain
//!include lib/base.wgsl
//!include lib/step.wgsl
//!include lib/sum.wgsl
//!include lib/key.wgsl
//!include canvas/rows.wgsl

struct Params {
    rows : u32,
    cols : u32,
    stride : u32, // f32 from row to row of z
    first : u32,  // token of column 0; 0: nothing is known yet
    cap : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind canvas read array<u32>
//!bind z update array<vec4<f32>>
//!bind known update array<vec4<u32>>
//!bind h update array<vec2<u32>>

override WG : u32 = 256u;
override HALVES : u32 = 0u;

const LOWEST : f32 = -3.0e38;

// Halves end at 65,504 and lose digits below 2^-14: times 2^15, weights down to 2^-29 keep all.
const HALF_ONE : f32 = 32768.0;

// What is known of a row, two vec4s: top, total, weighted and shrink as f32 bits; then key_of() of
// the largest v and its token, the same of v + gumbel.
struct Known {
    top : f32,
    total : f32,
    weighted : f32,
    picks : vec4<u32>,
}

fn known_of(row : u32) -> Known {
    if (p.first == 0u) {
        return Known(LOWEST, 0.0, 0.0, vec4<u32>());
    }
    let sums = bitcast<vec4<f32>>(known[2u * row]);
    return Known(sums.x, sums.y, sums.z, known[2u * row + 1u]);
}

fn temperature() -> f32 {
    let t_min = bitcast<f32>(canvas[STATE_T_MIN]);
    let t_max = bitcast<f32>(canvas[STATE_T_MAX]);
    let n = canvas[STATE_N_STEPS];
    return t_min + (t_max - t_min) * (f32(n - canvas[STATE_STEP]) / f32(n));
}

// -log(-log(1 - w)), w in (0, 1) from the bits: canvas_gumbel() of src/ops/canvas.h.
fn gumbel(bits : vec4<u32>) -> vec4<f32> {
    let few = vec4<f32>(2u * bits + 1u) * 1.16415321826934814453125e-10; // 2^-33
    let many = vec4<f32>(((bits >> vec4<u32>(9u)) << vec4<u32>(1u)) | vec4<u32>(1u)) *
        5.9604644775390625e-8; // 2^-24
    let w = select(many, few, bits < vec4<u32>(0x800000u));
    let series = w * (1.0 + w * (0.5 + w * (1.0 / 3.0 + w * (0.25 + w * 0.2))));
    return -log(select(-log(1.0 - w), series, w < vec4<f32>(0.0625)));
}

// The better of `best` and four candidates (values, their tokens).
fn best_of(best : vec2<u32>, v : vec4<f32>, token : u32, there : vec4<bool>) -> vec2<u32> {
    var out = best;
    for (var i = 0u; i < 4u; i++) {
        let one = vec2<u32>(key_of(v[i]), token + i);
        if (there[i] && better(one, out)) {
            out = one;
        }
    }
    return out;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let row = flat_group(wid, num);
    if (step.rows == 0u || row >= p.rows) {
        return;
    }
    let n = p.stride / 4u;
    let at = row * n;
    let before = known_of(row);
    let t = temperature();
    let of_row = row_key(canvas[STATE_KEY], canvas[STATE_STEP] + 1u, row);
    // Of this thread: a key, and its token. Key 0 is none.
    var best = before.picks.xy;
    var drawn = before.picks.zw;
    for (var i = lid; i < n; i += WG) {
        let columns = vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u);
        let there = columns < vec4<u32>(p.cols);
        var v = z[at + i];
        if (p.cap != 0.0) {
            // Some devices overflow in tanh of a large number.
            v = p.cap * tanh(clamp(v / p.cap, vec4<f32>(-15.0), vec4<f32>(15.0)));
        }
        v /= t;
        let token = p.first + 4u * i;
        best = best_of(best, v, token, there);
        drawn = best_of(drawn, v + gumbel(random_bits(of_row, p.first + columns)), token, there);
        z[at + i] = select(vec4<f32>(LOWEST), v, there);
    }
    best = workgroup_best(best, lid);
    workgroupBarrier();
    drawn = workgroup_best(drawn, lid);
    let top = value_of(best.x);
    var total = 0.0;
    var weighted = 0.0;
    for (var i = lid; i < n; i += WG) {
        let below = max(z[at + i] - top, vec4<f32>(LOWEST));
        let e = exp(below);
        total += sum_four(e);
        weighted += dot(e, select(vec4<f32>(), below, e > vec4<f32>()));
        if (HALVES == 1u) {
            let to = row * (n + 2u);
            h[to + i] =
                vec2<u32>(pack2x16float(HALF_ONE * e.xy), pack2x16float(HALF_ONE * e.zw));
        } else {
            z[at + i] = e;
        }
    }
    total = workgroup_sum(total, lid);
    workgroupBarrier();
    weighted = workgroup_sum(weighted, lid);
    if (lid == 0u) {
        let under = select(before.top - top, 0.0, p.first == 0u);
        let shrink = exp(under);
        let sums = vec4<f32>(top, shrink * before.total + total,
                             shrink * (before.weighted + under * before.total) + weighted, shrink);
        known[2u * row] = bitcast<vec4<u32>>(sums);
        known[2u * row + 1u] = vec4<u32>(best, drawn);
        if (HALVES == 1u) {
            h[row * (n + 2u) + n] = vec2<u32>(bitcast<u32>(1.0 / HALF_ONE), 0u);
        }
    }
}
