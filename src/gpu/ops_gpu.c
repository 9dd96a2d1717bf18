#include "gpu/ops_gpu_impl.h"

#include <math.h>

#include "base/mem.h"

void gpu_dispatch_op(struct run *r, uint32_t kernel, const void *params,
                     const struct gpu_binding *b, uint32_t n, uint32_t n_groups)
{
    struct gpu_ops *g = ops_of(r);
    record_dispatch(&g->rec, kernel, NULL, 0, params, b, n, n_groups);
    if (g->rec.status) run_fail(r, g->rec.status, "not enough memory to record a step");
}

/* ---- memory ---- */

static bool gpu_alloc(void *ctx, struct tensor *t)
{
    struct gpu_ops *g = ctx;
    uint64_t n_bytes = (t->size * tensor_width(t) + 15) / 16 * 16;
    if (n_bytes > g->rec.limits.max_buffer || n_bytes > g->rec.limits.max_binding) return false;
    t->mem = (void *)(uintptr_t)gpu_buffer_new((uint32_t)n_bytes, GPU_STORAGE);
    return t->mem != NULL;
}

static void gpu_free(void *ctx, struct tensor *t)
{
    (void)ctx;
    gpu_buffer_free(gpu_of(t));
}

static void gpu_write(struct run *r, struct tensor *t, uint32_t row, const void *src, uint32_t n)
{
    (void)r;
    uint32_t row_bytes = t->cols * tensor_width(t);
    gpu_buffer_write(gpu_of(t), row * row_bytes, src, n * row_bytes);
}

static void gpu_read(struct run *r, const struct tensor *t, uint32_t row, void *dst, uint32_t n)
{
    (void)t;
    (void)row;
    (void)dst;
    (void)n;
    run_fail(r, BZ_ERR_UNSUPPORTED, "a GPU tensor is read by the host, after the step");
}

static enum bz_status gpu_load(void *ctx, struct weight *w, struct bz_err *err)
{
    struct gpu_ops *g = ctx;
    return upload_add(&g->upload, w, &g->rec.limits, err);
}

static void gpu_unload(void *ctx, struct weight *w)
{
    (void)ctx;
    gpu_weight_free(w->mem);
    w->mem = NULL;
}

static enum bz_status adapt(void *ctx, struct weight *w, struct bz_err *err)
{
    struct gpu_ops *g = ctx;
    return gpu_adapt(&((struct gpu_weight *)w->mem)->adapted, w, &g->rec.limits, err);
}

struct tensor gpu_scratch(struct run *r, int which, uint32_t rows, uint32_t cols)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_scratch *s = &g->scratch[which];
    struct tensor t = { .rows = rows, .cols = cols, .size = (uint64_t)rows * cols };
    uint64_t n_bytes = t.size * sizeof(float);
    if (n_bytes > s->bytes) {
        uint64_t size = s->bytes ? s->bytes : 1 << 20;
        while (size < n_bytes) size *= 2;
        if (size > g->rec.limits.max_binding || s->n == COUNT(s->buffers)) {
            run_fail(r, BZ_ERR_LIMIT, "a step needs more scratch than this device can bind");
            return t;
        }
        s->buffers[s->n++] = gpu_buffer_new((uint32_t)size, GPU_STORAGE);
        s->bytes = (uint32_t)size;
    }
    t.mem = (void *)(uintptr_t)s->buffers[s->n - 1];
    return t;
}

/* ---- elementwise ops ---- */

static void add(struct run *r, struct tensor *x, const struct tensor *b)
{
    struct add_params p = { .n = x->rows * x->cols };
    struct gpu_binding bind[] = { act(b), act(x) };
    gpu_dispatch_op(r, KERNEL_ADD, &p, bind, COUNT(bind), divide_up(p.n, 256));
}

static void scale(struct run *r, struct tensor *x, const struct weight *w)
{
    struct scale_params p = { .n = x->rows * x->cols };
    struct gpu_binding bind[] = { vector(ops_of(r), w), act(x) };
    gpu_dispatch_op(r, KERNEL_SCALE, &p, bind, COUNT(bind), divide_up(p.n, 256));
}

