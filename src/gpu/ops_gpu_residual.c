/* ops_gpu_residual.c - the residual and the norm of the next block: as a dispatch of their own, or
 * computed by every workgroup of the products that read them. The latter saves a dispatch for which
 * all workgroups would wait. */
#include "gpu/ops_gpu_impl.h"

enum {
    RESIDUAL_WG = 256,      /* threads of a workgroup that computes the residual alone */
    RESIDUAL_MOST_RUNS = 2, /* runs of columns that a thread keeps in registers */
    RUN = 16,               /* columns of a run */
    SHARED_TILINGS = 3,
    SHARED_STEP =
        256, /* vec4s. Rows are rounded up to it: then there are few pipelines, and a model's
                          can be tested with rows of another width */
};

static const struct gpu_part *part_of(const struct weight *w)
{
    return &matrix_of(w)->parts[0];
}

/* Do the registers of a workgroup have room for a row? */
static bool in_runs(const struct gpu_ops *g, uint32_t cols)
{
    return g->tuning->shared_rows_pay && cols % RUN == 0 &&
           cols <= RESIDUAL_MOST_RUNS * RUN * RESIDUAL_WG;
}

bool gpu_residual_makes_ready(const struct gpu_ops *g, const struct residual *j)
{
    return gpu_makes_ready(g, j->x->rows, j->x->cols) && in_runs(g, j->x->cols);
}

/* Threads for so many columns: where the device allows it, as many as there are runs, since a
 * thread with two runs takes twice as long. */
static uint32_t runs_wg(const struct gpu_ops *g, uint32_t cols)
{
    bool twice = g->tier >= TIER_SUBGROUP && g->rec.limits.max_invocations >= 2 * RESIDUAL_WG;
    uint32_t most = twice ? 2 * RESIDUAL_WG : RESIDUAL_WG, wg = RESIDUAL_WG / 2;
    while (wg < most && RUN * wg < cols) wg *= 2;
    return wg;
}

void gpu_norm_sum(struct run *r, struct tensor *y, const struct tensor *a, const struct weight *a_w,
                  const struct tensor *b, const struct weight *b_w, float eps)
{
    struct gpu_ops *g = ops_of(r);
    if (!in_runs(g, a->cols)) {
        gpu_rms_norm(r, y, a, a_w, eps);
        gpu_add_norm(r, y, b, b_w, eps);
        return;
    }
    uint32_t wg = runs_wg(g, a->cols);
    struct norm_sum_params p = { .rows = a->rows, .cols = a->cols, .eps = eps };
    struct gpu_binding bind[] = { act(a), act(b), vector(g, a_w), vector(g, b_w), act(y) };
    struct gpu_constant constants[] = { { NORM_SUM_WG, (float)wg },
                                        { NORM_SUM_RUNS, (float)divide_up(a->cols, RUN * wg) } };
    record_dispatch(&g->rec, TIERED(g, NORM_SUM), constants, COUNT(constants), &p, bind,
                    COUNT(bind), p.rows);
}

/* A residual of one branch is returned as it is. Of two branches the sum of their norms is computed
 * now, and is the branch of what is returned. */
static struct residual of_one_branch(struct run *r, const struct residual *j)
{
    struct residual one = *j;
    if (!j->other) return one;
    gpu_norm_sum(r, j->sum, j->other, j->other_w, j->branch, j->branch_w, j->eps);
    one.branch = j->sum;
    one.other = NULL;
    return one;
}

/* residual_norm: what the next block reads goes to y as f32, to s as ready rows, or to both; NULL:
 * not there. Rows that do not fit registers cannot be written to s. */
