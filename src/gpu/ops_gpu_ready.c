/* ops_gpu_ready.c - products of few rows whose input an earlier dispatch has left ready
 * (kernels/lib/acts.wgsl); how products are divided into row groups; and the products after a
 * residual of many columns. */
#include "gpu/ops_gpu_impl.h"

bool gpu_makes_ready(const struct gpu_ops *g, uint32_t rows, uint32_t cols)
{
    return g->tuning->shared_rows_pay && !gpu_by_tiles(g, rows) && cols % 16 == 0;
}

const struct tensor *gpu_ready_room(const struct tensor *y)
{
    if (y->ready) y->ready->rows = y->rows;
    return y->ready;
}

struct tensor gpu_ready_scratch(struct run *r, int which, uint32_t rows, uint32_t cols)
{
    struct tensor t = gpu_scratch(r, which, 1, rows * (cols + GPU_Z_MOST) + 4 * GPU_Z_ALIGN);
    t.rows = 0;
    t.cols = cols;
    t.size = (uint64_t)rows * cols;
    return t;
}

void gpu_place_z(struct tensor *z, const struct tensor *ready, const struct weight *const *w,
                 uint32_t n)
{
    uint32_t at = divide_up(ready->size, GPU_Z_ALIGN) * GPU_Z_ALIGN;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = matrix_of(w[i])->adapted.rank;
        z[i] = (struct tensor) { .rows = ready->rows, .cols = rank, .mem = ready->mem };
        z[i].size = (uint64_t)z[i].rows * rank;
        z[i].first = at;
        at += divide_up(z[i].size, GPU_Z_ALIGN) * GPU_Z_ALIGN;
    }
}

bool gpu_adapts_parts(const struct weight *w, uint32_t n)
{
    if (!w || gpu_drops(w)) return false;
    uint32_t rank = matrix_of(w)->adapted.rank;
    return rank > 0 && w->cols % 8 == 0 && rank * n <= GPU_Z_MOST;
}

/* ---- row groups ---- */

struct row_groups gpu_row_groups(const struct gpu_ops *g, enum gpu_shape shape, uint32_t rows,
                                 uint32_t cols, uint32_t together)
{
    if (of_fours(g)) return (struct row_groups) { 4, 4, 4 };
    const struct gpu_tuning *by = g->tuning;
    uint32_t units = divide_up(cols, gpu_unit(shape)), lanes = units > by->long_units ? 32 : 16;
    bool two = rows > by->two_rows_past[0] && cols > by->two_rows_past[1];
    uint32_t r = together ? together : rows >= by->four_rows_from ? 4 : two ? 2 : 1;
    if (g->tiling && !together) r = g->tiling == GPU_TILING_THREE ? 3 : 1u << (g->tiling - 1) % 3;
    while (lanes < 128 && divide_up(rows, r) * lanes < by->enough_lanes) lanes *= 2;
    while (lanes / 2 >= units) lanes /= 2;
    return (struct row_groups) { lanes < 128 ? 128 : lanes, lanes, r };
}

/* How many rows of W (times rows of x) the busiest processor computes. */
static uint32_t busiest(const struct gpu_ops *g, struct row_groups t, uint32_t rows, uint32_t n_tok)
{
    uint64_t groups = (uint64_t)divide_up(rows, rows_of_workgroup(t)) * n_tok;
    return divide_up(groups, g->tuning->processors) * rows_of_workgroup(t);
}

struct row_groups gpu_even_row_groups(const struct gpu_ops *g, enum gpu_shape shape, uint32_t rows,
                                      uint32_t cols, uint32_t n_tok)
{
    struct row_groups four = gpu_row_groups(g, shape, rows, cols, 0),
                      three = gpu_row_groups(g, shape, rows, cols, 3);
    bool worth_it = 10 * busiest(g, three, rows, n_tok) < 9 * busiest(g, four, rows, n_tok);
    return four.rows == 4 && !g->tiling && worth_it ? three : four;
}

