// pack_columns - row first + r of m = column r of x, as 16-bit numbers with a scale
//
//   x   read   cols x n f32                        grid   a thread per column of x
//   m   write  m_rows x cols, see lib/shorts.wgsl  bytes  x twice, m
//                                                  needs  cols % 8 == 0
//
// A product of two matrices, made by columns_to_rows and a product of many rows, is read again for every token.
// Reference: case_layer_led() in tests/ops_cases.h, of what comes of it. Tolerance 1e-9 nmse: half a step of the largest of a row, 2^-16 of it.
//!include lib/grid.wgsl
struct Params {
    n : u32,    // columns of x
    cols : u32, // rows of x, columns of m
    first : u32,
    m_rows : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<f32>;
@group(0) @binding(2) var<storage, read_write> m : array<u32>;

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let r = flat_group(wid, num) * WG + id;
    if (r >= p.n) {
        return;
    }
    var most = 0.0;
    for (var t = 0u; t < p.cols; t++) {
        most = max(most, abs(x[t * p.n + r]));
    }
    let inverse = select(0.0, 1.0 / most, most > 1.0e-30);
    let row = p.first + r;
    for (var t = 0u; t < p.cols; t += 2u) {
        let pair = vec2<f32>(x[t * p.n + r], x[(t + 1u) * p.n + r]);
        m[(row * p.cols + t) / 2u] = pack2x16snorm(pair * inverse);
    }
    m[p.m_rows * p.cols / 2u + row] = bitcast<u32>(most);
}
