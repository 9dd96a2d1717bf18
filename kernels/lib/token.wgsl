// token - what the kernel that chooses a token leaves behind. Needs the buffers `history`, `ids` and
// `state`, which is the step's buffer (lib/step.wgsl), bound to be written.
const STEP_POS : u32 = 0u;
const STEP_ROWS : u32 = 1u;
const STEP_TOKEN : u32 = 2u;
const STEP_DRAW : u32 = 3u;
const STEP_SEED : u32 = 4u; // low word, high word
const NO_TOKEN : u32 = 0xffffffffu;

// For one thread. The token joins the history after the step's rows and becomes the input of the next
// step, which starts there when `advance`. NO_TOKEN: every token was forbidden; the host sees it.
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
