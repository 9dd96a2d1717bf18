// clip - the end of a step's sums: the gradient's length, and by what it is multiplied
//   (training)
//
//   control  update  N_CONTROL f32          grid   one workgroup
//                                           bytes  nothing to speak of
//                                           needs  nothing
//
// The places in control are those of enum control in src/ops/ops_bwd.h.
// Reference: clip() in src/ops/ops_cpu_bwd.c. Tolerance 1e-12 nmse: a root.

struct Params {
    most : f32, // the longest gradient; 0: no limit
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind control update array<f32>

// Comparisons with NaN may be folded away; its bits cannot.
fn is_number(v : f32) -> bool {
    return (bitcast<u32>(v) & 0x7f800000u) != 0x7f800000u;
}

@compute @workgroup_size(1)
fn main() {
    let share = control[3];
    let length = sqrt(control[5]) * share;
    var scale = share;
    if (p.most > 0.0 && length > p.most) {
        scale = share * (p.most / length);
    }
    let good = is_number(control[4]) && is_number(control[5]);
    control[6] = length;
    control[7] = select(-1.0, scale, good);
}