static void softcap(struct run *r, struct tensor *x, float cap)
{
    struct softcap_params p = { .n = x->rows * x->cols, .cap = cap };
    struct gpu_binding bind[] = { act(x) };
    gpu_dispatch_op(r, KERNEL_SOFTCAP, &p, bind, COUNT(bind), divide_up(p.n, 256));
}

static void copy_rows(struct run *r, struct tensor *y, const struct tensor *x, uint32_t first)
{
    struct copy_rows_params p = { .n = y->rows * y->cols, .first = first * x->cols };
    struct gpu_binding bind[] = { act(x), act(y) };
    gpu_dispatch_op(r, KERNEL_COPY_ROWS, &p, bind, COUNT(bind), divide_up(p.n, 256));
}

void gpu_gelu_mul(struct run *r, struct tensor *x, const struct tensor *b, uint32_t col)
{
    struct gelu_mul_params p = { .rows = x->rows, .cols = x->cols, .b_cols = b->cols, .col = col };
    struct gpu_binding bind[] = { act(b), act(x) };
    gpu_dispatch_op(r, KERNEL_GELU_MUL, &p, bind, COUNT(bind),
                    divide_up((uint64_t)x->rows * x->cols / 4, 256));
}

/* ---- norms and rotation ---- */

/* A kernel whose workgroup shares one sum: on a software device a small one, since each barrier costs it
 * some microseconds for every four lanes. */
static void dispatch_sum(struct run *r, uint32_t kernel, uint32_t wg_index, uint32_t usual,
                         const void *params, const struct gpu_binding *b, uint32_t n,
                         uint32_t n_groups)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_constant wg = { wg_index, (float)(g->narrow ? 16 : usual) };
    record_dispatch(&g->rec, kernel, &wg, 1, params, b, n, n_groups);
}

void gpu_rms_norm(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w,
                  float eps)
{
    struct gpu_ops *g = ops_of(r);
    struct rms_norm_params p = {
        .rows = x->rows, .cols = x->cols, .has_w = weight_exists(w), .eps = eps
    };
    struct gpu_binding bind[] = { act(x), vector(g, w), act(y) };
    dispatch_sum(r, TIERED(g, RMS_NORM), RMS_NORM_WG, 256, &p, bind, COUNT(bind), x->rows);
}

static void add_norm(struct run *r, struct tensor *x, const struct tensor *branch,
                     const struct weight *w, float eps)
{
    struct gpu_ops *g = ops_of(r);
    struct add_norm_params p = { .rows = x->rows, .cols = x->cols, .eps = eps };
    struct gpu_binding bind[] = { act(branch), vector(g, w), act(x) };
    dispatch_sum(r, TIERED(g, ADD_NORM), ADD_NORM_WG, 256, &p, bind, COUNT(bind), x->rows);
}

static void add_norm_norm(struct run *r, struct tensor *x, struct tensor *y,
                          const struct tensor *branch, const struct weight *w,
                          const struct weight *scale_by, const struct weight *next_w, float eps)
{
    struct gpu_ops *g = ops_of(r);
    struct add_norm_norm_params p = {
        .rows = x->rows, .cols = x->cols, .has_scale = weight_exists(scale_by), .eps = eps
    };
    struct gpu_binding bind[] = { act(branch),       vector(g, w), vector(g, scale_by),
                                  vector(g, next_w), act(x),       act(y) };
    dispatch_sum(r, TIERED(g, ADD_NORM_NORM), ADD_NORM_NORM_WG, 256, &p, bind, COUNT(bind),
                 x->rows);
}

/* The frequencies' divisors on the device; written with every recording, since they are few. */
static gpu_buffer divisors(struct gpu_ops *g, const struct rope *rope)
{
    if (!rope->div) return 0;
    if (rope->n_pair > g->n_div) {
        if (g->div) gpu_buffer_free(g->div);
        g->div = gpu_buffer_new(divide_up(rope->n_pair, 4) * 16, GPU_STORAGE);
        g->n_div = rope->n_pair;
    }
    gpu_buffer_write(g->div, 0, rope->div, rope->n_pair * 4);
    return g->div;
}

