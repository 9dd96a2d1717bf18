// base - what any kernel may use: indices, activations in registers, GELU, and numbers out of
//   words. It binds nothing, and what a kernel does not use is left out.

// ---- indices ----

// More than 65,535 workgroups: the host spreads them over x and y.
fn flat_group(wid : vec3<u32>, num : vec3<u32>) -> u32 {
    return wid.x + wid.y * num.x;
}

// Workgroups that follow each other, `per` to a row.
struct Turn {
    row : u32,
    at : u32, // in the row
}

// One row, as in decode, needs no division.
fn turn_of(group : u32, per : u32) -> Turn {
    if (group < per) {
        return Turn(0u, group);
    }
    return Turn(group / per, group % per);
}

// How many a row has where all rows have the same.
fn groups_a_row(num : vec3<u32>, rows : u32) -> u32 {
    let all = num.x * num.y;
    if (rows == 1u) {
        return all;
    }
    return all / rows;
}

// More turns than any loop takes. Tint adds a counter of 64 bits to every loop whose end it cannot
// see, which costs several instructions a turn: loops that are short and run often are written as
//     for (var turn = 0u; turn < MOST_TURNS; turn++) { ... if (past the end) { break; } ... }
const MOST_TURNS : u32 = 0x10000u;

// i .. i + 3, all below n; without any, 0.
fn four_from(i : u32, n : u32) -> vec4<u32> {
    return min(vec4<u32>(i, i + 1u, i + 2u, i + 3u), vec4<u32>(max(n, 1u) - 1u));
}

// 1 for each of i .. i + 3 that is below n.
fn below(i : u32, n : u32) -> vec4<f32> {
    return select(vec4<f32>(), vec4<f32>(1.0), vec4<u32>(i, i + 1u, i + 2u, i + 3u) < vec4<u32>(n));
}

// A thread's number, where each works for itself. Needs const WG.
fn single_thread(wid : vec3<u32>, num : vec3<u32>, id : u32) -> u32 {
    return flat_group(wid, num) * WG + id;
}

// First of the positions that the query at position `last` sees: all, or the newest `window`.
fn first_seen(last : u32, window : u32) -> u32 {
    if (window != 0u && last >= window) {
        return last - window + 1u;
    }
    return 0u;
}

// ---- activations ----

// Eight consecutive numbers of a row.
struct Eight {
    a : vec4<f32>,
    b : vec4<f32>,
}

// Sixteen of them. Weights in blocks begin at an even eight.
struct Sixteen {
    a : vec4<f32>,
    b : vec4<f32>,
    c : vec4<f32>,
    d : vec4<f32>,
}

fn two_eights(a : Eight, b : Eight) -> Sixteen {
    return Sixteen(a.a, a.b, b.a, b.b);
}

fn times(u : Sixteen, v : Sixteen) -> Sixteen {
    return Sixteen(u.a * v.a, u.b * v.b, u.c * v.c, u.d * v.d);
}

// f (u + r v)
fn mixed(u : Sixteen, v : Sixteen, r : f32, f : f32) -> Sixteen {
    return Sixteen(f * (u.a + r * v.a), f * (u.b + r * v.b), f * (u.c + r * v.c),
                   f * (u.d + r * v.d));
}

fn square_sum(v : Sixteen) -> f32 {
    return (dot(v.a, v.a) + dot(v.b, v.b)) + (dot(v.c, v.c) + dot(v.d, v.d));
}

fn sum_four(v : vec4<f32>) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

// GELU in the tanh form: x/2 (1 + tanh u) = x / (1 + e^(-2u)) with u = sqrt(2/pi) (x + 0.044715
// x^3). The quotient does not cancel for negative x. Beyond +-10 it is x or 0 in f32, so nothing
// overflows.
fn gelu_tanh(x : vec4<f32>) -> vec4<f32> {
    let c = clamp(x, vec4<f32>(-10.0), vec4<f32>(10.0));
    let u = 0.79788456080286536 * (c + 0.044715 * c * c * c);
    return max(x, vec4<f32>(-10.0)) / (1.0 + exp(-2.0 * u));
}

