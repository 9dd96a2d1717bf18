// kv - what a word of the cache is: four f32, or with KV_F16 eight halves. The cache is bound as
// array<vec4<u32>>; four numbers at a time are number i of it, wherever they are.
override KV_F16 : u32 = 0u;

// Numbers 4i .. 4i + 3 of the cache, from word i >> KV_F16.
fn kv_four(word : vec4<u32>, i : u32) -> vec4<f32> {
    if (KV_F16 == 0u) {
        return bitcast<vec4<f32>>(word);
    }
    let h = select(word.xy, word.zw, (i & 1u) == 1u);
    return vec4<f32>(unpack2x16float(h.x), unpack2x16float(h.y));
}

fn kv_halves(a : vec4<f32>, b : vec4<f32>) -> vec4<u32> {
    return vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy),
                     pack2x16float(b.zw));
}