static void residual_norm(struct run *r, const struct residual *j, const struct tensor *y,
                          const struct tensor *s)
{
    struct gpu_ops *g = ops_of(r);
    uint32_t cols = j->x->cols, rows = j->x->rows, wg = runs_wg(g, cols);
    struct residual_norm_runs_params p = { .rows = rows,
                                           .cols = cols,
                                           .has_branch = j->branch != NULL,
                                           .has_scale = weight_exists(j->scale),
                                           .has_next = weight_exists(j->next_w),
                                           .puts = y != NULL,
                                           .makes_ready = s != NULL,
                                           .eps = j->eps };
    _Static_assert(sizeof p == sizeof(struct residual_norm_params),
                   "both have the Params of lib/residual");
    struct gpu_binding bind[] = { act(j->x),
                                  j->branch ? act(j->branch) : whole(g->unused),
                                  vector(g, j->branch ? j->w : NULL),
                                  vector(g, j->scale),
                                  vector(g, j->next_w),
                                  act(j->to),
                                  y ? act(y) : whole(g->unread[0]),
                                  s ? act(s) : whole(g->unread[1]) };
    if (!in_runs(g, cols)) {
        uint32_t groups = !g->tuning->shared_rows_pay || gpu_by_tiles(g, rows)
                              ? 1
                              : divide_up(cols / 4, RESIDUAL_WG);
        gpu_dispatch_sum(r, TIERED(g, RESIDUAL_NORM), RESIDUAL_NORM_WG, RESIDUAL_WG, &p, bind,
                         COUNT(bind) - 1, rows * groups);
        return;
    }
    struct gpu_constant constants[] = { { RESIDUAL_NORM_RUNS_WG, (float)wg },
                                        { RESIDUAL_NORM_RUNS_RUNS,
                                          (float)divide_up(cols, RUN * wg) } };
    record_dispatch(&g->rec, TIERED(g, RESIDUAL_NORM_RUNS) | ACTS(g, RESIDUAL_NORM_RUNS), constants,
                    COUNT(constants), &p, bind, COUNT(bind), rows);
}

bool gpu_residual_prefetch(struct run *r, const struct residual *j, struct tensor *room,
                           const struct weight *const *soon, uint32_t n_soon)
{
    enum { BUFFERS = 8 };
    struct gpu_ops *g = ops_of(r);
    uint32_t cols = j->x->cols, wg = runs_wg(g, cols);
    struct gpu_vectors v = gpu_residual_vectors(g, j);
    if (j->x->rows != 1 || !v.one || !weight_exists(j->next_w) || !gpu_residual_makes_ready(g, j) ||
        g->rec.limits.max_storage_buffers < BUFFERS)
        return false;
    *room = gpu_ready_scratch(r, SCRATCH_READY, 1, cols);
    room->rows = 1;
    struct residual_norm_prefetch_params p = { .cols = cols,
                                               .has_branch = j->branch != NULL,
                                               .has_scale = weight_exists(j->scale),
                                               .post_at = v.at[0],
                                               .scale_at = v.at[1],
                                               .next_at = v.at[2],
                                               .unread = cols / 4,
                                               .eps = j->eps };
    struct gpu_binding none = whole(g->unused);
    struct gpu_binding bind[] = {
        act(j->x), j->branch ? act(j->branch) : none, v.all, none, none, none, act(j->to), act(room)
    };
    for (uint32_t i = 0; i < n_soon && i < GROUP_LINEARS; i++)
        bind[3 + i] = whole(part_of(soon[i])->buffer);
    struct gpu_constant constants[] = { { RESIDUAL_NORM_PREFETCH_WG, (float)wg },
                                        { RESIDUAL_NORM_PREFETCH_RUNS,
                                          (float)divide_up(cols, RUN * wg) } };
    record_dispatch(&g->rec, TIERED(g, RESIDUAL_NORM_PREFETCH) | ACTS(g, RESIDUAL_NORM_PREFETCH),
                    constants, COUNT(constants), &p, bind, COUNT(bind),
                    1 + g->tuning->prefetch_groups);
    return true;
}

struct tensor gpu_residual_ready(struct run *r, const struct residual *j, struct tensor *room,
                                 bool floats)
{
    struct tensor x = *residual_result(j);
    x.ready = room;
    *room = gpu_ready_scratch(r, SCRATCH_READY, x.rows, x.cols);
    residual_norm(r, j, floats && weight_exists(j->next_w) ? j->norm : NULL, gpu_ready_room(&x));
    return x;
}

