// put_run - a run to its place in the buffer s. Needs lib/settled.
// Run i of a row of `cols` columns that begins at vec4 `base`.
fn put_run(base : u32, cols : u32, i : u32, v : Settled) {
    let runs = cols / 16u;
    let at = base + i;
    s[at] = v.a;
    s[at + runs] = v.b;
    s[at + 2u * runs] = v.c;
    s[at + 3u * runs] = v.d;
}
