// linear_own - what adapters add to linear where every workgroup makes z = A x.
//!include lib/own_z.wgsl
@group(0) @binding(3) var<storage, read> a : array<vec4<f32>>;

var<private> own_base : u32;

fn own_x(i : u32) -> vec4<f32> {
    return x_at(own_base + i);
}

fn begin_adapters(tok : u32, id : u32) {
    own_base = tok * (p.x_stride / 4u);
    make_z(id);
}

fn adapted(rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    return own_rows(rows, lane);
}
