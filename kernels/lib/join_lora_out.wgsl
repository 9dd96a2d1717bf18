// join_lora_out - the results of join_lora: what the products after it read of the stream, as it is and settled, and behind
// that z, of all matrices.
//!include lib/put_run.wgsl
@group(0) @binding(8) var<storage, read_write> norm : array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> s : array<vec4<u32>>;

fn normed() -> bool {
    return p.has_next != 0u;
}

// The workgroup that writes the next state; each thread what it has joined.
fn held_too(tok : u32, id : u32, writes : bool) {
    let i = 4u * id;
    if (!writes || i >= p.cols / 4u) {
        return;
    }
    let at = tok * (p.cols / 4u) + i;
    let v = Four(x_at(i), x_at(i + 1u), x_at(i + 2u), x_at(i + 3u));
    if (p.puts != 0u) {
        norm[at] = v.a;
        norm[at + 1u] = v.b;
        norm[at + 2u] = v.c;
        norm[at + 3u] = v.d;
    }
    let d = settle(v.a, v.b, v.c, v.d);
    put_run(at - i, p.cols, id, d);
}

fn put(tok : u32, row : u32, v : f32) {
    let n_rows = select(select(p.rows3, p.rows2, which == 1u), p.rows, which == 0u);
    let at = select(select(p.at3, p.at2, which == 1u), p.at, which == 0u) + tok * n_rows + row;
    s[at >> 2u][at & 3u] = bitcast<u32>(v);
}
