/* ops_gpu_adapted.c - a block's first products where matrices have adapters: one dispatch joins the stream and makes
 * z = A x for all of them, the next one takes the products, with B z in them; a single matrix may do both at once. */
#include "gpu/ops_gpu_impl.h"

static const struct gpu_weight *matrix_of(const struct weight *w)
{
    return w->mem;
}

/* Few rows of a stream that can be settled, adapters on some of the matrices, and nobody who wants z kept? */
static bool is_ours(const struct gpu_ops *g, const struct join *j, const struct weight *const *w,
                    uint32_t n)
{
    uint32_t rank = 0;
    bool kept = false;
    for (uint32_t i = 0; i < n; i++) {
        rank += matrix_of(w[i])->adapted.rank;
        kept = kept || w[i]->z || gpu_drops(w[i]);
    }
    return rank > 0 && rank <= GPU_Z_MOST && !kept && gpu_can_join_settled(g, j);
}

/* The stream is joined and settled, and z is there. */
static void join_and_adapt(struct run *r, const struct join *j, struct tensor *z,
                           const struct weight *const *w, uint32_t n)
{
    bool floats = false;
    for (uint32_t i = 0; i < n; i++) floats = floats || !gpu_reads_digits(matrix_of(w[i])->shape);
    if (gpu_join_lora(r, j, z, w, n, floats)) return;
    gpu_join_settled(r, j, true);
    gpu_place_z(z, gpu_settled_of(r, join_result(j)), w, n);
    for (uint32_t i = 0; i < n; i++) gpu_lora_z(r, &z[i], join_result(j), w[i]);
    gpu_used_settled(r);
}

bool gpu_adapted_linears(struct run *r, const struct join *j, struct tensor *const *y,
                         const struct weight *const *w, uint32_t n)
{
    struct tensor z[JOIN_LINEARS];
    if (!is_ours(ops_of(r), j, w, n)) return false;
    if (n == 1 && gpu_join_own(r, j, y[0], w[0], NULL, 0)) return true;
    join_and_adapt(r, j, z, w, n);
    gpu_linears_digits(r, y, join_result(j), w, z, n);
    return true;
}

bool gpu_adapted_linear_gelu_mul(struct run *r, const struct join *j, struct tensor *y,
                                 const struct weight *w, const struct tensor *b, uint32_t col)
{
    struct tensor z;
    if (!is_ours(ops_of(r), j, &w, 1)) return false;
    if (gpu_join_own(r, j, y, w, b, col)) return true;
    join_and_adapt(r, j, &z, &w, 1);
    gpu_linear_given(r, y, join_result(j), w, &z, b, col);
    return true;
}

bool gpu_adapted_gate_up(struct run *r, const struct join *j, struct tensor *y, struct tensor *up,
                         const struct weight *gate_w, const struct weight *up_w)
{
    const struct weight *const w[] = { gate_w, up_w };
    struct tensor z[2];
    if (!is_ours(ops_of(r), j, w, 2)) return false;
    join_and_adapt(r, j, z, w, 2);
    const struct tensor *x = join_result(j);
    if (gpu_gate_up_digits(r, y, x, gate_w, up_w, z)) return true;
    gpu_linear_given(r, up, x, up_w, &z[1], NULL, 0);
    gpu_linear_given(r, y, x, gate_w, &z[0], up, 0);
    return true;
}
