// floats - sixteen activations as they are, and their products with sixteen codes. See lib/digits.

//!include lib/base.wgsl

struct Run {
    v : mat4x4<f32>,
    sum : f32, // of the activations
}

// Sixteen activations: run i of the row that begins at vec4 `base`.
fn run_at(base : u32, i : u32) -> Run {
    let at = base + 4u * i;
    let v = mat4x4<f32>(x_at(at), x_at(at + 1u), x_at(at + 2u), x_at(at + 3u));
    return Run(v, sum_four((v[0] + v[1]) + (v[2] + v[3])));
}

// Codes are bytes below 256, `zero` the one that stands for 0.
fn dot16(q : vec4<u32>, zero : f32, r : Run) -> f32 {
    return sum_four(bytes4(q.x, zero) * r.v[0] + bytes4(q.y, zero) * r.v[1] + bytes4(q.z, zero) * r.v[2] +
                  bytes4(q.w, zero) * r.v[3]);
}

fn dot16_signed(q : vec4<u32>, r : Run) -> f32 {
    return dot16(q ^ vec4<u32>(0x80808080u), 128.0, r);
}