bool gpu_linear_parts(struct run *r, const struct tensor *y, const struct tensor *x,
                      const struct weight *w, const struct gpu_z_parts *by)
{
    enum { MOST_RANK = 64 };
    struct gpu_ops *g = ops_of(r);
    const struct gpu_weight *m = matrix_of(w);
    const struct tensor *ready = gpu_ready(x), *z = &by->z;
    if (!ready || ready->rows != 1 || !gpu_is_codes(m->shape) || m->n_parts != 1 ||
        z->cols > MOST_RANK || z->first % 4 != 0)
        return false;
    const struct gpu_part *part = &m->parts[0];
    struct row_groups t = gpu_row_groups(g, m->shape, w->rows, w->cols, 0);
    t.wg = GPU_SHARED_WG; /* each workgroup adds up all parts of z, so there are few of them */
    struct linear_z_partials_params p = { .cols = w->cols,
                                          .rows = w->rows,
                                          .scales = part->layout.scales,
                                          .high = part->layout.high,
                                          .d = part->layout.d,
                                          .rank = m->adapted.rank,
                                          .n_parts = by->n,
                                          .z_at = z->first / 4 };
    struct gpu_binding bind[] = { act(ready), whole(part->buffer), whole(gpu_of(z)),
                                  whole(m->adapted.b), act(y) };
    struct gpu_constant constants[] = { { LINEAR_Z_PARTIALS_WG, (float)t.wg },
                                        { LINEAR_Z_PARTIALS_LANES, (float)t.lanes },
                                        { LINEAR_Z_PARTIALS_R, (float)t.rows } };
    record_dispatch(&g->rec, READY(g, LINEAR_Z_PARTIALS, m->shape), constants, COUNT(constants), &p,
                    bind, COUNT(bind), divide_up(w->rows, rows_of_workgroup(t)));
    return true;
}

/* ---- several matrices at once ---- */

/* Is a matrix one buffer of codes? */
static bool whole_codes(const struct weight *w)
{
    const struct gpu_weight *g = matrix_of(w);
    return g->n_parts == 1 && gpu_is_codes(g->shape);
}

/* The same without adapters. */
static bool plain_codes(const struct weight *w)
{
    return whole_codes(w) && matrix_of(w)->adapted.n == 0;
}

/* The B of a matrix, or anything where it has no adapters. */
static struct gpu_binding adapters_out(const struct gpu_ops *g, const struct weight *w)
{
    const struct gpu_adapted *d = &matrix_of(w)->adapted;
    return whole(d->n ? d->b : g->unused);
}

bool gpu_gate_up_ready(struct run *r, struct tensor *y, const struct tensor *x,
                       const struct weight *gate_w, const struct weight *up_w,
                       const struct tensor *z)
{
    struct gpu_ops *g = ops_of(r);
    const struct tensor *ready = gpu_ready(x);
    const struct gpu_weight *a = gate_w->mem, *b = up_w->mem;
    bool can =
        z ? whole_codes(gate_w) && whole_codes(up_w) : plain_codes(gate_w) && plain_codes(up_w);
    if (!ready || !can || a->shape != b->shape) return false;
    const struct gpu_layout *l = &a->parts[0].layout;
    bool many = g->tiling ? g->tiling > 1 : gate_w->rows >= g->tuning->gate_up_four_from;
    struct row_groups t = gpu_row_groups(g, a->shape, gate_w->rows, x->cols, many ? 4 : 2);
    /* Rows as long as 31B's waste more by 32 lanes than by 16, but not with adapters:
     * docs/experiments/matvec.md. */
    uint32_t most = many && !z ? g->tuning->gate_up_lanes : 32;
    if (t.lanes > most) t.lanes = most;
    t.wg = t.lanes < 8 ? 64 : 8 * t.lanes; /* whole runs of sixteen rows */
    const struct tensor *s = gpu_ready_room(y);
    struct gate_up_params p = { .cols = gate_w->cols,
                                .rows = gate_w->rows,
                                .n_tok = x->rows,
                                .x_stride = x->cols,
                                .y_stride = y->cols,
                                .scales = l->scales,
                                .high = l->high,
                                .d = l->d,
                                .makes_ready = s != NULL,
                                .lora = { gpu_adapter_of(r, gate_w, z),
                                          gpu_adapter_of(r, up_w, z ? &z[1] : NULL) } };
    _Static_assert(sizeof p == sizeof(struct gate_up_lora_params), "they share lib/gate_up");
    struct gpu_binding bind[7] = { act(ready), whole(a->parts[0].buffer), whole(b->parts[0].buffer),
                                   act(y), s ? act(s) : whole(g->unread[0]) };
    uint32_t n = 5;
    if (z) bind[n++] = adapters_out(g, gate_w), bind[n++] = adapters_out(g, up_w);
    struct gpu_constant constants[] = { { GATE_UP_WG, (float)t.wg },
                                        { GATE_UP_LANES, (float)t.lanes },
                                        { GATE_UP_R, (float)t.rows } };
    uint32_t kernel = z ? READY(g, GATE_UP_LORA, a->shape) : READY(g, GATE_UP, a->shape);
    record_dispatch(&g->rec, kernel, constants, COUNT(constants), &p, bind, n,
                    divide_up(p.rows, rows_of_workgroup(t)) * x->rows);
    return true;
}

