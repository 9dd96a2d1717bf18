// ahead - z = A h of a block's matrices where nobody has to wait for it: it is linear in what the dispatches before knew. With
// h = norm(to) next_w and to = (x + r branch post) factor, as lib/joining has them, and the branch a product M v,
//   z = (A next_w) x  +  r (A next_w post M) v,    times factor / rms(to).
// The first product was made by who made x, and lies behind it; the second by who made the branch, and lies behind that. The
// matrices of both were made when adapters changed: src/gpu/ops_gpu_ahead.c. Needs lib/joining, Params with cols, and the buffers x and
// branch.
var<private> ahead : Joining;

fn z_of(k : u32) -> f32 {
    let at = p.cols + k;
    return ahead.factor * ahead.inverse * (x[at >> 2u][at & 3u] + ahead.r * branch[at >> 2u][at & 3u]);
}
