// residual_norm_prefetch - to = (x + norm(branch) * post) * scale, then s = norm(to) * next, ready,
//   of one row, with norm(v) = v / sqrt(mean(v^2) + eps); other workgroups prefetch matrices
//
//   x        read   cols f32
//   branch   read   cols f32
//   vectors  read   post, scale and next at their places, in vec4s
//   w        read   a matrix
//   w2       read   a matrix
//   w3       read   a matrix
//   to       write  cols f32
//   s        write  cols, ready, and room for a vec4 behind the row
//   grid   one workgroup that computes the row, then some that prefetch, all the same
//   bytes  4 reads + 2 writes an element; a word of every MiB of the matrices
//   needs  cols % 16 == 0; cols <= 16 RUNS WG, RUNS 1 or 2; has_branch 0: nothing is added, branch
//          is any buffer; has_scale 0: factor 1; a matrix that is not there is any buffer
//
// As residual_norm_runs, on a large device, where one workgroup has work and all others wait. A
// model of many GB has more memory than a device keeps translated addresses of. The products after
// this dispatch would begin with looking up the addresses of their matrices; here idle workgroups
// do it.
//
// Reference: the nodes of rule residual_norm, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis acts f32 int8
//!axis tier plain subgroup
//!axis vectors one
//!include lib/lanes.wgsl
//!include lib/residual.wgsl
//!include lib/acts.wgsl

override RUNS : u32 = 1u; // of sixteen columns, that a thread has

struct Params {
    cols : u32,
    has_branch : u32,
    has_scale : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    unread : u32, // a vec4 of s behind the row
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind branch read array<vec4<f32>>
//!bind vectors read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind w2 read array<vec4<u32>>
//!bind w3 read array<vec4<u32>>
//!bind to update array<vec4<f32>>
//!bind s update array<vec4<u32>>

fn normed() -> bool {
    return true;
}

fn finish(i : u32, c : Columns, j : Residual) {
    let state = next_state(c, j);
    let v = block_input(c, j, state);
    put_state(i, state);
    put_run(0u, p.cols, i / 4u, make_ready(v.a, v.b, v.c, v.d));
}

// Neighbours are a MiB and a bit apart: without the bit they would all ask the same part of the
// memory.
const STRIDE : u32 = 65536u + 104u; // vec4s

// Place k of each matrix that has one. What is read decides something that nothing depends on, so
// that no compiler leaves the loads out.
fn prefetch(k : u32) {
    let at = k * STRIDE;
    var seen = 0u;
    if (at < arrayLength(&w)) {
        seen = w[at].x;
    }
    if (at < arrayLength(&w2)) {
        seen ^= w2[at].x;
    }
    if (at < arrayLength(&w3)) {
        seen ^= w3[at].x;
    }
    if (seen == 0x9e3779b9u) {
        s[p.unread] = vec4<u32>(seen);
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(local_invocation_index) id : u32) {
    if (wid.x > 0u) {
        prefetch(id);
        return;
    }
    residual_row(0u, id);
}
