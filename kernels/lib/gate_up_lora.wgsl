// gate_up_lora - the adapters of both matrices: as lib/lora, with z = A x of both behind x.
@group(0) @binding(6) var<storage, read> b : array<f32>;
@group(0) @binding(7) var<storage, read> b2 : array<f32>;

// Column k of both B for some rows, and what it is multiplied with.
struct Column {
    first : vec4<f32>,
    second : vec4<f32>,
    z : vec2<f32>,
    s : vec2<f32>,
}

// Of a lane's first k: on its way while the products are made.
var<private> ahead : Column;

fn z_of(at : u32) -> f32 {
    return x[at >> 2u][at & 3u];
}

// Past the end of either: anything, times 0.
fn column(rows : vec4<u32>, tok : u32, k : u32) -> Column {
    let one = select(0u, k, k < p.rank);
    let two = select(0u, k, k < p.rank2);
    let at = rows + one * p.rows;
    let too = rows + two * p.rows;
    var c = Column();
    c.first = vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
    c.second = vec4<f32>(b2[too.x], b2[too.y], b2[too.z], b2[too.w]);
    c.z = vec2<f32>(z_of(p.z_at + tok * p.rank + one), z_of(p.z_at2 + tok * p.rank2 + two));
    c.s = vec2<f32>(b[p.b_scales + one], b2[p.b_scales2 + two]);
    return c;
}

fn with_column(sum : Pair, c : Column, k : u32) -> Pair {
    let f = c.z * c.s;
    var more = sum;
    if (k < p.rank) {
        more.first += f.x * c.first;
    }
    if (k < p.rank2) {
        more.second += f.y * c.second;
    }
    return more;
}

fn begin_adapters(rows : vec4<u32>, tok : u32, lane : u32) {
    ahead = column(rows, tok, lane);
}

// This lane's part of some rows, with what the adapters add.
fn adapted(mine : Pair, rows : vec4<u32>, tok : u32, lane : u32) -> Pair {
    var sum = with_column(mine, ahead, lane);
    for (var k = lane + LANES; k < max(p.rank, p.rank2); k += LANES) {
        sum = with_column(sum, column(rows, tok, k), k);
    }
    return sum;
}