/* The residual by a dispatch of its own. Returns what the products of the same group read. */
static struct tensor residual_before(struct run *r, const struct residual *j, struct tensor *room)
{
    if (gpu_residual_makes_ready(ops_of(r), j)) return gpu_residual_ready(r, j, room, true);
    residual_norm(r, j, weight_exists(j->next_w) ? j->norm : NULL, NULL);
    return *residual_result(j);
}

void gpu_residual_norm(struct run *r, const struct residual *of)
{
    const struct residual one = of_one_branch(r, of), *j = &one;
    const struct tensor *s =
        gpu_residual_makes_ready(ops_of(r), j) ? gpu_ready_room(residual_result(j)) : NULL;
    residual_norm(r, j, weight_exists(j->next_w) ? j->norm : NULL, s);
}

uint32_t gpu_shared_row(uint32_t cols)
{
    return divide_up(cols, 4 * SHARED_STEP) * SHARED_STEP;
}

/* Workgroup memory of a kernel with a shared row, in bytes. */
static uint32_t shared_row_bytes(const struct gpu_ops *g, uint32_t cols)
{
    uint32_t sums = (g->tier >= TIER_SUBGROUP ? 128 : 256) * 16;
    return gpu_shared_row(cols) * 16 + sums;
}

bool gpu_can_share_row(const struct gpu_ops *g, uint32_t cols)
{
    return g->tuning->shared_rows_pay && cols % RUN == 0 && cols <= RUN * GPU_SHARED_WG &&
           shared_row_bytes(g, cols) <= g->rec.limits.max_workgroup_bytes;
}

bool gpu_shares_residual(const struct gpu_ops *g, const struct residual *j, uint32_t n_buffers)
{
    return gpu_can_share_row(g, j->x->cols) && !gpu_by_tiles(g, j->x->rows) &&
           n_buffers <= g->rec.limits.max_storage_buffers;
}

struct gpu_vectors gpu_residual_vectors(const struct gpu_ops *g, const struct residual *j)
{
    return gpu_vectors_of(g, j->branch ? j->w : NULL, j->scale, j->next_w);
}

static enum gpu_shape shape_of(const struct weight *w)
{
    return matrix_of(w)->shape;
}

/* Do half of a workgroup's threads have registers enough for a row? */
static bool half_suffices(const struct residual *j)
{
    return j->x->cols <= RUN * GPU_SHARED_WG / 2;
}

/* Row groups of a product with a shared row: the more rows W has, the more of them a row group
 * takes (docs/experiments/fusion.md). */
static struct row_groups shared_row_groups(const struct gpu_ops *g, uint32_t rows)
{
    uint32_t wanted = g->tiling ? 1u << (g->tiling - 1) % SHARED_TILINGS
                                : gpu_value_at(g->tuning->shared_rows, rows);
    return (struct row_groups) { GPU_SHARED_WG, 32, wanted };
}

/* The same for gate and up. A workgroup has whole runs of sixteen results, so that it can leave
 * them ready. */
static struct row_groups shared_pair_groups(const struct gpu_ops *g, const struct residual *j,
                                            uint32_t rows)
{
    uint32_t wanted = g->tiling ? 1u << (g->tiling - 1) % SHARED_TILINGS
                                : gpu_value_at(g->tuning->shared_pair, rows);
    if (wanted > 1 && half_suffices(j)) return (struct row_groups) { GPU_SHARED_WG / 2, 16, 4 };
    return (struct row_groups) { GPU_SHARED_WG, 16, wanted };
}

/* How many workgroups compute n_row_groups row groups. Each of them computes the residual again, so
 * there are no more than shared_lanes of the profile allows. */
static uint32_t shared_workgroups(const struct gpu_ops *g, struct row_groups t,
                                  uint32_t n_row_groups)
{
    uint32_t blocks = divide_up(n_row_groups, t.wg / t.lanes);
    return divide_up(blocks, divide_up(blocks, g->tuning->shared_lanes / t.wg));
}

/* Dispatch a product with a shared row. n_matrices 0: the kernel has neither the override MATRICES
 * nor BRANCHES. */
