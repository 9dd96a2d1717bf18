// held - where the products read an activation: from workgroup memory, in which each workgroup keeps
// what its block reads of the stream. Needs lib/joining, the buffer to, and leads_to(v, inverse, i).
//!include lib/settled.wgsl
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

// The whole workgroup takes part; one of those that share a row writes its next state.
fn hold(tok : u32, id : u32, writes : bool) {
    let n = p.cols / 4u;
    let j = begin_joining(tok * n, id);
    for (var i = id; i < n; i += WG) {
        let v = joined(j, i);
        if (writes) {
            to[tok * n + i] = v;
        }
        held[place(i)] = bitcast<vec4<u32>>(leads_to(v, j.inverse, i));
    }
    workgroupBarrier();
    if (CODES) {
        for (var i = 4u * id; i < n; i += 4u * WG) {
            let s = settle(x_at(i), x_at(i + 1u), x_at(i + 2u), x_at(i + 3u));
            held[place(i)] = s.a;
            held[place(i + 1u)] = s.b;
            held[place(i + 2u)] = s.c;
            held[place(i + 3u)] = s.d;
        }
        workgroupBarrier();
    }
}