static void rope_table(struct run *r, struct tensor *table, const struct rope *rope, uint32_t pos)
{
    struct gpu_ops *g = ops_of(r);
    gpu_buffer div = divisors(g, rope);
    struct rope_table_params p = { .rows = table->rows,
                                   .n_pair = rope->n_pair,
                                   .pos_offset = pos - g->base_pos,
                                   .has_div = div != 0,
                                   .ratio = powf(rope->base, -2.0f / (float)rope->head_dim) };
    struct gpu_binding bind[] = { whole(div ? div : g->unused), act(table) };
    gpu_dispatch_op(r, KERNEL_ROPE_TABLE, &p, bind, COUNT(bind),
                    divide_up((uint64_t)table->rows * rope->n_pair, 64));
}

static void head_norm_rope(struct run *r, struct tensor *x, const struct weight *w,
                           const struct tensor *table, uint32_t n_head, float eps)
{
    struct gpu_ops *g = ops_of(r);
    struct head_norm_rope_params p = { .rows = x->rows,
                                       .n_head = n_head,
                                       .head_dim = x->cols / n_head,
                                       .n_pair = table ? table->cols / 2 : 0,
                                       .has_w = weight_exists(w),
                                       .eps = eps };
    struct gpu_binding bind[] = { table ? act(table) : whole(g->unused), vector(g, w), act(x) };
    dispatch_sum(r, TIERED(g, HEAD_NORM_ROPE), HEAD_NORM_ROPE_WG, 64, &p, bind, COUNT(bind),
                 x->rows * n_head);
}

static void ple_mix(struct run *r, struct tensor *ple, const struct tensor *proj,
                    const struct weight *w, float proj_scale, float eps)
{
    struct ple_mix_params p = { .rows = ple->rows,
                                .n_slice = ple->cols / w->cols,
                                .width = w->cols,
                                .proj_scale = proj_scale,
                                .eps = eps };
    struct gpu_binding bind[] = { act(proj), vector(ops_of(r), w), act(ple) };
    dispatch_sum(r, KERNEL_PLE_MIX, PLE_MIX_WG, 64, &p, bind, COUNT(bind), ple->rows * p.n_slice);
}

/* ---- matrix products ---- */

enum {
    MATMUL_TILE = 64,       /* rows of W, and of x, that a workgroup of matmul takes */
    MATMUL_FROM = 8,        /* rows of x from which a tile pays */
    MATMUL_FROM_FOURS = 64, /* the same where a workgroup is four lanes and barriers are dear */
};

static bool by_tiles(const struct gpu_ops *g, uint32_t n_tok)
{
    return n_tok >= (of_fours(g) ? MATMUL_FROM_FOURS : MATMUL_FROM);
}

static void embed(struct run *r, struct tensor *y, const struct weight *table,
                  const struct tensor *ids, float scale_by)
{
    const struct gpu_weight *g = table->mem;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct embed_params p = { .cols = table->cols,
                                  .rows = part->rows,
                                  .row0 = part->row0,
                                  .n_tok = ids->rows,
                                  .y_stride = y->cols,
                                  .scales = part->layout.scales,
                                  .high = part->layout.high,
                                  .d = part->layout.d,
                                  .scale = scale_by };
        struct gpu_binding bind[] = { whole(part->buffer), act(ids), act(y) };
        gpu_dispatch_op(r, (uint32_t)KERNEL_EMBED_F32 + g->shape, &p, bind, COUNT(bind),
                        divide_up((uint64_t)ids->rows * divide_up(table->cols, 8), 64));
    }
}

struct teams gpu_teams(const struct gpu_ops *g, enum gpu_shape shape, uint32_t rows, uint32_t cols)
{
    if (of_fours(g)) return (struct teams) { 4, 4 };
    uint32_t unit = shape <= GPU_BF16 ? 8 : shape == GPU_Q8_0 || shape == GPU_Q8_A ? 16 : 32;
    uint32_t units = divide_up(cols, unit), lanes = 1;
    uint32_t most = rows > 2048 ? 32 : units >= 192 ? 256 : 64;
    while (lanes < units && lanes < most) lanes *= 2;
    return (struct teams) { lanes < 64 ? 64 : lanes, lanes };
}

