// held - where the products read an activation: from workgroup memory, in which each workgroup keeps the row.
//!include lib/base.wgsl
override HELD : u32 = 512u; // vec4s of a row, rounded up to a multiple of 8

var<workgroup> held : array<vec4<u32>, HELD>;

// Lanes read numbers at strides of 2 vec4s: in this order any eight neighbours hit different banks.
fn place(i : u32) -> u32 {
    return i ^ (((i >> 3u) ^ (i >> 4u)) & 7u);
}

fn x_at(i : u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(held[place(i)]);
}

// Where run i lies in its plane. Lanes read every run, every second, or two or four of every four or eight: in this order any
// eight neighbours hit different banks.
fn run_place(i : u32) -> u32 {
    return i ^ (7u * ((i >> 3u) & 1u));
}

fn settled_at(base : u32, i : u32) -> Settled {
    let at = run_place(i);
    return Settled(held[at], held[at + HELD / 4u], held[at + HELD / 2u], held[at + 3u * HELD / 4u]);
}

// Sixteen columns from vec4 i on, as the products want them: settled, or as they are.
fn keep(i : u32, v : Sixteen) {
    if (CODES) {
        let s = settle(v.a, v.b, v.c, v.d);
        let at = run_place(i / 4u);
        held[at] = s.a;
        held[at + HELD / 4u] = s.b;
        held[at + HELD / 2u] = s.c;
        held[at + 3u * HELD / 4u] = s.d;
    } else {
        held[place(i)] = bitcast<vec4<u32>>(v.a);
        held[place(i + 1u)] = bitcast<vec4<u32>>(v.b);
        held[place(i + 2u)] = bitcast<vec4<u32>>(v.c);
        held[place(i + 3u)] = bitcast<vec4<u32>>(v.d);
    }
}
