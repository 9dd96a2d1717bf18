/* ops_gpu_bwd.c - the gradients as dispatches, first part: products, norms, elementwise ops and the
 * optimiser.
 *
 * Every result is summed by the workgroup that owns it, in a fixed order, so that a step gives the
 * same bits each time.
 */
#include "gpu/ops_gpu_bwd.h"

/* ---- elementwise ops and norms ---- */

void gpu_zero(struct run *r, struct tensor *x)
{
    struct zero_params p = { .n = x->rows * x->cols };
    struct gpu_binding bind[] = { act(x) };
    gpu_dispatch_op(r, KERNEL_ZERO, &p, bind, COUNT(bind), divide_up(p.n, 4 * 256));
}

static void dispatch_sum(struct run *r, uint32_t kernel, struct gpu_constant wg, const void *params,
                         const struct gpu_binding *b, uint32_t n, uint32_t n_groups)
{
    struct gpu_ops *g = ops_of(r);
    wg.value = gpu_sum_wg(g, (uint32_t)wg.value);
    record_dispatch(&g->rec, kernel, &wg, 1, params, b, n, n_groups);
}

void gpu_rms_norm_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                      const struct tensor *x, const struct weight *w, float eps)
{
    struct rms_norm_bwd_params p = {
        .rows = x->rows, .cols = x->cols, .has_w = weight_exists(w), .fresh = fresh, .eps = eps
    };
    struct gpu_binding bind[] = { act(dy), act(x), vector(ops_of(r), w), act(dx) };
    dispatch_sum(r, KERNEL_RMS_NORM_BWD, (struct gpu_constant) { RMS_NORM_BWD_WG, 256 }, &p, bind,
                 COUNT(bind), x->rows);
}

void gpu_head_norm_rope_bwd(struct run *r, struct tensor *d, const struct tensor *x,
                            const struct weight *w, const struct tensor *table, uint32_t n_head,
                            float eps)
{
    struct gpu_ops *g = ops_of(r);
    struct head_norm_rope_bwd_params p = { .rows = x->rows,
                                           .n_head = n_head,
                                           .head_dim = x->cols / n_head,
                                           .n_pair = table ? table->cols / 2 : 0,
                                           .has_w = weight_exists(w),
                                           .eps = eps };
    struct gpu_binding bind[] = { table ? act(table) : whole(g->unused), act(x), vector(g, w),
                                  act(d) };
    dispatch_sum(r, KERNEL_HEAD_NORM_ROPE_BWD, (struct gpu_constant) { HEAD_NORM_ROPE_BWD_WG, 64 },
                 &p, bind, COUNT(bind), x->rows * n_head);
}

static void head_norm_bwd(struct run *r, struct tensor *d, const struct tensor *x,
                          const struct weight *w, uint32_t n_head, float eps)
{
    gpu_head_norm_rope_bwd(r, d, x, w, NULL, n_head, eps);
}

void gpu_gelu_mul_bwd(struct run *r, struct tensor *d, struct tensor *db, const struct tensor *a,
                      const struct tensor *b, uint32_t col)
{
    struct gelu_mul_bwd_params p = { .rows = d->rows,
                                     .cols = d->cols,
                                     .a_stride = a->cols,
                                     .b_stride = b->cols,
                                     .b_col = col,
                                     .has_db = db != NULL };
    /* Without db a buffer is bound that no other binding of this dispatch has. */
    struct tensor none = db ? *db : gpu_scratch(r, SCRATCH_FIRST, 1, 4);
    struct gpu_binding bind[] = { act(a), act(b), act(d), act(&none) };
    gpu_dispatch_op(r, KERNEL_GELU_MUL_BWD, &p, bind, COUNT(bind),
                    divide_up((uint64_t)d->rows * d->cols / 4, 64));
}

/* ---- linear ---- */

/* How a product is divided: tiles of so many columns and rows t, and the number of splits in which
 * the rows of W are summed. */
struct bwd_tiling {
    uint32_t tile, loads, n_split, n_groups;
};