static void dispatch_shared(struct run *r, uint32_t kernel, const struct residual *j,
                            struct row_groups t, uint32_t n_matrices, const void *params,
                            const struct gpu_binding *bind, uint32_t n, uint32_t n_row_groups)
{
    struct gpu_ops *g = ops_of(r);
    _Static_assert((int)NORM_GATE_UP_WG == NORM_LINEARS_WG &&
                       (int)NORM_GATE_UP_WG == RESIDUAL_LINEAR_GELU_WG &&
                       (int)NORM_GATE_UP_SHARED_ROW == NORM_LINEARS_SHARED_ROW &&
                       (int)NORM_GATE_UP_SHARED_ROW == RESIDUAL_LINEAR_GELU_SHARED_ROW,
                   "norm_* and residual_linear_gelu have the same first overrides");
    struct gpu_constant constants[] = { { NORM_GATE_UP_WG, (float)t.wg },
                                        { NORM_GATE_UP_LANES, (float)t.lanes },
                                        { NORM_GATE_UP_R, (float)t.rows },
                                        { NORM_GATE_UP_SHARED_ROW,
                                          (float)gpu_shared_row(j->x->cols) },
                                        { NORM_LINEARS_MATRICES, (float)n_matrices },
                                        { NORM_LINEARS_BRANCHES, j->other ? 2 : 1 } };
    record_dispatch(&g->rec, kernel, constants, COUNT(constants) - (n_matrices ? 0 : 2), params,
                    bind, n, shared_workgroups(g, t, n_row_groups) * j->x->rows);
}

/* norm_linears of the picked matrices as one dispatch. It writes the next state of the residual
 * stream; where the matrices need several such dispatches, all of them write the same one. */
static void dispatch_picked(struct run *r, uint32_t kernel, const struct residual *j,
                            struct tensor *const *y, const struct weight *const *w,
                            const struct gpu_picked *some)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_vectors v = gpu_residual_vectors(g, j);
    struct norm_linears_params p = { .cols = j->x->cols,
                                     .n_tok = j->x->rows,
                                     .has_branch = j->branch != NULL,
                                     .has_scale = weight_exists(j->scale),
                                     .post_at = v.at[0],
                                     .scale_at = v.at[1],
                                     .next_at = v.at[2],
                                     .eps = j->eps };
    _Static_assert(sizeof p == sizeof(struct norm_linears_mixed_params), "they share lib/linears");
    if (j->other) {
        struct gpu_vectors both = gpu_vectors_of(g, j->branch_w, j->other_w, NULL);
        p.other_at = (j->other->first - j->branch->first) / 4;
        p.branch_w_at = both.at[0];
        p.other_w_at = both.at[1];
    }
    struct gpu_binding none = whole(g->unused);
    struct gpu_binding bind[] = { act(j->x),
                                  j->branch ? act(j->branch) : none,
                                  v.all,
                                  none,
                                  none,
                                  none,
                                  act(j->to),
                                  none,
                                  whole(g->unread[0]),
                                  whole(g->unread[1]) };
    uint32_t n_row_groups = 0, rows = 0;
    for (uint32_t k = 0; k < some->n; k++) rows += w[some->at[k]]->rows;
    struct row_groups t = shared_row_groups(g, rows);
    for (uint32_t k = 0; k < some->n; k++) {
        const struct gpu_part *part = part_of(w[some->at[k]]);
        p.w[k] = gpu_matrix_of(part);
        bind[3 + k] = whole(part->buffer);
        bind[7 + k] = act(y[some->at[k]]);
        n_row_groups += divide_up(part->rows, t.rows);
    }
    dispatch_shared(r, kernel, j, t, some->n, &p, bind, COUNT(bind), n_row_groups);
}

