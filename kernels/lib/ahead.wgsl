// ahead - products W h of a block's matrices where nobody has to wait for all of h: they are linear in what the dispatches before knew. With
// h = norm(to) next_w and to = (x + r branch post) factor, as lib/joining has them, and the branch a product V v,
//   W h = (W next_w) x  +  r (W next_w post V) v,    times factor / rms(to).
// The first product was made by who made x, and lies behind it; the second by who made the branch, and lies behind that. W is A of the block's
// adapters, so that z = A h is known when it begins, or all of the block's first matrices, which then need no dispatch of their own. The matrices of
// both were made when the model was loaded, or adapters changed: src/gpu/ops_gpu_ahead.c. Needs lib/joining, Params with cols, and the buffers x and
// branch.
var<private> ahead : Joining;

fn z_of(k : u32) -> f32 {
    let at = p.cols + k;
    return ahead.factor * ahead.inverse * (x[at >> 2u][at & 3u] + ahead.r * branch[at >> 2u][at & 3u]);
}

// Four numbers of both.
fn known_and_new(known : vec4<f32>, new_part : vec4<f32>) -> vec4<f32> {
    return ahead.factor * ahead.inverse * (known + ahead.r * new_part);
}

fn led_four(i : u32) -> vec4<f32> {
    let at = p.cols / 4u + i;
    return known_and_new(x[at], branch[at]);
}