static struct bwd_tiling bwd_tiling(const struct gpu_ops *g, uint32_t n_tok, uint32_t rows,
                                    uint32_t cols)
{
    struct bwd_tiling c = { .tile = 64, .loads = 4, .n_split = 1 };
    const struct gpu_tuning *by = g->tuning;
    if (by->bwd_tile == 128 && n_tok > 64 && cols > 64) c.tile = 128, c.loads = 1;
    uint32_t tiles = divide_up(n_tok, c.tile) * divide_up(cols, c.tile);
    uint64_t cost;
    c.n_split = gpu_split_k(by, tiles, c.tile == 128 ? by->processors : 4 * by->processors, rows,
                            (uint64_t)n_tok * cols, by->parts_bytes, &cost);
    c.n_groups = tiles * c.n_split;
    return c;
}

/* What a dispatch is told of the adapters of W: none, or with u = B' dy. */
struct lora_bwd {
    uint32_t rank, s_at;
    struct gpu_binding u, a, s;
};

void gpu_sum_parts(struct run *r, struct tensor *y, uint32_t first, bool fresh,
                   const struct tensor *parts, uint32_t n_part, const struct tensor *by,
                   uint32_t col)
{
    struct gpu_ops *g = ops_of(r);
    struct sum_partials_params p = { .n = parts->rows / n_part * parts->cols,
                                     .n_part = n_part,
                                     .at = first * parts->cols,
                                     .fresh = fresh,
                                     .cols = parts->cols,
                                     .by_stride = by ? by->cols : 0,
                                     .by_col = col };
    struct gpu_binding bind[] = { act(parts), by ? act(by) : whole(g->unused), act(y) };
    struct gpu_constant gelu = { SUM_PARTIALS_GELU, by != NULL };
    record_dispatch(&g->rec, KERNEL_SUM_PARTIALS, &gelu, 1, &p, bind, COUNT(bind),
                    divide_up(p.n, 4 * 64));
}

/* dx = dx + W' dy + A' u for the rows of one buffer of W; fresh: without dx. Where dx begins at a
 * later row (`first`), or the rows of W are split, the result goes to scratch and is added
 * afterwards. */
static void part_transposed(struct run *r, struct tensor *dx, uint32_t first, bool fresh,
                            const struct tensor *dy, const struct weight *w,
                            const struct gpu_part *part, const struct lora_bwd *lora)
{
    struct gpu_ops *g = ops_of(r);
    const struct bwd_tiling t = bwd_tiling(g, dy->rows, part->rows, w->cols);
    uint32_t n_tok = dy->rows, n_split = t.n_split;
    bool adds = n_split > 1 || first;
    struct tensor parts = *dx;
    if (adds) parts = gpu_scratch(r, SCRATCH_PARTS, n_split * n_tok, w->cols);
    struct matmul_bwd_params p = { .cols = w->cols,
                                   .rows = part->rows,
                                   .row0 = part->row0,
                                   .n_tok = n_tok,
                                   .dy_stride = dy->cols,
                                   .n_split = n_split,
                                   .fresh = adds || fresh,
                                   .scales = part->layout.scales,
                                   .high = part->layout.high,
                                   .d = part->layout.d,
                                   .rank = lora->rank,
                                   .s_at = lora->s_at };
    struct gpu_binding bind[] = { act(dy), whole(part->buffer), lora->u, lora->a,
                                  lora->s, act(&parts) };
    enum gpu_shape shape = ((const struct gpu_weight *)w->mem)->shape;
    uint32_t software = SOFTWARE(MATMUL_BWD) | SHAPED(MATMUL_BWD, shape);
    uint64_t threads = (uint64_t)divide_up(n_tok, 8) * divide_up(w->cols, 8);
    struct gpu_constant constants[] = { { MATMUL_BWD_COLS, (float)t.tile },
                                        { MATMUL_BWD_TOKS, (float)t.tile },
                                        { MATMUL_BWD_WG, (float)(t.tile * t.tile / 64) },
                                        { MATMUL_BWD_LOADS, (float)t.loads } };
    if (has_software(g, software))
        gpu_dispatch_op(r, software, &p, bind, COUNT(bind), divide_up(threads, SOFTWARE_WG));
    else
        record_dispatch(&g->rec, SHAPED(MATMUL_BWD, shape), constants, COUNT(constants), &p, bind,
                        COUNT(bind), t.n_groups);
    if (adds) gpu_sum_parts(r, dx, first, fresh, &parts, n_split, NULL, 0);
}

/* Products of vec4s: no Gemma has other rows. */
static bool whole_vectors(struct run *r, const struct weight *w)
{
    if (w->rows % 4 == 0 && w->cols % 4 == 0) return true;
    run_fail(r, BZ_ERR_UNSUPPORTED, "a matrix of %u x %u cannot be trained through on a GPU",
             w->rows, w->cols);
    return false;
}

