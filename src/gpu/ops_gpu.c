#include "gpu/ops_gpu_bwd.h"
#include "gpu/ops_gpu_impl.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tape/tape.h"

void gpu_dispatch_op(struct run *r, uint32_t kernel, const void *params,
                     const struct gpu_binding *b, uint32_t n, uint32_t n_groups)
{
    struct gpu_ops *g = ops_of(r);
    record_dispatch(&g->rec, kernel, NULL, 0, params, b, n, n_groups);
    if (g->rec.plan.status) run_fail(r, g->rec.plan.status, "not enough memory to record a step");
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

static void gpu_view(struct tensor *x, const struct tensor *of, uint32_t first)
{
    x->mem = of->mem;
    x->first = first;
}

static void gpu_write(struct run *r, struct tensor *t, uint32_t row, const void *src, uint32_t n)
{
    (void)r;
    uint32_t row_bytes = t->cols * tensor_width(t);
    gpu_buffer_write(gpu_of(t), t->first * (uint32_t)sizeof(float) + row * row_bytes, src,
                     n * row_bytes);
}

static void gpu_read(struct run *r, const struct tensor *t, uint32_t row, void *dst, uint32_t n)
{
    (void)t;
    (void)row;
    (void)dst;
    (void)n;
    run_fail(r, BZ_ERR_UNSUPPORTED, "a GPU tensor is read by the host, after the step");
}

static void gpu_expect_vector(void *ctx, uint32_t cols)
{
    upload_expect_vector(&((struct gpu_ops *)ctx)->upload, cols);
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
    struct gpu_plan *p = &g->rec.plan;
    struct tensor t = { .rows = rows, .cols = cols, .size = (uint64_t)rows * cols };
    uint64_t n_bytes = t.size * sizeof(float);
    if (n_bytes > g->rec.limits.max_binding) {
        run_fail(r, BZ_ERR_LIMIT, "a step needs more scratch than this device can bind");
        p->status = BZ_ERR_LIMIT;
    }
    if (n_bytes > p->scratch[which]) p->scratch[which] = n_bytes;
    t.mem = (void *)(uintptr_t)(PLAN_SCRATCH + (uint32_t)which);
    return t;
}

bool gpu_ops_reserve(const struct backend *be, const uint64_t *bytes)
{
    struct gpu_ops *g = be->ctx;
    for (int k = 0; k < N_GPU_SCRATCH; k++) {
        struct gpu_scratch *s = &g->scratch[k];
        if (bytes[k] <= s->bytes) continue;
        /* Whoever asks for a little more each time is given more. */
        uint64_t size = s->bytes + s->bytes / 4, most = g->rec.limits.max_binding;
        if (size < bytes[k] || size > most) size = bytes[k];
        size = (size + 255) / 256 * 256 > most ? most : (size + 255) / 256 * 256;
        if (s->n == COUNT(s->buffers)) return false;
        s->buffers[s->n++] = gpu_buffer_new((uint32_t)size, GPU_STORAGE);
        s->bytes = (uint32_t)size;
    }
    return true;
}

/* ---- elementwise ops ---- */

static void add(struct run *r, struct tensor *x, const struct tensor *b)
{
    struct add_params p = { .n = x->rows * x->cols };
    struct gpu_binding bind[] = { act(b), act(x) };
    gpu_dispatch_op(r, KERNEL_ADD, &p, bind, COUNT(bind), divide_up(p.n, 256));
}

/* As HOW of kernels/norm/scale.wgsl says. */
enum { BY_WEIGHT, BY_CONSTANT, CAPPED };

static void scale_all(struct run *r, struct tensor *x, int how, const struct weight *w, float c)
{
    struct gpu_ops *g = ops_of(r);
    struct scale_params p = { .n = x->rows * x->cols, .c = c };
    struct gpu_binding bind[] = { vector(g, w), act(x) };
    struct gpu_constant constant = { SCALE_HOW, (float)how };
    record_dispatch(&g->rec, KERNEL_SCALE, &constant, 1, &p, bind, COUNT(bind),
                    divide_up(p.n, 256));
}

static void scale(struct run *r, struct tensor *x, const struct weight *w)
{
    scale_all(r, x, BY_WEIGHT, w, 0);
}

static void times(struct run *r, struct tensor *x, float c)
{
    scale_all(r, x, BY_CONSTANT, NULL, c);
}

static void softcap(struct run *r, struct tensor *x, float cap)
{
    scale_all(r, x, CAPPED, NULL, cap);
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

void gpu_dispatch_sum(struct run *r, uint32_t kernel, uint32_t wg_index, uint32_t usual,
                      const void *params, const struct gpu_binding *b, uint32_t n,
                      uint32_t n_groups)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_constant wg = { wg_index, gpu_sum_wg(g, usual) };
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
    gpu_dispatch_sum(r, TIERED(g, RMS_NORM), RMS_NORM_WG, 256, &p, bind, COUNT(bind), x->rows);
}

void gpu_add_norm(struct run *r, struct tensor *x, const struct tensor *branch,
                  const struct weight *w, float eps)
{
    struct gpu_ops *g = ops_of(r);
    struct add_norm_params p = { .rows = x->rows, .cols = x->cols, .eps = eps };
    struct gpu_binding bind[] = { act(branch), vector(g, w), act(x) };
    gpu_dispatch_sum(r, TIERED(g, ADD_NORM), ADD_NORM_WG, 256, &p, bind, COUNT(bind), x->rows);
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

/* w NULL: no norm, the rotation alone. way: 1, or -1 for the rotation back. */
static void norm_and_rope(struct run *r, struct tensor *x, const struct weight *w,
                          const struct tensor *table, uint32_t n_head, float way, float eps)
{
    struct gpu_ops *g = ops_of(r);
    struct head_norm_rope_params p = { .rows = x->rows,
                                       .n_head = n_head,
                                       .head_dim = x->cols / n_head,
                                       .n_pair = table ? table->cols / 2 : 0,
                                       .has_w = w && weight_exists(w),
                                       .has_norm = w != NULL,
                                       .way = way,
                                       .eps = eps };
    struct gpu_binding bind[] = { table ? act(table) : whole(g->unused), vector(g, w), act(x) };
    gpu_dispatch_sum(r, TIERED(g, HEAD_NORM_ROPE), HEAD_NORM_ROPE_WG, 64, &p, bind, COUNT(bind),
                     x->rows * n_head);
}

void gpu_head_norm_rope(struct run *r, struct tensor *x, const struct weight *w,
                        const struct tensor *table, uint32_t n_head, float eps)
{
    norm_and_rope(r, x, w, table, n_head, 1, eps);
}

static void head_norm(struct run *r, struct tensor *x, const struct weight *w, uint32_t n_head,
                      float eps)
{
    norm_and_rope(r, x, w, NULL, n_head, 1, eps);
}

static void rope(struct run *r, struct tensor *x, const struct tensor *table, uint32_t n_head)
{
    norm_and_rope(r, x, NULL, table, n_head, 1, 0);
}

void gpu_rope_bwd(struct run *r, struct tensor *d, const struct tensor *table, uint32_t n_head)
{
    norm_and_rope(r, d, NULL, table, n_head, -1, 0);
}

static void linear_z(struct run *r, struct tensor *y, struct tensor *z, const struct tensor *x,
                     const struct weight *w)
{
    gpu_linears_z(r, &y, &z, x, &w, 1);
}

struct gpu_vectors gpu_vectors_of(const struct gpu_ops *g, const struct weight *a,
                                  const struct weight *b, const struct weight *c)
{
    const struct weight *const some[GPU_VECTORS] = { a, b, c };
    struct gpu_vectors v = { .all = whole(g->unused), .one = true };
    for (uint32_t i = 0; i < GPU_VECTORS; i++) {
        if (!some[i] || !weight_exists(some[i])) continue;
        const struct gpu_part *part = ((const struct gpu_weight *)some[i]->mem)->parts;
        v.one = v.one && (v.all.buffer == g->unused || v.all.buffer == part->buffer);
        v.all = whole(part->buffer);
        v.at[i] = part->first / 16;
    }
    return v;
}

/* Which steps of MODEL.md the next dispatches are part of. */
static void label(void *ctx, const struct group *group)
{
    struct gpu_ops *g = ctx;
    struct plan_steps *of = g->rec.plan.label.of;
    of[0] = of[1] = (struct plan_steps) { group->nodes[0]->layer, 0 };
    for (uint32_t i = 0; i < group->n_nodes; i++) {
        const struct node *n = group->nodes[i];
        struct plan_steps *to = &of[n->layer != of[0].layer];
        to->layer = n->layer;
        to->steps |= 1u << n->step;
    }
}

/* ---- open and close ---- */

static void gpu_close(struct backend *be)
{
    struct gpu_ops *g = be->ctx;
    for (int k = 0; k < N_GPU_SCRATCH; k++)
        for (uint32_t i = 0; i < g->scratch[k].n; i++) gpu_buffer_free(g->scratch[k].buffers[i]);
    if (g->div) gpu_buffer_free(g->div);
    gpu_buffer_free(g->unused);
    for (uint32_t i = 0; i < COUNT(g->unread); i++) gpu_buffer_free(g->unread[i]);
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
    .view = gpu_view,
    .write = gpu_write,
    .read = gpu_read,
    .expect_vector = gpu_expect_vector,
    .load = gpu_load,
    .unload = gpu_unload,
    .adapt = adapt,
    .fuse = gpu_fuse,
    .label = label,
    .embed = gpu_embed,
    .rms_norm = gpu_rms_norm,
    .linear = gpu_linear,
    .linear_z = linear_z,
    .rope_table = rope_table,
    .head_norm = head_norm,
    .rope = rope,
    .kv_write = gpu_kv_write,
    .attention = gpu_attention,
    .gelu_mul = gpu_gelu_mul,
    .experts = gpu_experts,
    .add = add,
    .scale = scale,
    .times = times,
    .softcap = softcap,
    .route = gpu_route,
    .copy_rows = copy_rows,
    .bwd = &gpu_backward,
    .optional = &gpu_optional,
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
    g->tier = tier;
    if (g->tier == TIER_MATRIX && !g->rec.limits.has_matrix) g->tier = TIER_SUBGROUP;
    if (!g->rec.limits.subgroup_max) g->tier = TIER_PLAIN;
    struct gpu_adapter adapter;
    gpu_get_adapter(&adapter);
    const struct gpu_profile *profile = gpu_profile_of(&adapter, &g->rec.limits);
    g->profile = profile->name;
    g->tuning = profile->tuning;
    g->rec.processors = g->tuning->processors;
    g->int8 = profile->int8 && g->rec.limits.has_packed_dot;
    g->parts_room = g->tuning->parts_bytes;
    g->unused = gpu_buffer_new(16, GPU_STORAGE);
    for (uint32_t i = 0; i < COUNT(g->unread); i++) g->unread[i] = gpu_buffer_new(16, GPU_STORAGE);
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

struct recorded gpu_ops_record(const struct backend *be)
{
    struct gpu_ops *g = be->ctx;
    gpu_buffer scratch[N_GPU_SCRATCH];
    if (!gpu_ops_reserve(be, g->rec.plan.scratch)) g->rec.plan.status = BZ_ERR_LIMIT;
    for (int k = 0; k < N_GPU_SCRATCH; k++) {
        const struct gpu_scratch *s = &g->scratch[k];
        scratch[k] = s->n ? s->buffers[s->n - 1] : 0;
    }
    return record_program(&g->rec, scratch);
}

void gpu_write_step(const struct backend *be, uint32_t pos, uint32_t rows, uint64_t seed)
{
    struct gpu_ops *g = be->ctx;
    /* The next draw has the number of the position that its token takes, as in bz_session_sample.
     */
    struct gpu_step step = { .pos = pos,
                             .rows = rows,
                             .draw = pos + rows,
                             .seed_lo = (uint32_t)seed,
                             .seed_hi = (uint32_t)(seed >> 32) };
    gpu_buffer_write(g->rec.step, 0, &step, sizeof step);
}