/* norm_linear: one matrix, one branch. */
static void dispatch_one(struct run *r, const struct residual *j, const struct tensor *y,
                         const struct weight *w)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_vectors v = gpu_residual_vectors(g, j);
    const struct gpu_part *part = part_of(w);
    struct norm_linear_params p = { .cols = j->x->cols,
                                    .n_tok = j->x->rows,
                                    .has_branch = j->branch != NULL,
                                    .has_scale = weight_exists(j->scale),
                                    .post_at = v.at[0],
                                    .scale_at = v.at[1],
                                    .next_at = v.at[2],
                                    .rows = part->rows,
                                    .scales = part->layout.scales,
                                    .high = part->layout.high,
                                    .d = part->layout.d,
                                    .eps = j->eps };
    struct gpu_binding bind[] = { act(j->x),  j->branch ? act(j->branch) : whole(g->unused),
                                  v.all,      whole(part->buffer),
                                  act(j->to), act(y) };
    struct row_groups t = shared_row_groups(g, w->rows);
    _Static_assert((int)NORM_GATE_UP_WG == NORM_LINEAR_WG && (int)NORM_GATE_UP_R == NORM_LINEAR_R &&
                       (int)NORM_GATE_UP_SHARED_ROW == NORM_LINEAR_SHARED_ROW,
                   "norm_* and residual_linear_gelu have the same first overrides");
    dispatch_shared(r, READY(g, NORM_LINEAR, shape_of(w)), j, t, 0, &p, bind, COUNT(bind),
                    divide_up(part->rows, t.rows));
}

/* Can every workgroup compute the residual of two branches? Both branches must lie in one buffer,
 * and so must all vectors. */
static bool takes_both(const struct gpu_ops *g, const struct residual *j)
{
    struct gpu_vectors v = gpu_residual_vectors(g, j);
    struct gpu_vectors both = gpu_vectors_of(g, j->branch_w, j->other_w, NULL);
    return gpu_is_small_hidden(g, j->x->cols) && j->other->mem == j->branch->mem &&
           j->other->first > j->branch->first && both.one && both.all.buffer == v.all.buffer;
}

void gpu_norm_linears(struct run *r, const struct residual *j, struct tensor *const *y,
                      const struct weight *const *w, uint32_t n)
{
    struct gpu_ops *g = ops_of(r);
    bool ok =
        gpu_shares_residual(g, j, 10) && weight_exists(j->next_w) && gpu_residual_vectors(g, j).one;
    for (uint32_t i = 0; i < n; i++) ok = ok && gpu_whole_no_lora(w[i]);
    struct residual one = *j;
    if (j->other && !(ok && takes_both(g, j))) one = of_one_branch(r, j);
    j = &one;
    if (!j->other && gpu_adapted_linears(r, j, y, w, n)) return;
    if (!j->other && gpu_wide_linears(r, j, y, w, n)) return;
    if (!ok) {
        struct tensor room, in = residual_before(r, j, &room);
        gpu_linears(r, y, &in, w, n);
        return;
    }
    struct gpu_picked some[GROUP_LINEARS];
    uint32_t n_some = gpu_pick(some, w, n);
    for (uint32_t i = 0; i < n_some; i++) {
        uint32_t first = some[i].at[0];
        if (some[i].n == 1 && !j->other) {
            dispatch_one(r, j, y[first], w[first]);
            continue;
        }
        enum gpu_shape shape = shape_of(w[first]);
        uint32_t kernel =
            some[i].mixed ? READY(g, NORM_LINEARS_MIXED, shape) : READY(g, NORM_LINEARS, shape);
        dispatch_picked(r, kernel, j, y, w, &some[i]);
    }
}

