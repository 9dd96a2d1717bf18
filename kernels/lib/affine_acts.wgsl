// affine_acts - the activations of a unit of Q5_K: vec4 number u % 8 of a block's nibbles
// holds sixteen weights of each of two groups, 32 apart. Their sums meet the groups' offsets.
const UNIT : u32 = 32u;
alias Acts = Acts32;

fn acts(base : u32, u : u32) -> Acts {
    let first = 4u * (u >> 1u) + (u & 1u);
    return Acts(run_at(base, first), run_at(base, first + 2u));
}