/* Rows of a matrix in one buffer. */
struct block {
    gpu_buffer buffer;
    enum gpu_shape shape;
    struct gpu_layout layout;
    uint32_t cols, row0, rows;
};

/* What a product's gelu is multiplied by: columns from `col` on. */
struct gelu_by {
    const struct tensor *b;
    uint32_t col;
};

/* y = scale_by * (W x + s B z) for the rows of one buffer; with `by`, its gelu times that. */
static void block_product(struct run *r, const struct tensor *y, const struct tensor *x,
                          const struct block *w, const struct gpu_lora *lo, float scale_by,
                          const struct gelu_by *by)
{
    struct gpu_ops *g = ops_of(r);
    struct linear_params p = { .cols = w->cols,
                               .rows = w->rows,
                               .row0 = w->row0,
                               .n_tok = x->rows,
                               .x_stride = x->cols,
                               .y_stride = y->cols,
                               .scales = w->layout.scales,
                               .high = w->layout.high,
                               .d = w->layout.d,
                               .rank = lo->rank,
                               .b_rows = lo->b_rows,
                               .b_scales = lo->b_scales,
                               .by_stride = by ? by->b->cols : 0,
                               .by_col = by ? by->col : 0,
                               .scale = scale_by };
    _Static_assert(sizeof(struct linear_params) == sizeof(struct matmul_params), "one piece");
    struct gpu_binding bind[] = {
        act(x), whole(w->buffer), lo->z, lo->b, by ? act(by->b) : whole(g->unused), act(y)
    };
    if (by_tiles(g, x->rows)) {
        struct gpu_constant set[2];
        uint32_t n = 0;
        if (by) set[n++] = (struct gpu_constant) { MATMUL_GELU, 1 };
        if (lo->rank) set[n++] = (struct gpu_constant) { MATMUL_LORA, 1 };
        record_dispatch(&g->rec, (uint32_t)KERNEL_MATMUL_F32 + w->shape, set, n, &p, bind,
                        COUNT(bind),
                        divide_up(w->rows, MATMUL_TILE) * divide_up(x->rows, MATMUL_TILE));
        return;
    }
    struct teams t = gpu_teams(g, w->shape, w->rows, w->cols);
    struct gpu_constant constants[] = { { LINEAR_WG, (float)t.wg },
                                        { LINEAR_LANES, (float)t.lanes },
                                        { LINEAR_GELU, 1 } };
    record_dispatch(&g->rec, TIERED(g, LINEAR_F32) + w->shape, constants, by ? 3 : 2, &p, bind,
                    COUNT(bind), divide_up(w->rows, team_rows(t)) * x->rows);
}

struct gpu_lora gpu_lora_of(struct run *r, const struct weight *w, const struct tensor *z)
{
    const struct gpu_adapted *d = &((const struct gpu_weight *)w->mem)->adapted;
    struct gpu_binding none = whole(ops_of(r)->unused);
    if (!d->rank) return (struct gpu_lora) { .z = none, .b = none };
    return (struct gpu_lora) { .rank = d->rank,
                               .b_rows = w->rows,
                               .b_scales = gpu_adapted_scales(d, w),
                               .z = act(z),
                               .b = whole(d->b) };
}

struct tensor gpu_lora_room(struct run *r, const struct weight *w, uint32_t rows)
{
    uint32_t rank = ((const struct gpu_weight *)w->mem)->adapted.rank;
    if (!rank) return (struct tensor) { 0 };
    return w->z ? *w->z : gpu_scratch(r, SCRATCH_THIRD, rows, rank);
}

static void adapted_matrix(struct run *r, const struct tensor *y, const struct tensor *x,
                           const struct weight *w, float scale_by, const struct gelu_by *by)
{
    const struct gpu_weight *g = w->mem;
    struct tensor z = gpu_lora_room(r, w, x->rows);
    struct gpu_lora lora = gpu_lora_of(r, w, &z),
                    none = { .z = whole(ops_of(r)->unused), .b = whole(ops_of(r)->unused) };
    if (lora.rank) {
        struct block a = {
            .buffer = g->adapted.a, .shape = GPU_F32, .cols = w->cols, .rows = lora.rank
        };
        block_product(r, &z, x, &a, &none, 1, NULL);
    }
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct block b = { part->buffer, g->shape, part->layout, w->cols, part->row0, part->rows };
        block_product(r, y, x, &b, &lora, scale_by, by);
    }
}

