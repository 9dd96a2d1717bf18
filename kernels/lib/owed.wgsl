// owed - what a row still lacks, s B z: the product that made it has put z = A x behind it, in p.owed_parts rows, at most four, that
// are to be added up. Needs Params with owed_rank (0: nothing is lacking), owed_at and owed_scales (both in vec4s), owed_parts; owed_z(i),
// vec4 i of what the row lies in; the buffer b, see lib/lora.

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