void gpu_residual_linear_gelu(struct run *r, const struct residual *of, struct tensor *y,
                              const struct weight *w, const struct tensor *b, uint32_t col)
{
    struct gpu_ops *g = ops_of(r);
    const struct residual one = of_one_branch(r, of), *j = &one;
    if (gpu_adapted_linear_gelu_mul(r, j, y, w, b, col)) return;
    if (gpu_wide_linear_gelu_mul(r, j, y, w, b, col)) return;
    bool ok = gpu_shares_residual(g, j, 7) && j->branch && !weight_exists(j->scale) &&
              !weight_exists(j->next_w);
    if (!ok || !gpu_whole_no_lora(w)) {
        struct tensor room, in = residual_before(r, j, &room);
        gpu_linear_gelu_mul(r, y, &in, w, b, col);
        return;
    }
    const struct gpu_part *part = part_of(w);
    struct residual_linear_gelu_params p = { .cols = w->cols,
                                             .rows = w->rows,
                                             .n_tok = j->x->rows,
                                             .y_stride = y->cols,
                                             .scales = part->layout.scales,
                                             .high = part->layout.high,
                                             .d = part->layout.d,
                                             .by_stride = b->cols,
                                             .by_col = col,
                                             .has_branch = 1,
                                             .eps = j->eps };
    struct gpu_binding bind[] = { act(j->x), act(j->branch), vector(g, j->w), whole(part->buffer),
                                  act(b),    act(j->to),     act(y) };
    struct row_groups t = shared_row_groups(g, w->rows);
    dispatch_shared(r, READY(g, RESIDUAL_LINEAR_GELU, shape_of(w)), j, t, 0, &p, bind, COUNT(bind),
                    divide_up(w->rows, t.rows));
}

/* Can the residual, its norm, gate and up be one dispatch? */
static bool is_one_gate_up(const struct gpu_ops *g, const struct residual *j,
                           const struct weight *gate_w, const struct weight *up_w)
{
    enum {
        BUFFERS = 8,
        MADE_BYTES = 1024
    }; /* buffers, and workgroup memory of kernels/lib/gate_up.wgsl */
    bool room = shared_row_bytes(g, j->x->cols) + MADE_BYTES <= g->rec.limits.max_workgroup_bytes;
    return gpu_shares_residual(g, j, BUFFERS) && room && j->branch && !weight_exists(j->scale) &&
           weight_exists(j->next_w) && gpu_residual_vectors(g, j).one &&
           gpu_whole_no_lora(gate_w) && gpu_whole_no_lora(up_w) &&
           shape_of(gate_w) == shape_of(up_w);
}

/* norm_gate_up as one dispatch. */
static void dispatch_gate_up(struct run *r, const struct residual *j, struct tensor *y,
                             const struct weight *gate_w, const struct weight *up_w)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_vectors v = gpu_residual_vectors(g, j);
    const struct gpu_part *gate = part_of(gate_w);
    struct row_groups t = shared_pair_groups(g, j, gate_w->rows);
    const struct tensor *s = gpu_makes_form(g, shape_of(gate_w)) ? gpu_ready_room(y) : NULL;
    struct norm_gate_up_params p = { .cols = gate_w->cols,
                                     .rows = gate_w->rows,
                                     .n_tok = j->x->rows,
                                     .y_stride = y->cols,
                                     .scales = gate->layout.scales,
                                     .high = gate->layout.high,
                                     .d = gate->layout.d,
                                     .has_branch = 1,
                                     .post_at = v.at[0],
                                     .next_at = v.at[2],
                                     .makes_ready = s != NULL,
                                     .eps = j->eps };
    struct gpu_binding bind[] = { act(j->x),
                                  act(j->branch),
                                  v.all,
                                  whole(gate->buffer),
                                  whole(part_of(up_w)->buffer),
                                  act(j->to),
                                  act(y),
                                  s ? act(s) : whole(g->unread[0]) };
    dispatch_shared(r, READY(g, NORM_GATE_UP, shape_of(gate_w)), j, t, 0, &p, bind, COUNT(bind),
                    divide_up(gate_w->rows, t.rows));
}

void gpu_norm_gate_up(struct run *r, const struct residual *of, struct tensor *y, struct tensor *up,
                      const struct weight *gate_w, const struct weight *up_w)
{
    const struct residual one = of_one_branch(r, of), *j = &one;
    if (gpu_adapted_gate_up(r, j, y, up, gate_w, up_w)) return;
    if (gpu_wide_gate_up(r, j, y, up, gate_w, up_w)) return;
    if (is_one_gate_up(ops_of(r), j, gate_w, up_w)) {
        dispatch_gate_up(r, j, y, gate_w, up_w);
        return;
    }
    struct tensor room, in = residual_before(r, j, &room);
    gpu_gate_up(r, y, up, &in, gate_w, up_w);
}
