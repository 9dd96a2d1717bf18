// sample_all - a token drawn from all logits: top-k, top-p and min-p on softmax(z), then one draw
//   from softmax(z / temperature) of what is left; the step moves on
//
//   logits   read    first + n f32                grid   one workgroup
//   history  update  tokens by position, u32      bytes  n f32, some 10 to 20 times
//   ids      update  ids[0], u32                  needs  n < 2^24, temperature > 0,
//   state    update  the step, 16 u32                    step.rows as the step had them
//
// For any top_k; sample_part and sample are faster where it is 1 to 1024. Nothing is sorted: each
// limit is a bar that the items reach or not, found by radix descent over sums of 31-bit weights.
// Reference: sampler_draw() in src/text/sampler.c. Tolerance: the same token but where the weights'
// rounding moves it over a limit or the draw.

//!include lib/key.wgsl
//!include lib/select.wgsl

struct Params {
    n : u32,     // logits
    first : u32, // index of the first one: a row of several
    top_k : u32, // 0: all
    advance : u32, // 1: the next step starts after this one
    top_p : f32,
    min_p : f32,
    temperature : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind logits read array<f32>
//!bind history update array<u32>
//!bind ids update array<u32>
//!bind state update array<u32>

const WG : u32 = 256u;

// What an item weighs.
const ONE : u32 = 0u;
const LIKELY : u32 = 1u; // e^(z - top)
const TEMPERED : u32 = 2u; // e^((z - top) / temperature)

var<private> top : f32; // the best logit

fn n_items() -> u32 {
    return p.n;
}

fn item(i : u32) -> vec2<u32> {
    return vec2<u32>(key_of(logits[p.first + i]), NO_ID - i);
}

fn item_weight(key : u32, kind : u32) -> u32 {
    if (kind == ONE) {
        return 1u;
    }
    let t = select(p.temperature, 1.0, kind == LIKELY);
    return u32(exp((value_of(key) - top) / t) * 2147483648.0);
}

// part * total, part in [0, 1)
fn share_of(total : vec2<u32>, part : f32) -> vec2<u32> {
    let all = f32(total.y) * 4294967296.0 + f32(total.x);
    let some = all * part;
    let high = floor(some / 4294967296.0);
    return vec2<u32>(u32(some - high * 4294967296.0), u32(high));
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lid : u32) {
    var mine = vec2<u32>();
    for (var i = lid; i < p.n; i += WG) {
        let key = key_of(logits[p.first + i]);
        if (key > mine.x) {
            mine = vec2<u32>(key, i);
        }
    }
    let b = workgroup_best(mine, lid);
    top = value_of(b.x);
    let best_item = vec2<u32>(b.x, NO_ID - b.y);

    var bar = ALL_ITEMS;
    if (p.top_k != 0u) {
        bar = select_bar(bar, vec2<u32>(p.top_k, 0u), ONE, false, lid);
    }
    if (p.top_p < 1.0) {
        // At least 1: the best always stays.
        let need = share_of(select_total(bar, LIKELY, lid), p.top_p);
        bar = select_bar(bar, max(need, vec2<u32>(1u, 0u)), LIKELY, false, lid);
    }
    if (p.min_p > 0.0) {
        let least = vec2<u32>(min(key_of(top + log(p.min_p)), best_item.x), 0u);
        if (!at_least(bar, least)) {
            bar = least;
        }
    }
    // The first item with u * total < sum up to and with it: the sum is at least floor(u * total) +
    // 1.
    let total = select_total(bar, TEMPERED, lid);
    let u = rng_bits(vec2<u32>(state[STEP_SEED], state[STEP_SEED + 1u]), state[STEP_DRAW]);
    let low = u64_shift_right(u64_of_product(total.x, u), 24u);
    let high = u64_of_product(total.y, u); // times 2^32 / 2^24
    let passed = u64_add(low, vec2<u32>(high.x << 8u, (high.y << 8u) | (high.x >> 24u)));
    let drawn = select_bar(bar, u64_add(passed, vec2<u32>(1u, 0u)), TEMPERED, true, lid);
    workgroupBarrier();
    if (lid == 0u) {
        leave_token(select(NO_TOKEN, NO_ID - drawn.y, b.x >= FIRST_KEY), p.advance);
    }
}
