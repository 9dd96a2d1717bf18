// select - of many items, best first, how many make up a given weight: the k best of logits (weight
// 1 each), or those that hold a probability (weight e^z). Radix descent: bytes of the order, best
// byte first.
//
// An item is vec2<u32>(key, NO_ID - id): larger is better, so equal keys go to the lower id; key 0
// is no item. Ids are below 2^24. The kernel gives
//   fn n_items() -> u32
//   fn item(i : u32) -> vec2<u32>
//   fn item_weight(key : u32, kind : u32) -> u32
// and const WG = 256. Sums are 64-bit integers, so the order of threads does not matter. Needs
// lib/key.wgsl.

// ---- 64-bit unsigned integers as vec2<u32>(low, high). WGSL has none ----

fn u64_add(a : vec2<u32>, b : vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn u64_sub(a : vec2<u32>, b : vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn u64_less(a : vec2<u32>, b : vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

// The whole product of two 32-bit numbers, from their 16-bit halves.
fn u64_of_product(a : u32, b : u32) -> vec2<u32> {
    let ll = (a & 0xffffu) * (b & 0xffffu);
    let lh = (a & 0xffffu) * (b >> 16u);
    let hl = (a >> 16u) * (b & 0xffffu);
    let mid = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);
    return vec2<u32>((ll & 0xffffu) | (mid << 16u),
                     (a >> 16u) * (b >> 16u) + (lh >> 16u) + (hl >> 16u) + (mid >> 16u));
}

// a * b modulo 2^64.
fn u64_mul(a : vec2<u32>, b : vec2<u32>) -> vec2<u32> {
    let low = u64_of_product(a.x, b.x);
    return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}

// a >> n for 0 < n < 32.
fn u64_shift_right(a : vec2<u32>, n : u32) -> vec2<u32> {
    return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}

// ---- the numbers of src/base/rng.h, bit for bit ----

fn rng_mix(seed : vec2<u32>) -> vec2<u32> {
    var z = seed;
    z = u64_mul(z ^ u64_shift_right(z, 30u), vec2<u32>(0x1ce4e5b9u, 0xbf58476du));
    z = u64_mul(z ^ u64_shift_right(z, 27u), vec2<u32>(0x133111ebu, 0x94d049bbu));
    return z ^ u64_shift_right(z, 31u);
}

// The 24 bits of rng_unit(rng_at(seed, i)): u = bits / 2^24.
fn rng_bits(seed : vec2<u32>, i : u32) -> u32 {
    let golden = vec2<u32>(0x7f4a7c15u, 0x9e3779b9u);
    let number = u64_add(vec2<u32>(i, 0u), vec2<u32>(1u, 0u));
    return rng_mix(u64_add(rng_mix(u64_add(seed, golden)), u64_mul(number, golden))).y >> 8u;
}

// ---- selection ----

const NO_ID : u32 = 0x00ffffffu;
const ALL_ITEMS : vec2<u32> = vec2<u32>(FIRST_KEY, 0u); // no allowed item is below this

var<workgroup> weight_low : array<atomic<u32>, 256>;
var<workgroup> weight_high : array<atomic<u32>, 256>;
var<workgroup> weight_16 : array<vec2<u32>, 16>; // of 16 bytes each
var<workgroup> chosen : vec4<u32>; // byte, one of the below, weight of the better bytes

const NOT_FOUND : u32 = 0u;
const FOUND : u32 = 1u;
const FOUND_WHOLE : u32 = 2u; // need is reached with the byte's last item

fn at_least(a : vec2<u32>, b : vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y >= b.y);
}

fn add_weight(byte : u32, w : vec2<u32>) {
    let old = atomicAdd(&weight_low[byte], w.x);
    let high = w.y + select(0u, 1u, old + w.x < old);
    if (high != 0u) {
        atomicAdd(&weight_high[byte], high);
    }
}

fn weight_of(byte : u32) -> vec2<u32> {
    return vec2<u32>(atomicLoad(&weight_low[byte]), atomicLoad(&weight_high[byte]));
}

// Byte number `round` of an item: four of the key, three of the id.
fn byte_of(it : vec2<u32>, round : u32) -> u32 {
    let word = select(it.y, it.x, round < 4u);
    let shift = select(48u - 8u * round, 24u - 8u * round, round < 4u);
    return (word >> shift) & 255u;
}

// The weights of the items that are at least `bar` and share `found`'s bytes before `round`, by
// their next byte.
fn weigh(bar : vec2<u32>, found : vec2<u32>, round : u32, kind : u32, lid : u32) {
    atomicStore(&weight_low[lid], 0u);
    atomicStore(&weight_high[lid], 0u);
    workgroupBarrier();
    var same = vec2<u32>(0xffffffffu, 0u);
    if (round < 4u) {
        same.x = ~(0xffffffffu >> (8u * round));
    } else {
        same.y = ~(0xffffffffu >> (8u * round - 24u));
    }
    // Neighbours are often alike: gather a run of one byte before adding it.
    var run_byte = 0u;
    var run = vec2<u32>();
    for (var i = lid; i < n_items(); i += WG) {
        let it = item(i);
        if (at_least(it, bar) && all((it & same) == (found & same))) {
            let byte = byte_of(it, round);
            if (byte != run_byte) {
                add_weight(run_byte, run);
                run = vec2<u32>();
                run_byte = byte;
            }
            run = u64_add(run, vec2<u32>(item_weight(it.x, kind), 0u));
        }
    }
    add_weight(run_byte, run);
    workgroupBarrier();
}

// The byte at which the weight, counted from the best, reaches `need`: to `chosen`.
fn choose(need : vec2<u32>, lid : u32) {
    if (lid < 16u) {
        var sum = vec2<u32>();
        for (var i = 0u; i < 16u; i++) {
            sum = u64_add(sum, weight_of(lid * 16u + i));
        }
        weight_16[lid] = sum;
    }
    if (lid == 0u) {
        chosen = vec4<u32>();
    }
    workgroupBarrier();
    var above = vec2<u32>();
    for (var i = lid / 16u + 1u; i < 16u; i++) {
        above = u64_add(above, weight_16[i]);
    }
    for (var i = lid + 1u; i < (lid / 16u + 1u) * 16u; i++) {
        above = u64_add(above, weight_of(i));
    }
    let with_mine = u64_add(above, weight_of(lid));
    if (u64_less(above, need) && !u64_less(with_mine, need)) {
        chosen = vec4<u32>(lid, select(FOUND, FOUND_WHOLE, all(with_mine == need)), above);
    }
    workgroupBarrier();
}

// The worst item of the fewest best ones whose weight is `need` or more; only items at least `bar`
// count. All of them when they weigh less. Unless `exact`, it may be a bound between two items
// instead.
fn select_bar(bar : vec2<u32>, need_all : vec2<u32>, kind : u32, exact : bool, lid : u32) ->
    vec2<u32> {
    var need = need_all;
    var found = vec2<u32>();
    for (var round = 0u; round < 7u; round++) {
        weigh(bar, found, round, kind, lid);
        choose(need, lid);
        let c = workgroupUniformLoad(&chosen);
        if (c.y == NOT_FOUND) {
            return bar;
        }
        need = u64_sub(need, c.zw);
        if (round < 4u) {
            found.x |= c.x << (24u - 8u * round);
        } else {
            found.y |= c.x << (48u - 8u * round);
        }
        if (!exact && c.y == FOUND_WHOLE) {
            break; // all with these bytes
        }
    }
    if (at_least(bar, found)) {
        return bar;
    }
    return found;
}

// The weight of all items that are at least `bar`.
fn select_total(bar : vec2<u32>, kind : u32, lid : u32) -> vec2<u32> {
    weigh(bar, vec2<u32>(), 0u, kind, lid);
    var sum = vec2<u32>();
    for (var i = 0u; i < 256u; i++) {
        sum = u64_add(sum, weight_of(i));
    }
    workgroupBarrier(); // before the weights change
    return sum;
}
