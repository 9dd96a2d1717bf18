// held - where the products read an activation: from workgroup memory, in which each workgroup keeps the row.
//!include lib/settled.wgsl
//!include lib/four.wgsl
override HELD : u32 = 512u; // vec4s of a row, rounded up to a multiple of 8

var<workgroup> held : array<vec4<u32>, HELD>;

// Lanes read at strides of 2 to 16 vec4s; in this order any eight neighbours hit different banks.
fn place(i : u32) -> u32 {
    return i ^ (((i >> 3u) ^ (i >> 4u)) & 7u);
}

fn x_at(i : u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(held[place(i)]);
}

fn settled_at(i : u32) -> Settled {
    return Settled(held[place(i)], held[place(i + 1u)], held[place(i + 2u)], held[place(i + 3u)]);
}

fn put_held(i : u32, s : Settled) {
    held[place(i)] = s.a;
    held[place(i + 1u)] = s.b;
    held[place(i + 2u)] = s.c;
    held[place(i + 3u)] = s.d;
}

// As the products want them: settled, or as they are.
fn keep(i : u32, v : Four) {
    if (CODES) {
        put_held(i, settle(v.a, v.b, v.c, v.d));
    } else {
        put_held(i, Settled(bitcast<vec4<u32>>(v.a), bitcast<vec4<u32>>(v.b), bitcast<vec4<u32>>(v.c), bitcast<vec4<u32>>(v.d)));
    }
}