fn gelu(x : f32) -> f32 {
    return gelu_tanh(vec4<f32>(x)).x;
}

// Its slope. With s = 1 / (1 + e^(-2u)), gelu = x s and s' = 2 s (1 - s) u'.
fn gelu_slope(x : vec4<f32>) -> vec4<f32> {
    let c = clamp(x, vec4<f32>(-10.0), vec4<f32>(10.0));
    let u = 0.79788456080286536 * (c + 0.044715 * c * c * c);
    let s = 1.0 / (1.0 + exp(-2.0 * u));
    let other = 1.0 / (1.0 + exp(2.0 * u)); // 1 - s without cancellation
    return s + c * 2.0 * s * other * 0.79788456080286536 * (1.0 + 0.134145 * c * c);
}

// ---- random bits ----

// A hash of each number.
fn mix32(v : vec4<u32>) -> vec4<u32> {
    let a = (v ^ (v >> vec4<u32>(16u))) * 0x7feb352du;
    let b = (a ^ (a >> vec4<u32>(15u))) * 0x846ca68bu;
    return b ^ (b >> vec4<u32>(16u));
}

// ---- numbers out of words ----

// The four bytes of a word as floats, exactly, without conversion instructions.
//
// Between 2^23 and 2^24 a float's last bit is worth 1, so the bits of 2^23 with a byte b in the
// lowest place are the float 2^23 + b, and in the next place 2^23 + 256 b. Subtracting 2^23 leaves
// the byte. That is one `and` and one fused add a byte; many GPUs convert integers to floats at a
// quarter of that speed. `zero` is the code that stands for 0.
fn bytes4(v : u32, zero : f32) -> vec4<f32> {
    return placed4(v, zero) * vec4<f32>(1.0, 0.00390625, 1.0, 0.00390625);
}

// The same with the odd ones times 256.
fn placed4(v : u32, zero : f32) -> vec4<f32> {
    let placed = vec4<u32>(v, v, v >> 16u, v >> 16u) & vec4<u32>(0xffu, 0xff00u, 0xffu, 0xff00u);
    let even = 8388608.0 + zero;
    let odd = 8388608.0 + 256.0 * zero;
    return bitcast<vec4<f32>>(placed | vec4<u32>(0x4b000000u)) - vec4<f32>(even, odd, even, odd);
}

// The same for signed bytes: flipping the top bit of each adds 128.
fn signed4(v : u32) -> vec4<f32> {
    return bytes4(v ^ 0x80808080u, 128.0);
}

// s (b - zero) + o for the four bytes b of a word, with the factor 1/256 of the odd ones in s:
// exactly what s * bytes4(v, zero) + o is.
fn scaled4(v : u32, zero : f32, s : f32, o : f32) -> vec4<f32> {
    let t = 0.00390625 * s;
    return placed4(v, zero) * vec4<f32>(s, t, s, t) + o;
}

fn scaled16(q : vec4<u32>, zero : f32, s : f32, o : f32) -> Sixteen {
    return Sixteen(scaled4(q.x, zero, s, o), scaled4(q.y, zero, s, o), scaled4(q.z, zero, s, o),
                   scaled4(q.w, zero, s, o));
}

fn low_nibbles(v : vec4<u32>) -> vec4<u32> {
    return v & vec4<u32>(0x0f0f0f0fu);
}

