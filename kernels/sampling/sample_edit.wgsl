// sample_edit - logits before a draw: suppressed ids become minus infinity, biases are added, then
//   each token of the last penalty_window ones: z = (z > 0 ? z / repeat : z * repeat) - count *
//   frequency - presence
//
//   lists    read    u32: n_suppress ids, then     grid   one workgroup
//                    n_bias x (id, bits of f32)    bytes  the lists, the window, 2 words a touched
//   history  read    tokens by position, u32              logit
//   counts   update  n_vocab u32                   needs  the ids of biases differ; counts is all 0
//   logits   update  first + n_vocab f32, as u32          before, and is again after
//
// The tokens so far are the positions below pos + rows. repeat 1, frequency 0, presence 0 and
// window 0 are neutral. Ids outside of the vocabulary are passed over.
// Reference: add_bias() and penalise() in src/text/sampler.c. Tolerance 1e-12 nmse: a device's
// division.

//!include lib/step.wgsl

struct Params {
    n_vocab : u32,
    first : u32, // index of the first logit: a row of several
    n_suppress : u32,
    n_bias : u32,
    penalty_window : u32,
    repeat : f32,
    frequency : f32,
    presence : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind lists read array<u32>
//!bind history read array<u32>
//!bind counts update array<atomic<u32>>
//!bind logits update array<u32>

const WG : u32 = 256u;
const FORBIDDEN : u32 = 0xff800000u; // minus infinity, which WGSL cannot write as a number

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lid : u32) {
    for (var i = lid; i < p.n_suppress; i += WG) {
        if (lists[i] < p.n_vocab) {
            logits[p.first + lists[i]] = FORBIDDEN;
        }
    }
    storageBarrier();
    for (var i = lid; i < p.n_bias; i += WG) {
        let id = lists[p.n_suppress + 2u * i];
        if (id < p.n_vocab && logits[p.first + id] != FORBIDDEN) {
            let z = bitcast<f32>(logits[p.first + id]);
            logits[p.first + id] =
                bitcast<u32>(z + bitcast<f32>(lists[p.n_suppress + 2u * i + 1u]));
        }
    }
    let n_seen = step.pos + step.rows;
    let begin = n_seen - min(n_seen, p.penalty_window);
    for (var i = begin + lid; i < n_seen; i += WG) {
        if (history[i] < p.n_vocab) {
            atomicAdd(&counts[history[i]], 1u);
        }
    }
    storageBarrier();
    // The thread that takes a token's count applies it, once, and sets it to 0 again.
    for (var i = begin + lid; i < n_seen; i += WG) {
        let id = history[i];
        if (id < p.n_vocab) {
            let n = atomicExchange(&counts[id], 0u);
            if (n != 0u && logits[p.first + id] != FORBIDDEN) {
                var z = bitcast<f32>(logits[p.first + id]);
                z = select(z * p.repeat, z / p.repeat, z > 0.0);
                z -= f32(n) * p.frequency + p.presence;
                logits[p.first + id] = bitcast<u32>(z);
            }
        }
    }
}
