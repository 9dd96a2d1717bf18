// floats - f32, f16 and bf16. A lane's unit is eight weights, without a scale.

//!include lib/base.wgsl

//!if format == f32
// Two vec4.
fn eight(i : u32) -> Eight {
    return Eight(bitcast<vec4<f32>>(w_at(2u * i)), bitcast<vec4<f32>>(w_at(2u * i + 1u)));
}
//!elif format == f16
// One vec4 of halves.
fn eight(i : u32) -> Eight {
    let v = w_at(i);
    return Eight(vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)),
                 vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)));
}
//!else
// One vec4. A weight is the upper half of an f32.
fn eight(i : u32) -> Eight {
    let v = w_at(i);
    let even = bitcast<vec4<f32>>(v << vec4<u32>(16u));
    let odd = bitcast<vec4<f32>>(v & vec4<u32>(0xffff0000u));
    return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
}
//!end

fn sixteen(i : u32) -> Sixteen {
    return two_eights(eight(i), eight(i + 1u));
}

const UNIT : u32 = 8u;
alias Acts = Eight;

// Activations of unit u of a row that begins at x_at(base).
fn acts(base : u32, u : u32) -> Acts {
    return Acts(x_at(base + 2u * u), x_at(base + 2u * u + 1u));
}

// Unit u of the row whose first is unit `at` of the buffer, times these.
fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let e = eight(at + u);
    return dot(e.a, v.a) + dot(e.b, v.b);
}

//!if format in f16 bf16
// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    a : vec4<u32>,
    b : vec4<u32>,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i), w_at(i + 1u));
}
//!end
//!if format == f16
fn halves_of(r : Raw, i : u32) -> Halves {
    return Halves(r.a, r.b);
}
//!elif format == bf16
fn two_halves(v : u32) -> u32 {
    return pack2x16float(bitcast<vec2<f32>>(vec2<u32>(v << 16u, v & 0xffff0000u)));
}

fn four_twos(v : vec4<u32>) -> vec4<u32> {
    return vec4<u32>(two_halves(v.x), two_halves(v.y), two_halves(v.z), two_halves(v.w));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    return Halves(four_twos(r.a), four_twos(r.b));
}
//!end