void gpu_transposed(struct run *r, struct tensor *dx, uint32_t first, bool fresh,
                    const struct tensor *dy, const struct weight *w)
{
    struct gpu_binding none = whole(ops_of(r)->unused);
    const struct lora_bwd lora = { .u = none, .a = none, .s = none };
    const struct gpu_weight *g = w->mem;
    for (uint32_t i = 0; i < g->n_parts; i++)
        part_transposed(r, dx, first, fresh && i == 0, dy, w, &g->parts[i], &lora);
}

/* What kernels are told of an adapter's dropout: nothing, or which numbers it sees. */
struct drop {
    uint32_t on, salt;
    float share, kept;
};

static struct drop drop_of(const struct lora *l)
{
    if (!l || !lora_drops(l)) return (struct drop) { 0 };
    return (struct drop) { 1, l->salt, l->drop->share, 1 / (1 - l->drop->share) };
}

bool gpu_drops(const struct weight *w)
{
    for (const struct lora *l = w->lora; l; l = l->next)
        if (lora_drops(l)) return true;
    return false;
}

/* z = M x for `rank` rows of M, which are few, from `at` on; l: as this adapter sees x. */
static void few_rows(struct run *r, const struct tensor *z, const struct tensor *x, gpu_buffer m,
                     uint32_t stride, uint32_t at, uint32_t rank, const struct lora *l)
{
    struct gpu_ops *g = ops_of(r);
    const struct drop drop = drop_of(l);
    struct lora_in_params p = { .cols = x->cols,
                                .stride = stride,
                                .rank = rank,
                                .n_tok = x->rows,
                                .z_stride = z->cols,
                                .at = at,
                                .salt = drop.salt,
                                .share = drop.share,
                                .kept = drop.kept };
    struct gpu_binding bind[] = { act(x), whole(m), act(z) };
    struct gpu_constant constants[] = { { LORA_IN_WG, gpu_sum_wg(g, 128) },
                                        { LORA_IN_DROP, (float)drop.on } };
    if (has_software(g, SOFTWARE(LORA_IN))) {
        struct gpu_constant drops = { LORA_IN_DROP, (float)drop.on };
        uint64_t threads = (uint64_t)divide_up(x->rows, 4) * divide_up(rank, 8);
        record_dispatch(&g->rec, SOFTWARE(LORA_IN), &drops, 1, &p, bind, COUNT(bind),
                        divide_up(threads, SOFTWARE_WG));
        return;
    }
    record_dispatch(&g->rec, KERNEL_LORA_IN, constants, COUNT(constants), &p, bind, COUNT(bind),
                    divide_up(x->rows, 4) * divide_up(rank, 16));
}

void gpu_lora_in(struct run *r, const struct tensor *z, const struct tensor *x,
                 const struct weight *w)
{
    const struct gpu_adapted *d = &((const struct gpu_weight *)w->mem)->adapted;
    uint32_t stride = (w->cols + 7) / 8 * 8, at = 0;
    struct tensor all = { .rows = x->rows, .cols = d->rank, .mem = z->mem };
    if (w->cols % 4)
        run_fail(r, BZ_ERR_UNSUPPORTED, "rows of %u numbers cannot be trained on a GPU", w->cols);
    else if (!gpu_drops(w)) few_rows(r, &all, x, d->a, stride, 0, d->rank, NULL);
    else
        for (const struct lora *l = w->lora; l; at += lora_rank(l), l = l->next)
            few_rows(r, &all, x, d->a, stride, at, lora_rank(l), l);
}

/* dx += s m * A' u of every adapter, where at least one sees only m * x. */
static void lora_out(struct run *r, const struct tensor *dx, const struct tensor *u,
                     const struct weight *w)
{
    const struct gpu_adapted *d = &((const struct gpu_weight *)w->mem)->adapted;
    uint32_t at = 0;
    for (const struct lora *l = w->lora; l; at += lora_rank(l), l = l->next) {
        const struct drop drop = drop_of(l);
        struct lora_out_params p = { .n_tok = u->rows,
                                     .cols = w->cols,
                                     .stride = (w->cols + 7) / 8 * 8,
                                     .rank = l->a.rows,
                                     .u_stride = d->rank,
                                     .at = at,
                                     .s = l->scale,
                                     .salt = drop.salt,
                                     .share = drop.share,
                                     .kept = drop.kept };
        struct gpu_binding bind[] = { act(u), whole(d->a), act(dx) };
        struct gpu_constant on = { LORA_OUT_DROP, (float)drop.on };
        record_dispatch(&ops_of(r)->rec, KERNEL_LORA_OUT, &on, 1, &p, bind, COUNT(bind),
                        divide_up((uint64_t)u->rows * w->cols / 4, 64));
    }
}

