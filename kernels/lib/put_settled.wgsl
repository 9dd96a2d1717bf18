// put_settled - where a team's R results gelu(gate) up go: to y and, where p.settles, to s in settled form. Then a workgroup has whole runs
// of sixteen rows, as the matrix has. Needs the buffer s and lib/base.
//!include lib/base.wgsl
var<workgroup> made : array<f32, 256>; // R WG / LANES results

fn made_at(i : u32) -> vec4<f32> {
    return vec4<f32>(made[i], made[i + 1u], made[i + 2u], made[i + 3u]);
}

fn put_rows(tok : u32, first : u32, gate : vec4<f32>, up : vec4<f32>, id : u32) {
    let team = id / LANES;
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = id % LANES + k * LANES;
        if (r >= R) {
            break;
        }
        let h = gelu(gate[r]) * up[r];
        if (first + r < p.rows) {
            y[tok * p.y_stride + first + r] = h;
        }
        made[R * team + r] = h;
    }
    if (p.settles == 0u) {
        return;
    }
    workgroupBarrier();
    let n = R * (WG / LANES);
    let start = first - R * team; // the workgroup's first row
    let i = 16u * id; // a run for each of the first threads: there are fewer runs than threads
    if (i < n && start + i < p.rows) {
        let v = settle(made_at(i), made_at(i + 4u), made_at(i + 8u), made_at(i + 12u));
        put_run(tok * (p.rows / 4u), p.rows, (start + i) / 16u, v);
    }
}
