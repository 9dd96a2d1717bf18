// key - logits in order, the best of a workgroup, and what the kernel that chooses a token leaves
// behind.

// A logit as an integer that compares alike: a larger logit has a larger key, equal logits equal
// keys (-0 is 0). Not-a-number is 0. What is below FIRST_KEY, minus infinity and not-a-number, is
// forbidden.
const FIRST_KEY : u32 = 0x00800000u;

fn key_of(z : f32) -> u32 {
    let bits = bitcast<u32>(z);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0u;
    }
    if ((bits & 0x80000000u) == 0u || bits == 0x80000000u) {
        return bits | 0x80000000u;
    }
    return ~bits;
}

fn value_of(key : u32) -> f32 {
    return bitcast<f32>(select(~key, key ^ 0x80000000u, (key & 0x80000000u) != 0u));
}

// ---- the best (key, id) of a workgroup: the largest key, of equals the lowest id ----

// Needs WG, at most 256.
var<workgroup> best_all : array<vec2<u32>, 256>;
var<workgroup> best_some : array<vec2<u32>, 16>;

fn better(a : vec2<u32>, b : vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y < b.y);
}

// Every thread learns it.
fn workgroup_best(mine : vec2<u32>, lid : u32) -> vec2<u32> {
    best_all[lid] = mine;
    workgroupBarrier();
    if (lid < 16u) {
        var b = best_all[lid];
        for (var i = lid + 16u; i < WG; i += 16u) {
            let c = best_all[i];
            if (better(c, b)) {
                b = c;
            }
        }
        best_some[lid] = b;
    }
    workgroupBarrier();
    var b = best_some[0];
    for (var i = 1u; i < 16u; i++) {
        let c = best_some[i];
        if (better(c, b)) {
            b = c;
        }
    }
    return b;
}

// ---- the token ----

// Needs the buffers `history`, `ids` and `state`, which is the step's buffer (lib/step.wgsl), bound
// to be written.
const STEP_POS : u32 = 0u;
const STEP_ROWS : u32 = 1u;
const STEP_TOKEN : u32 = 2u;
const STEP_DRAW : u32 = 3u;
const STEP_SEED : u32 = 4u; // low word, high word
const NO_TOKEN : u32 = 0xffffffffu;

// For one thread. The token is appended to the history after the step's rows and becomes the input
// of the next step, which starts there when `advance`. NO_TOKEN: every token was forbidden; the
// host sees it.
fn leave_token(token : u32, advance : u32) {
    let after = state[STEP_POS] + state[STEP_ROWS];
    let known = select(token, 0u, token == NO_TOKEN);
    ids[0] = known;
    if (after < arrayLength(&history)) {
        history[after] = known;
    }
    state[STEP_TOKEN] = token;
    state[STEP_DRAW] += 1u;
    if (advance != 0u) {
        state[STEP_POS] = after;
        state[STEP_ROWS] = 1u;
    }
}