fn high_nibbles(v : vec4<u32>) -> vec4<u32> {
    return (v >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
}

// (d sc, dmin mn) of one group of eight out of the header that Q4_K and Q5_K share.
fn affine_of(head : vec4<u32>, group : u32) -> vec2<f32> {
    let s = head.yzw >> vec3<u32>(8u * (group & 3u));
    let low = s.xy & vec2<u32>(63u);
    let high =
        (vec2<u32>(s.z, s.z >> 4u) & vec2<u32>(15u)) | ((s.xy >> vec2<u32>(2u)) & vec2<u32>(48u));
    return unpack2x16float(head.x) * vec2<f32>(select(low, high, group > 3u));
}

// Two words of a weight buffer. Needs word_at(), see lib/matvec.
fn two_words(i : u32) -> vec2<u32> {
    return vec2<u32>(word_at(i), word_at(i + 1u));
}

// Half i of the halves that begin at word `first`.
fn half_at(first : u32, i : u32) -> f32 {
    let two = unpack2x16float(word_at(first + (i >> 1u)));
    return select(two.x, two.y, (i & 1u) == 1u);
}

// ---- codes to halves, for subgroup matrices ----

// Sixteen weights.
struct Halves {
    a : vec4<u32>,
    b : vec4<u32>,
}

fn half_of(word : u32, i : u32) -> f32 {
    let two = unpack2x16float(word);
    return select(two.x, two.y, (i & 1u) == 1u);
}

// s c + o for the four codes c < 128 in the bytes of a word. Between 128 and 256 bit 16 of a float
// is worth 1, so a code that is moved there is the float 128 + c, and the 128 goes into o: one
// fused addition a weight.
fn half_codes4(v : u32, s : f32, o : f32) -> vec2<u32> {
    let placed = vec4<u32>(v << 16u, v << 8u, v, v >> 8u) & vec4<u32>(0x7f0000u);
    let f = s * bitcast<vec4<f32>>(placed | vec4<u32>(0x43000000u)) + (o - 128.0 * s);
    return vec2<u32>(pack2x16float(f.xy), pack2x16float(f.zw));
}

fn half_codes16(q : vec4<u32>, s : f32, o : f32) -> Halves {
    return Halves(vec4<u32>(half_codes4(q.x, s, o), half_codes4(q.y, s, o)),
                  vec4<u32>(half_codes4(q.z, s, o), half_codes4(q.w, s, o)));
}

// The same for signed bytes: flipping the top bit adds 128, and between 256 and 512 bit 15 is worth
// 1.
fn half_bytes4(v : u32, s : f32, o : f32) -> vec2<u32> {
    let u = v ^ 0x80808080u;
    let placed = vec4<u32>(u << 15u, u << 7u, u >> 1u, u >> 9u) & vec4<u32>(0x7f8000u);
    let f = s * bitcast<vec4<f32>>(placed | vec4<u32>(0x43800000u)) + (o - 384.0 * s);
    return vec2<u32>(pack2x16float(f.xy), pack2x16float(f.zw));
}

fn half_bytes16(q : vec4<u32>, s : f32, o : f32) -> Halves {
    return Halves(vec4<u32>(half_bytes4(q.x, s, o), half_bytes4(q.y, s, o)),
                  vec4<u32>(half_bytes4(q.z, s, o), half_bytes4(q.w, s, o)));
}

// ---- few rows times one row of activations ----

// The activations of a unit of 32 weights: a lane reads both runs with one vec4 of nibbles.
struct Acts32 {
    a : Run,
    b : Run,
}

// One unit of R rows of W, at most four, so that an activation in a register is used R times. Needs
// quant/<format> and lib/lanes.
fn unit_dots(at : vec4<u32>, u : u32, v : Acts) -> vec4<f32> {
    var dots = vec4<f32>(unit_dot(at.x, u, v), 0.0, 0.0, 0.0);
    if (R > 1u) {
        dots.y = unit_dot(at.y, u, v);
    }
    if (R > 2u) {
        dots.z = unit_dot(at.z, u, v);
    }
    if (R > 3u) {
        dots.w = unit_dot(at.w, u, v);
    }
    return dots;
}

// A lane's part of R products: every LANES-th unit of so many rows of W times a row of x.
fn four_rows(rows : vec4<u32>, x_base : u32, lane : u32) -> vec4<f32> {
    let units = (p.cols + UNIT - 1u) / UNIT;
    let at = rows * units;
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let u = lane + turn * LANES;
        if (u >= units) {
            break;
        }
        sum += unit_dots(at, u, acts(x_base, u));
    }
    return sum;
}