void gpu_adapted_matrix(struct run *r, const struct tensor *y, const struct tensor *x,
                        const struct weight *w, float scale_by)
{
    adapted_matrix(r, y, x, w, scale_by, NULL);
}

static void linear_gelu_mul(struct run *r, struct tensor *y, const struct tensor *x,
                            const struct weight *w, const struct tensor *b, uint32_t col)
{
    struct gelu_by by = { b, col };
    adapted_matrix(r, y, x, w, 1, &by);
}

static void linear(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w)
{
    gpu_adapted_matrix(r, y, x, w, 1);
}

/* Both products in one dispatch where one kernel can read both matrices. */
static void gate_up(struct run *r, struct tensor *y, struct tensor *up, const struct tensor *x,
                    const struct weight *gate_w, const struct weight *up_w)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_weight *a = gate_w->mem, *b = up_w->mem;
    bool alike = a->shape == b->shape && a->n_parts == 1 && b->n_parts == 1;
    if (!alike || a->adapted.n || b->adapted.n || by_tiles(g, x->rows)) {
        linear(r, up, x, up_w);
        linear_gelu_mul(r, y, x, gate_w, up, 0);
        return;
    }
    const struct gpu_layout *l = &a->parts[0].layout;
    struct gate_up_params p = { .cols = gate_w->cols,
                                .rows = gate_w->rows,
                                .n_tok = x->rows,
                                .x_stride = x->cols,
                                .y_stride = y->cols,
                                .scales = l->scales,
                                .high = l->high,
                                .d = l->d };
    struct gpu_binding bind[] = { act(x), whole(a->parts[0].buffer), whole(b->parts[0].buffer),
                                  act(y) };
    struct teams t = gpu_teams(g, a->shape, p.rows, p.cols);
    struct gpu_constant constants[] = { { GATE_UP_WG, (float)t.wg },
                                        { GATE_UP_LANES, (float)t.lanes } };
    record_dispatch(&g->rec, TIERED(g, GATE_UP_F32) + a->shape, constants, COUNT(constants), &p,
                    bind, COUNT(bind), divide_up(p.rows, team_rows(t)) * x->rows);
}

/* ---- keys, values, attention ---- */

static void kv_write(struct run *r, struct kv *kv, const struct tensor *k, const struct tensor *v,
                     uint32_t pos)
{
    struct kv_write_params p = { .rows = k->rows,
                                 .cols = k->cols,
                                 .n_slots = kv->k.rows,
                                 .pos_offset = pos - ops_of(r)->base_pos };
    struct gpu_binding bind[] = { act(k), act(v), act(&kv->k), act(&kv->v) };
    struct gpu_constant half = { KV_WRITE_KV_F16, kv->k.half };
    record_dispatch(&ops_of(r)->rec, KERNEL_KV_WRITE, &half, 1, &p, bind, COUNT(bind),
                    divide_up((uint64_t)k->rows * k->cols / (kv->k.half ? 8 : 4), 64));
}

static void heads_write(struct run *r, struct kv *kv, const struct heads *h, uint32_t pos,
                        float eps)
{
    struct gpu_ops *g = ops_of(r);
    struct heads_write_params p = { .rows = h->k->rows,
                                    .n_head = h->q ? h->n_head : 0,
                                    .n_kv_head = kv->n_kv_head,
                                    .head_dim = kv->head_dim,
                                    .n_pair = h->table->cols / 2,
                                    .n_slots = kv->k.rows,
                                    .pos_offset = pos - g->base_pos,
                                    .v_from_k = h->v_from_k,
                                    .eps = eps };
    /* Without queries something is bound that nobody else has. */
    struct tensor none = h->q ? *h->q : gpu_scratch(r, SCRATCH_FIRST, 1, 4);
    struct gpu_binding bind[] = { act(h->table),
                                  vector(g, h->q ? h->q_norm : h->k_norm),
                                  vector(g, h->k_norm),
                                  act(&none),
                                  act(h->k),
                                  act(h->v),
                                  act(&kv->k),
                                  act(&kv->v) };
    struct gpu_constant constants[] = { { HEADS_WRITE_KV_F16, kv->k.half },
                                        { HEADS_WRITE_WG, g->narrow ? 16 : 64 } };
    record_dispatch(&g->rec, TIERED(g, HEADS_WRITE), constants, COUNT(constants), &p, bind,
                    COUNT(bind), p.rows * (p.n_head + p.n_kv_head));
}

