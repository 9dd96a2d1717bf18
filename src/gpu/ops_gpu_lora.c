/* ops_gpu_lora.c - a block's first products where matrices have adapters. One dispatch computes the
 * residual, its norm and z = A x of all matrices; the next one computes the products, with B z
 * added. */
#include "gpu/ops_gpu_impl.h"

struct kernel_adapter gpu_adapter_of(const struct run *r, const struct weight *w,
                                     const struct tensor *z)
{
    const struct gpu_adapted *d = &matrix_of(w)->adapted;
    if (!z || !d->n) return (struct kernel_adapter) { 0 };
    return (struct kernel_adapter) {
        .rank = d->rank,
        .b_rows = w->rows,
        .b_scales = gpu_adapted_scales(d, w, r->canvas),
        .z_at = z->first,
    };
}

/* Are there few rows that can be made ready, adapters on some of the matrices, and no node that
 * keeps z? */
static bool is_ours(const struct gpu_ops *g, const struct residual *j,
                    const struct weight *const *w, uint32_t n)
{
    uint32_t rank = 0;
    bool kept = false;
    for (uint32_t i = 0; i < n; i++) {
        rank += matrix_of(w[i])->adapted.rank;
        kept = kept || gpu_drops(w[i]);
    }
    return rank > 0 && rank <= GPU_Z_MOST && !kept && gpu_residual_makes_ready(g, j);
}

/* The residual, its norm h ready in *room, and z[i] = A h for each matrix that has adapters.
 * floats: h is written as f32 too. False: one dispatch cannot compute that, and nothing was
 * recorded. */
static bool residual_and_lora(struct run *r, const struct residual *j, struct tensor *room,
                              struct tensor *z, const struct weight *const *w, uint32_t n,
                              bool floats)
{
    enum { BUFFERS = 9 };
    struct gpu_ops *g = ops_of(r);
    struct gpu_vectors v = gpu_residual_vectors(g, j);
    if (!gpu_shares_residual(g, j, BUFFERS) || !v.one) return false;
    *room = gpu_ready_scratch(r, SCRATCH_READY, j->x->rows, j->x->cols);
    room->rows = j->x->rows;
    gpu_place_z(z, room, w, n);
    struct residual_norm_lora_params p = { .cols = j->x->cols,
                                           .n_tok = j->x->rows,
                                           .has_branch = j->branch != NULL,
                                           .has_scale = weight_exists(j->scale),
                                           .has_next = weight_exists(j->next_w),
                                           .puts = floats && weight_exists(j->next_w),
                                           .post_at = v.at[0],
                                           .scale_at = v.at[1],
                                           .next_at = v.at[2],
                                           .eps = j->eps };
    struct gpu_binding none = whole(g->unused);
    struct gpu_binding bind[] = {
        act(j->x),  j->branch ? act(j->branch) : none,           v.all,    none, none, none,
        act(j->to), p.puts ? act(j->norm) : whole(g->unread[0]), act(room)
    };
    _Static_assert(COUNT(bind) == BUFFERS, "as many as were asked for");
    uint32_t k = 0, all = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!z[i].cols) continue;
        bind[3 + k] = whole(matrix_of(w[i])->adapted.a);
        p.lora[k++] = gpu_adapter_of(r, w[i], &z[i]);
        all += z[i].cols;
    }
    uint32_t groups = 1 + divide_up(all, divide_up(all, g->tuning->lora_groups));
    struct gpu_constant wg = { RESIDUAL_NORM_LORA_WG, GPU_SHARED_WG };
    record_dispatch(&g->rec, TIERED(g, RESIDUAL_NORM_LORA) | ACTS(g, RESIDUAL_NORM_LORA), &wg, 1,
                    &p, bind, COUNT(bind), groups * p.n_tok);
    return true;
}

/* The same, by several dispatches where one cannot. Returns h, with *room as its ready form. */
static struct tensor residual_and_z(struct run *r, const struct residual *j, struct tensor *room,
                                    struct tensor *z, const struct weight *const *w, uint32_t n)
{
    struct tensor x = *residual_result(j);
    bool floats = false;
    for (uint32_t i = 0; i < n; i++) floats = floats || !gpu_is_codes(matrix_of(w[i])->shape);
    x.ready = room;
    if (residual_and_lora(r, j, room, z, w, n, floats)) return x;
    x = gpu_residual_ready(r, j, room, true);
    gpu_place_z(z, room, w, n);
    for (uint32_t i = 0; i < n; i++) gpu_lora_z(r, &z[i], &x, w[i]);
    return x;
}

bool gpu_adapted_linears(struct run *r, const struct residual *j, struct tensor *const *y,
                         const struct weight *const *w, uint32_t n)
{
    struct tensor room, z[GROUP_LINEARS];
    if (!is_ours(ops_of(r), j, w, n)) return false;
    const struct tensor x = residual_and_z(r, j, &room, z, w, n);
    gpu_linears_ready(r, y, &x, w, z, n);
    return true;
}

bool gpu_adapted_linear_gelu_mul(struct run *r, const struct residual *j, struct tensor *y,
                                 const struct weight *w, const struct tensor *b, uint32_t col)
{
    struct tensor room, z;
    if (!is_ours(ops_of(r), j, &w, 1)) return false;
    const struct tensor x = residual_and_z(r, j, &room, &z, &w, 1);
    gpu_linear_given(r, y, &x, w, &z, b, col);
    return true;
}

bool gpu_adapted_gate_up(struct run *r, const struct residual *j, struct tensor *y,
                         struct tensor *up, const struct weight *gate_w, const struct weight *up_w)
{
    const struct weight *const w[] = { gate_w, up_w };
    struct tensor room, z[2];
    if (!is_ours(ops_of(r), j, w, 2)) return false;
    const struct tensor x = residual_and_z(r, j, &room, z, w, 2);
    if (gpu_gate_up_ready(r, y, &x, gate_w, up_w, z)) return true;
    gpu_linear_given(r, up, &x, up_w, &z[1], NULL, 0);
    gpu_linear_given(r, y, &x, gate_w, &z[0], up, 0);
    return true;
}