/* One of the two gradients of an adapter: out[k][j] += s sum z[:, at + k] x[:, j]. */
static void lora_grad(struct run *r, struct tensor *out, const struct lora *l,
                      const struct gpu_lora_rows *rows, uint32_t at, bool of_a)
{
    struct gpu_ops *g = ops_of(r);
    const struct tensor *z = of_a ? rows->u : rows->z, *x = of_a ? rows->x : rows->dy;
    const struct drop drop = drop_of(of_a ? l : NULL);
    uint32_t rank = l->a.rows, n_mat = l->a.n_mat, lanes = g->tuning->lora_grad_lanes;
    struct lora_grad_params p = { .n = z->rows,
                                  .wide = x->cols,
                                  .rank = rank,
                                  .z_stride = z->cols,
                                  .z_at = at,
                                  .out_k = of_a ? x->cols : 1,
                                  .out_j = of_a ? 1 : rank,
                                  .out_mat = rank * x->cols,
                                  .n_mat = n_mat,
                                  .n_used = rows->n_used,
                                  .by_slot = !of_a || !rows->n_used,
                                  .s = l->scale,
                                  .salt = drop.salt,
                                  .share = drop.share,
                                  .kept = drop.kept };
    struct gpu_binding bind[] = { act(z), act(x), rows->ids ? act(rows->ids) : whole(g->unused),
                                  act(out) };
    if (has_software(g, SOFTWARE(LORA_GRAD))) {
        struct gpu_constant few[] = { { LORA_GRAD_MANY, rows->ids != NULL },
                                      { LORA_GRAD_DROP, (float)drop.on } };
        uint64_t threads = (uint64_t)n_mat * divide_up(rank, 8) * (x->cols / 4);
        record_dispatch(&g->rec, SOFTWARE(LORA_GRAD), few, COUNT(few), &p, bind, COUNT(bind),
                        divide_up(threads, SOFTWARE_WG));
        return;
    }
    struct gpu_constant constants[] = { { LORA_GRAD_LANES, (float)lanes },
                                        { LORA_GRAD_GROUPS, (float)g->tuning->lora_grad_groups },
                                        { LORA_GRAD_MANY, rows->ids != NULL },
                                        { LORA_GRAD_DROP, (float)drop.on } };
    record_dispatch(&g->rec, KERNEL_LORA_GRAD, constants, COUNT(constants), &p, bind, COUNT(bind),
                    n_mat * divide_up(rank, 16) * divide_up(x->cols, 4 * lanes));
}

void gpu_lora_grads(struct run *r, const struct weight *w, const struct gpu_lora_rows *rows)
{
    uint32_t at = 0;
    for (const struct lora *l = w->lora; l; at += lora_rank(l), l = l->next) {
        if (!l->grad) continue;
        lora_grad(r, &l->grad->a, l, rows, at, true);
        lora_grad(r, &l->grad->b, l, rows, at, false);
    }
}

void gpu_linear_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                    const struct tensor *x, const struct tensor *z, const struct weight *w)
{
    const struct gpu_weight *g = w->mem;
    const struct gpu_adapted *d = &g->adapted;
    struct gpu_binding none = whole(ops_of(r)->unused);
    struct lora_bwd lora = { .u = none, .a = none, .s = none };
    struct tensor u = { 0 };
    if (!whole_vectors(r, w)) return;
    if (d->rank) {
        u = gpu_scratch(r, SCRATCH_FIRST, dy->rows, d->rank);
        few_rows(r, &u, dy, d->b, w->rows, 0, d->rank, NULL);
        lora = (struct lora_bwd) { d->rank, gpu_adapted_scales(d, w, false), act(&u), whole(d->a),
                                   whole(d->b) };
        if (weight_learns(w))
            gpu_lora_grads(r, w, &(struct gpu_lora_rows) { z, &u, x, dy, NULL, 0 });
    }
    const struct lora_bwd without = { .u = none, .a = none, .s = none };
    bool drops = gpu_drops(w);
    for (uint32_t i = 0; dx && i < g->n_parts; i++)
        part_transposed(r, dx, 0, fresh && i == 0, dy, w, &g->parts[i],
                        i || drops ? &without : &lora);
    if (dx && drops) lora_out(r, dx, &u, w);
}