enum {
    SPLIT_ROWS = 4,  /* up to this many rows the history is split over workgroups */
    SPLIT_KEYS = 64, /* positions that are worth a workgroup */
    SPLIT_MOST = 32, /* shares of the history at most */
    SPLIT_HEADS = 8, /* query heads that one workgroup of attention_split takes at most */
};

/* How many shares: enough for the longest history that this program will meet. More would be as right. */
static uint32_t count_splits(const struct gpu_ops *g, uint32_t window)
{
    uint32_t seen = window && window < g->horizon ? window : g->horizon;
    uint32_t n = divide_up(seen, SPLIT_KEYS);
    return n < 1 ? 1 : n > SPLIT_MOST ? SPLIT_MOST : n;
}

static void attention_over_parts(struct run *r, struct tensor *y, const struct tensor *q,
                                 const struct kv *kv, uint32_t n_head, uint32_t window,
                                 uint32_t pos_offset)
{
    uint32_t group = n_head / kv->n_kv_head, heads = 1;
    while (heads < group && heads < SPLIT_HEADS) heads *= 2;
    uint32_t n_split = count_splits(ops_of(r), window);
    struct attention_split_params p = { .rows = q->rows,
                                        .n_head = n_head,
                                        .n_kv_head = kv->n_kv_head,
                                        .head_dim = kv->head_dim,
                                        .n_slots = kv->k.rows,
                                        .window = window,
                                        .pos_offset = pos_offset,
                                        .n_split = n_split };
    struct tensor partial =
        gpu_scratch(r, SCRATCH_FIRST, q->rows * n_head * n_split, kv->head_dim + 4);
    struct gpu_binding bind[] = { act(q), act(&kv->k), act(&kv->v), act(&partial) };
    struct gpu_constant constants[] = { { ATTENTION_SPLIT_HEADS, (float)heads },
                                        { ATTENTION_SPLIT_KV_F16, kv->k.half } };
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_SPLIT, constants, COUNT(constants), &p, bind,
                    COUNT(bind), q->rows * kv->n_kv_head * divide_up(group, heads) * n_split);
    struct attention_merge_params m = { .n_vec = q->rows * n_head,
                                        .head_dim = kv->head_dim,
                                        .n_split = n_split };
    struct gpu_binding merge[] = { act(&partial), act(y) };
    gpu_dispatch_op(r, KERNEL_ATTENTION_MERGE, &m, merge, COUNT(merge), q->rows * n_head);
}

/* On a software device: a workgroup is one subgroup of four lanes, so nobody waits. */
static void attention_of_fours(struct run *r, struct tensor *y, const struct tensor *q,
                               const struct kv *kv, uint32_t n_head, uint32_t window,
                               uint32_t pos_offset)
{
    uint32_t group = n_head / kv->n_kv_head;
    struct attention_params p = { .rows = q->rows,
                                  .n_head = n_head,
                                  .n_kv_head = kv->n_kv_head,
                                  .head_dim = kv->head_dim,
                                  .n_slots = kv->k.rows,
                                  .window = window,
                                  .pos_offset = pos_offset };
    struct gpu_binding bind[] = { act(q), act(&kv->k), act(&kv->v), act(y) };
    struct gpu_constant half = { ATTENTION_KV_F16, kv->k.half };
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_SUBGROUP, &half, 1, &p, bind, COUNT(bind),
                    divide_up((uint64_t)q->rows * group, 4) * kv->n_kv_head);
}

