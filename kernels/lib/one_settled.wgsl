// one_settled - where the products read activations: from x, settled.

//!include lib/base.wgsl

fn settled_at(base : u32, i : u32) -> Settled {
    let runs = p.cols / 16u;
    let at = base + i;
    return Settled(bitcast<vec4<u32>>(x[at]), bitcast<vec4<u32>>(x[at + runs]), bitcast<vec4<u32>>(x[at + 2u * runs]),
                   bitcast<vec4<u32>>(x[at + 3u * runs]));
}
