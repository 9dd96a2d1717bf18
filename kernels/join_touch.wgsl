// join_touch - to = (x + norm(branch) * post) * scale, then s = norm(to) * next, settled, of one row, while others touch weights
//   with norm(v) = v / sqrt(mean(v^2) + eps)
//
//   x        read   cols f32             grid   1 workgroup that joins, then some that touch, all the same
//   branch   read   cols f32             bytes  4 reads + 2 writes an element; a word of every MiB of the matrices
//   vectors  read   post, scale, next    needs  cols % 16 == 0; cols <= 16 RUNS WG, RUNS 1 or 2; has_branch 0: nothing is
//   w        read   a matrix                    added, branch is any buffer; has_scale 0: factor 1; a matrix that is not
//   w2       read   a matrix                    there is any buffer; s has room for a vec4 behind the row
//   w3       read   a matrix
//   to       write  cols f32
//   s        write  cols, settled
//
// As join_runs, where a large device has nothing to do but one workgroup's join. A model of many GB has more memory than a device keeps
// translated addresses of, so the products after it would begin with looking them up: that is done meanwhile. See lib/apart.
// Reference: cpu_join() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis tier plain subgroup
//!include lib/lanes.wgsl
//!include lib/join_touch.wgsl