static void rows_bwd(struct run *r, struct tensor *dx, const struct tensor *dy, uint32_t first)
{
    gpu_sum_parts(r, dx, first, false, dy, 1, NULL, 0);
}

/* ---- the optimiser ---- */

enum { SUM_GROUPS = 256, SUM_FROM = 1 << 14 };

static void sum_dispatch(struct run *r, const struct tensor *out, struct sum_to_params p,
                         const struct tensor *t, bool squares)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_constant constants[] = { { SUM_TO_WG, gpu_sum_wg(g, 256) },
                                        { SUM_TO_SQUARES, squares } };
    struct gpu_binding bind[] = { act(t), act(out) };
    record_dispatch(&g->rec, KERNEL_SUM_TO, constants, COUNT(constants), &p, bind, COUNT(bind),
                    p.parts ? p.parts : 1);
}

static void sum(struct run *r, struct tensor *control, enum control at, const struct tensor *t,
                bool squares)
{
    uint32_t n = t->rows * t->cols;
    if (n < SUM_FROM) {
        sum_dispatch(r, control, (struct sum_to_params) { .n = n, .at = at }, t, squares);
        return;
    }
    struct tensor parts = gpu_scratch(r, SCRATCH_FIRST, 1, SUM_GROUPS);
    sum_dispatch(r, &parts, (struct sum_to_params) { .n = n, .parts = SUM_GROUPS }, t, squares);
    sum_dispatch(r, control, (struct sum_to_params) { .n = SUM_GROUPS, .at = at }, &parts, false);
}

static void clip(struct run *r, struct tensor *control, float most)
{
    struct clip_params p = { .most = most };
    struct gpu_binding bind[] = { act(control) };
    gpu_dispatch_op(r, KERNEL_CLIP, &p, bind, COUNT(bind), 1);
}

static void adamw(struct run *r, struct tensor *x, const struct tensor *g, struct tensor *m,
                  struct tensor *v, const struct tensor *control, const struct adamw *o)
{
    struct adamw_params p = { .n = x->rows * x->cols,
                              .beta1 = o->beta1,
                              .beta2 = o->beta2,
                              .eps = o->eps,
                              .decay = o->decay };
    struct gpu_binding bind[] = { act(control), act(g), act(m), act(v), act(x) };
    gpu_dispatch_op(r, KERNEL_ADAMW, &p, bind, COUNT(bind), divide_up(p.n, 64));
}

static void publish(struct run *r, const struct weight *w, const struct lora *l,
                    const struct tensor *a, const struct tensor *b)
{
    const struct gpu_adapted *d = &((const struct gpu_weight *)w->mem)->adapted;
    uint32_t i = 0, wide = w->cols > w->rows ? w->cols : w->rows;
    while (i < d->n && d->which[i] != l) i++;
    if (i == d->n) {
        run_fail(r, BZ_ERR_ARGUMENT, "an adapter that is not on its linear");
        return;
    }
    struct lora_pack_params p = { .rank = l->a.rows,
                                  .cols = w->cols,
                                  .rows = w->rows,
                                  .n_mat = w->n_mat,
                                  .at = d->at[i],
                                  .all = d->rank,
                                  .stride = (w->cols + 7) / 8 * 8 };
    struct gpu_binding bind[] = { act(a), act(b), whole(d->a), whole(d->b) };
    gpu_dispatch_op(r, KERNEL_LORA_PACK, &p, bind, COUNT(bind),
                    divide_up((uint64_t)w->n_mat * p.rank * wide, 64));
}

const struct backward_ops gpu_backward = {
    .records = true,
    .row_step = 16,
    .zero = gpu_zero,
    .rms_norm = gpu_rms_norm_bwd,
    .rows = rows_bwd,
    .linear = gpu_linear_bwd,
    .head_norm = head_norm_bwd,
    .rope = gpu_rope_bwd,
    .attention = gpu_attention_bwd,
    .gelu_mul = gpu_gelu_mul_bwd,
    .experts = gpu_experts_bwd,
    .route = gpu_route_bwd,
    .head_loss = gpu_head_loss,
    .sum = sum,
    .clip = clip,
    .adamw = adamw,
    .publish = publish,
};
