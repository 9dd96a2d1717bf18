// linears_lora - the adapters of up to three matrices that read one stream: as lib/lora, with z = A x of all behind x.
//!bind b read array<f32>
//!bind b2 read array<f32>
//!bind b3 read array<f32>

fn z_of(at : u32) -> f32 {
    return x[at >> 2u][at & 3u];
}

// This lane's part for the rows of a matrix from `first` on.
fn adapted(matrix : u32, first : u32, tok : u32, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    if (matrix == 0u) {
        let rows = four_from(first, p.rows);
        for (var k = lane; k < p.rank; k += LANES) {
            let at = rows + k * p.rows;
            sum += z_of(p.z_at + tok * p.rank + k) * b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
        }
    } else if (matrix == 1u) {
        let rows = four_from(first, p.rows2);
        for (var k = lane; k < p.rank2; k += LANES) {
            let at = rows + k * p.rows2;
            sum += z_of(p.z_at2 + tok * p.rank2 + k) * b2[p.b_scales2 + k] * vec4<f32>(b2[at.x], b2[at.y], b2[at.z], b2[at.w]);
        }
    } else {
        let rows = four_from(first, p.rows3);
        for (var k = lane; k < p.rank3; k += LANES) {
            let at = rows + k * p.rows3;
            sum += z_of(p.z_at3 + tok * p.rank3 + k) * b3[p.b_scales3 + k] * vec4<f32>(b3[at.x], b3[at.y], b3[at.z], b3[at.w]);
        }
    }
    return sum;
}
