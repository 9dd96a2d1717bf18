// raw - what the raw_* pieces share. Each has sixteen neighbouring weights of a row, of which eight i is the first half, in
// two moves: raw_at(i) loads their bits, so that the loads are on their way while others are multiplied, and
// halves_of(raw, i) makes halves of them. Needs w_at() and word_at(), see lib/one_weight.
struct Halves {
    a : vec4<u32>,
    b : vec4<u32>,
}

fn half_of(word : u32, i : u32) -> f32 {
    let two = unpack2x16float(word);
    return select(two.x, two.y, (i & 1u) == 1u);
}

// s c + o for the four codes c < 128 in the bytes of a word. Between 128 and 256 bit 16 of a float is worth 1, so a code
// that is moved there is the float 128 + c, and the 128 goes into o: one fused addition a weight.
fn codes4(v : u32, s : f32, o : f32) -> vec2<u32> {
    let placed = vec4<u32>(v << 16u, v << 8u, v, v >> 8u) & vec4<u32>(0x7f0000u);
    let f = s * bitcast<vec4<f32>>(placed | vec4<u32>(0x43000000u)) + (o - 128.0 * s);
    return vec2<u32>(pack2x16float(f.xy), pack2x16float(f.zw));
}

fn codes16(q : vec4<u32>, s : f32, o : f32) -> Halves {
    return Halves(vec4<u32>(codes4(q.x, s, o), codes4(q.y, s, o)),
                  vec4<u32>(codes4(q.z, s, o), codes4(q.w, s, o)));
}

// The same for signed bytes: flipping the top bit adds 128, and between 256 and 512 bit 15 is worth 1.
fn bytes4(v : u32, s : f32, o : f32) -> vec2<u32> {
    let u = v ^ 0x80808080u;
    let placed = vec4<u32>(u << 15u, u << 7u, u >> 1u, u >> 9u) & vec4<u32>(0x7f8000u);
    let f = s * bitcast<vec4<f32>>(placed | vec4<u32>(0x43800000u)) + (o - 384.0 * s);
    return vec2<u32>(pack2x16float(f.xy), pack2x16float(f.zw));
}

fn bytes16(q : vec4<u32>, s : f32, o : f32) -> Halves {
    return Halves(vec4<u32>(bytes4(q.x, s, o), bytes4(q.y, s, o)),
                  vec4<u32>(bytes4(q.z, s, o), bytes4(q.w, s, o)));
}
