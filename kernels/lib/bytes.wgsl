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
