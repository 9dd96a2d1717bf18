// bytes - the four bytes of a word as floats, exactly, without conversion instructions.
//
// Between 2^23 and 2^24 a float's last bit is worth 1, so the bits of 2^23 with a byte b in the
// lowest place are the float 2^23 + b, and in the next place 2^23 + 256 b. Subtracting 2^23 leaves
// the byte. That is one `and` and one fused add a byte; many GPUs convert integers to floats at a
// quarter of that speed. `zero` is the code that stands for 0.
fn bytes4(v : u32, zero : f32) -> vec4<f32> {
    let placed = vec4<u32>(v, v, v >> 16u, v >> 16u) & vec4<u32>(0xffu, 0xff00u, 0xffu, 0xff00u);
    let even = 8388608.0 + zero;
    let odd = 8388608.0 + 256.0 * zero;
    let floats = bitcast<vec4<f32>>(placed | vec4<u32>(0x4b000000u));
    return (floats - vec4<f32>(even, odd, even, odd)) * vec4<f32>(1.0, 0.00390625, 1.0, 0.00390625);
}

// The same for signed bytes: flipping the top bit of each adds 128.
fn signed4(v : u32) -> vec4<f32> {
    return bytes4(v ^ 0x80808080u, 128.0);
}

// s (b - zero) + o for the four bytes b of a word, with the factor 1/256 of the odd ones in s: exactly what
// s * bytes4(v, zero) + o is.
fn scaled4(v : u32, zero : f32, s : f32, o : f32) -> vec4<f32> {
    let placed = vec4<u32>(v, v, v >> 16u, v >> 16u) & vec4<u32>(0xffu, 0xff00u, 0xffu, 0xff00u);
    let even = 8388608.0 + zero;
    let odd = 8388608.0 + 256.0 * zero;
    let floats = bitcast<vec4<f32>>(placed | vec4<u32>(0x4b000000u));
    let t = 0.00390625 * s;
    return (floats - vec4<f32>(even, odd, even, odd)) * vec4<f32>(s, t, s, t) + o;
}

fn scaled16(q : vec4<u32>, zero : f32, s : f32, o : f32) -> Sixteen {
    return Sixteen(scaled4(q.x, zero, s, o), scaled4(q.y, zero, s, o), scaled4(q.z, zero, s, o),
                   scaled4(q.w, zero, s, o));
}
