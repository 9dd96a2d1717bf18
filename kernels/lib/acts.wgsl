// acts - sixteen activations as the columns of a matrix, and their products with sixteen codes.
fn acts16(i : u32) -> mat4x4<f32> {
    return mat4x4<f32>(x_at(i), x_at(i + 1u), x_at(i + 2u), x_at(i + 3u));
}

fn across(v : vec4<f32>) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

fn sum16(v : mat4x4<f32>) -> f32 {
    return across((v[0] + v[1]) + (v[2] + v[3]));
}

// Codes are bytes below 256, `zero` the one that stands for 0.
fn dot16(q : vec4<u32>, zero : f32, v : mat4x4<f32>) -> f32 {
    return across(bytes4(q.x, zero) * v[0] + bytes4(q.y, zero) * v[1] + bytes4(q.z, zero) * v[2] +
                  bytes4(q.w, zero) * v[3]);
}

fn dot16_signed(q : vec4<u32>, v : mat4x4<f32>) -> f32 {
    return dot16(q ^ vec4<u32>(0x80808080u), 128.0, v);
}

// A unit of 32 weights in two runs of sixteen; a lane reads both with one vec4 of nibbles.
struct Acts32 {
    a : mat4x4<f32>,
    b : mat4x4<f32>,
}

fn low_nibbles(v : vec4<u32>) -> vec4<u32> {
    return v & vec4<u32>(0x0f0f0f0fu);
}

fn high_nibbles(v : vec4<u32>) -> vec4<u32> {
    return (v >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
}