/* One dispatch for the linears that were picked; z NULL: without adapters. */
static void dispatch_some(struct run *r, uint32_t kernel, struct tensor *const *y,
                          const struct tensor *x, const struct weight *const *w,
                          const struct tensor *z, const struct gpu_picked *some)
{
    struct gpu_ops *g = ops_of(r);
    struct linears_params p = { .cols = x->cols, .n_tok = x->rows };
    _Static_assert(sizeof p == sizeof(struct linears_mixed_params) &&
                       sizeof p == sizeof(struct linears_lora_params) &&
                       sizeof p == sizeof(struct linears_mixed_lora_params),
                   "they share lib/linears");
    struct gpu_binding none = whole(g->unused);
    struct gpu_binding bind[] = {
        act(x), none, none, none, none, whole(g->unread[0]), whole(g->unread[1]), none, none, none
    };
    uint32_t rows = 0, n_row_groups = 0;
    for (uint32_t k = 0; k < some->n; k++) rows += w[some->at[k]]->rows;
    struct row_groups t = gpu_row_groups(g, matrix_of(w[some->at[0]])->shape, rows, p.cols, 0);
    for (uint32_t k = 0; k < some->n; k++) {
        uint32_t i = some->at[k];
        const struct gpu_part *part = &matrix_of(w[i])->parts[0];
        p.w[k] = gpu_matrix_of(part);
        p.lora[k] = gpu_adapter_of(r, w[i], z ? &z[i] : NULL);
        bind[1 + k] = whole(part->buffer);
        bind[4 + k] = act(y[i]);
        bind[7 + k] = adapters_out(g, w[i]);
        n_row_groups += divide_up(part->rows, t.rows);
    }
    _Static_assert(
        (int)LINEARS_WG == LINEARS_MIXED_WG && (int)LINEARS_LANES == LINEARS_MIXED_LANES &&
            (int)LINEARS_R == LINEARS_MIXED_R && (int)LINEARS_MATRICES == LINEARS_MIXED_MATRICES,
        "they share lib/linears");
    struct gpu_constant constants[] = { { LINEARS_WG, (float)t.wg },
                                        { LINEARS_LANES, (float)t.lanes },
                                        { LINEARS_R, (float)t.rows },
                                        { LINEARS_MATRICES, (float)some->n } };
    record_dispatch(&g->rec, kernel, constants, COUNT(constants), &p, bind,
                    COUNT(bind) - (z ? 0 : 3), divide_up(n_row_groups, t.wg / t.lanes) * p.n_tok);
}

/* The usual mixture of shapes: the third has more bits than the others. */
static bool mixed(const struct weight *const *w, uint32_t n)
{
    enum gpu_shape first = matrix_of(w[0])->shape;
    return n == 3 && matrix_of(w[1])->shape == first && matrix_of(w[2])->shape == GPU_Q6_K &&
           (first == GPU_Q4_K || first == GPU_Q5_K);
}

uint32_t gpu_pick(struct gpu_picked *some, const struct weight *const *w, uint32_t n)
{
    if (mixed(w, n)) {
        *some = (struct gpu_picked) { .n = 3, .at = { 0, 1, 2 }, .mixed = true };
        return 1;
    }
    uint32_t n_some = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < n_some && matrix_of(w[some[k].at[0]])->shape != matrix_of(w[i])->shape) k++;
        if (k == n_some) some[n_some++] = (struct gpu_picked) { 0 };
        some[k].at[some[k].n++] = i;
    }
    return n_some;
}

static bool all_plain_codes(const struct weight *const *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!plain_codes(w[i])) return false;
    return true;
}

