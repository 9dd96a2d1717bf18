// one_settled - where the products read activations: from x, settled.
//!include lib/settled.wgsl
fn settled_at(i : u32) -> Settled {
    return Settled(bitcast<vec4<u32>>(x[i]), bitcast<vec4<u32>>(x[i + 1u]), bitcast<vec4<u32>>(x[i + 2u]),
                   bitcast<vec4<u32>>(x[i + 3u]));
}
