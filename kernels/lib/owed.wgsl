// owed - what a row still lacks, s B z: the product that made it has put z = A x behind it, in p.owed_parts rows, at most four, that
// are to be added up. Needs Params with owed_rank (0: nothing is lacking), owed_at and owed_scales (both in vec4s), owed_parts; owed_z(i),
// vec4 i of what the row lies in; owed_n(), vec4s of a row; the buffer b, see lib/lora.

//!include lib/turns.wgsl

// s z of k .. k + 3. All parts are on their way at once; those that are not there are another one, times 0.
fn owed_four(k : u32) -> vec4<f32> {
    let part = p.owed_rank / 4u;
    let at = p.owed_at + k / 4u;
    var z = owed_z(at);
    if (p.owed_parts > 1u) {
        let last = p.owed_parts - 1u;
        let there = select(vec3<f32>(), vec3<f32>(1.0), vec3<u32>(1u, 2u, 3u) <= vec3<u32>(last));
        z += owed_z(at + part) + (there.y * owed_z(at + min(2u, last) * part) + there.z * owed_z(at + min(3u, last) * part));
    }
    return z * b[p.owed_scales + k / 4u];
}

// Columns 4i .. 4i + 3.
fn owed_vec(i : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    let n = owed_n();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = 8u * turn;
        if (k >= p.owed_rank) {
            break;
        }
        let at = k * n + i;
        let low = mat4x4<f32>(b[at], b[at + n], b[at + 2u * n], b[at + 3u * n]);
        let high = mat4x4<f32>(b[at + 4u * n], b[at + 5u * n], b[at + 6u * n], b[at + 7u * n]);
        sum += low * owed_four(k) + high * owed_four(k + 4u);
    }
    return sum;
}

// The same, and columns 4j .. 4j + 3. Sixteen loads are on their way at a time.
struct Owed {
    a : vec4<f32>,
    b : vec4<f32>,
}

fn owed_two(i : u32, j : u32) -> Owed {
    var sum = Owed();
    let n = owed_n();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = 8u * turn;
        if (k >= p.owed_rank) {
            break;
        }
        let at = k * n + i;
        let too = k * n + j;
        let low = mat4x4<f32>(b[at], b[at + n], b[at + 2u * n], b[at + 3u * n]);
        let high = mat4x4<f32>(b[at + 4u * n], b[at + 5u * n], b[at + 6u * n], b[at + 7u * n]);
        let low2 = mat4x4<f32>(b[too], b[too + n], b[too + 2u * n], b[too + 3u * n]);
        let high2 = mat4x4<f32>(b[too + 4u * n], b[too + 5u * n], b[too + 6u * n], b[too + 7u * n]);
        let z = owed_four(k);
        let z2 = owed_four(k + 4u);
        sum.a += low * z + high * z2;
        sum.b += low2 * z + high2 * z2;
    }
    return sum;
}