/* The kernel for those that were picked. */
static uint32_t kernel_for(const struct gpu_ops *g, const struct gpu_picked *some,
                           enum gpu_shape shape, bool adapted)
{
    if (some->mixed)
        return adapted ? READY(g, LINEARS_MIXED_LORA, shape) : READY(g, LINEARS_MIXED, shape);
    return adapted ? READY(g, LINEARS_LORA, shape) : READY(g, LINEARS, shape);
}

void gpu_linears_ready(struct run *r, struct tensor *const *y, const struct tensor *x,
                       const struct weight *const *w, const struct tensor *z, uint32_t n)
{
    enum { LORA_BUFFERS = 10 };
    struct gpu_ops *g = ops_of(r);
    struct gpu_picked some[GROUP_LINEARS];
    uint32_t n_some = gpu_pick(some, w, n);
    for (uint32_t i = 0; i < n_some; i++) {
        enum gpu_shape shape = matrix_of(w[some[i].at[0]])->shape;
        bool together = !z || g->rec.limits.max_storage_buffers >= LORA_BUFFERS, adapted = false;
        for (uint32_t k = 0; k < some[i].n; k++) {
            together = together && whole_codes(w[some[i].at[k]]);
            adapted = adapted || matrix_of(w[some[i].at[k]])->adapted.n;
        }
        if (together)
            dispatch_some(r, kernel_for(g, &some[i], shape, adapted), y, gpu_ready(x), w,
                          adapted ? z : NULL, &some[i]);
        for (uint32_t k = 0; !together && k < some[i].n; k++) {
            uint32_t at = some[i].at[k];
            gpu_linear_given(r, y[at], x, w[at], &z[at], NULL, 0);
        }
    }
}

void gpu_linears(struct run *r, struct tensor *const *y, const struct tensor *x,
                 const struct weight *const *w, uint32_t n)
{
    struct tensor halves, in = gpu_keeps_halves(x, &halves);
    if (gpu_ready(x) && all_plain_codes(w, n)) gpu_linears_ready(r, y, x, w, NULL, n);
    else
        for (uint32_t i = 0; i < n; i++) gpu_linear(r, y[i], &in, w[i]);
}

/* ---- residuals of many columns ---- */

/* Has the residual more columns than small_hidden? Then a dispatch of its own computes it once,
 * which is cheaper than every workgroup of a product doing so. */
static bool is_wide(const struct gpu_ops *g, const struct residual *j)
{
    return !gpu_is_small_hidden(g, j->x->cols) && gpu_residual_makes_ready(g, j);
}

/* The residual, ready in *room. The matrices w are read next, so they may be prefetched. */
static struct tensor residual_wide(struct run *r, const struct residual *j, struct tensor *room,
                                   const struct weight *const *w, uint32_t n)
{
    struct tensor x = *residual_result(j);
    bool plain = all_plain_codes(w, n);
    if (!plain || !gpu_residual_prefetch(r, j, room, w, n))
        return gpu_residual_ready(r, j, room, !plain);
    x.ready = room;
    return x;
}

bool gpu_wide_linears(struct run *r, const struct residual *j, struct tensor *const *y,
                      const struct weight *const *w, uint32_t n)
{
    if (!is_wide(ops_of(r), j)) return false;
    struct tensor room, x = residual_wide(r, j, &room, w, n);
    gpu_linears(r, y, &x, w, n);
    return true;
}

bool gpu_wide_linear_gelu_mul(struct run *r, const struct residual *j, struct tensor *y,
                              const struct weight *w, const struct tensor *b, uint32_t col)
{
    if (!is_wide(ops_of(r), j)) return false;
    struct tensor room, x = residual_wide(r, j, &room, &w, 1);
    gpu_linear_gelu_mul(r, y, &x, w, b, col);
    return true;
}

bool gpu_wide_gate_up(struct run *r, const struct residual *j, struct tensor *y, struct tensor *up,
                      const struct weight *gate_w, const struct weight *up_w)
{
    const struct weight *both[] = { gate_w, up_w };
    if (!is_wide(ops_of(r), j)) return false;
    struct tensor room, x = residual_wide(r, j, &room, both, COUNT(both));
    gpu_gate_up(r, y, up, &x, gate_w, up_w);
    return true;
}