static void attention(struct run *r, struct tensor *y, const struct tensor *q, const struct kv *kv,
                      uint32_t n_head, uint32_t window, uint32_t pos)
{
    uint32_t pos_offset = pos - ops_of(r)->base_pos;
    if (of_fours(ops_of(r))) {
        attention_of_fours(r, y, q, kv, n_head, window, pos_offset);
        return;
    }
    if (q->rows <= SPLIT_ROWS) {
        attention_over_parts(r, y, q, kv, n_head, window, pos_offset);
        return;
    }
    struct attention_tile_params p = { .rows = q->rows,
                                       .n_head = n_head,
                                       .n_kv_head = kv->n_kv_head,
                                       .head_dim = kv->head_dim,
                                       .n_slots = kv->k.rows,
                                       .window = window,
                                       .pos_offset = pos_offset };
    struct gpu_binding bind[] = { act(q), act(&kv->k), act(&kv->v), act(y) };
    struct gpu_constant constants[] = {
        { ATTENTION_TILE_COLS, (float)divide_up(kv->head_dim, 128) },
        { ATTENTION_TILE_KV_F16, kv->k.half },
    };
    uint32_t group = n_head / kv->n_kv_head;
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_TILE, constants, COUNT(constants), &p, bind,
                    COUNT(bind), divide_up((uint64_t)q->rows * group, 32) * kv->n_kv_head);
}

/* ---- open and close ---- */

static void gpu_close(struct backend *be)
{
    struct gpu_ops *g = be->ctx;
    for (int k = 0; k < N_GPU_SCRATCH; k++)
        for (uint32_t i = 0; i < g->scratch[k].n; i++) gpu_buffer_free(g->scratch[k].buffers[i]);
    if (g->div) gpu_buffer_free(g->div);
    gpu_buffer_free(g->unused);
    upload_free(&g->upload);
    recorder_close(&g->rec);
    mem_free(g);
    *be = (struct backend) { 0 };
}

static const struct backend gpu_backend = {
    .name = "gpu",
    .close = gpu_close,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .write = gpu_write,
    .read = gpu_read,
    .load = gpu_load,
    .unload = gpu_unload,
    .adapt = adapt,
    .embed = embed,
    .rms_norm = gpu_rms_norm,
    .linear = linear,
    .linear_gelu_mul = linear_gelu_mul,
    .gate_up = gate_up,
    .rope_table = rope_table,
    .head_norm_rope = head_norm_rope,
    .kv_write = kv_write,
    .heads_write = heads_write,
    .attention = attention,
    .add_norm = add_norm,
    .add_norm_norm = add_norm_norm,
    .gelu_mul = gpu_gelu_mul,
    .ple_mix = ple_mix,
    .router = gpu_router,
    .experts = gpu_experts,
    .add = add,
    .scale = scale,
    .softcap = softcap,
    .copy_rows = copy_rows,
};

enum bz_status gpu_ops_open(struct backend *out, enum gpu_tier tier, struct bz_err *err)
{
    struct gpu_ops *g = mem_alloc(1, sizeof *g);
    if (!g) return fail_memory(err, sizeof *g);
    enum bz_status st = recorder_open(&g->rec, err);
    if (st) {
        mem_free(g);
        return st;
    }
    g->tier = g->rec.limits.subgroup_max ? tier : TIER_PLAIN;
    g->narrow = g->rec.limits.subgroup_min == 4 && g->rec.limits.subgroup_max == 4;
    g->unused = gpu_buffer_new(16, GPU_STORAGE);
    *out = gpu_backend;
    out->ctx = g;
    return BZ_OK;
}

void gpu_ops_begin(const struct backend *be, uint32_t pos, uint32_t horizon)
{
    struct gpu_ops *g = be->ctx;
    g->base_pos = pos;
    g->horizon = horizon;
    record_begin(&g->rec);
}

struct recorded gpu_ops_end(const struct backend *be)
{
    struct gpu_ops *g = be->ctx;
    return record_end(&g->rec);
}

void gpu_write_step(const struct backend *be, uint32_t pos, uint32_t rows, uint64_t seed)
{
    struct gpu_ops *g = be->ctx;
    /* The next draw has the number of the position that its token takes, as in bz_session_sample. */
    struct gpu_step step = { .pos = pos,
                             .rows = rows,
                             .draw = pos + rows,
                             .seed_lo = (uint32_t)seed,
                             .seed_hi = (uint32_t)(seed >> 32) };
    gpu_buffer_write(g->rec.step, 0, &step, sizeof step);
}
