#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/fuse.h"
#include "model/lora.h"
#include "step.h"

/* ---- an adapter on every linear ---- */

struct rank_adapter {
    struct adapter *adapter;
    uint32_t rank, cap;
    bool failed;
};

static void add_target(void *ctx, const char *name, struct weight *w)
{
    struct rank_adapter *r = ctx;
    struct adapter *a = r->adapter;
    struct adapter_target t = { .name = arena_copy_str(&a->arena, name, strlen(name)),
                                .rank = r->rank,
                                .n_in = w->cols,
                                .n_out = w->rows,
                                .n_expert = w->n_mat,
                                .scale = 1 };
    if (a->n_targets == r->cap) {
        uint32_t cap = r->cap ? 2 * r->cap : 64;
        struct adapter_target *grown = mem_grow(a->targets, cap, sizeof *grown);
        if (grown) a->targets = grown, r->cap = cap;
    }
    t.a = mem_alloc((size_t)w->n_mat * r->rank, w->cols * sizeof *t.a);
    t.b = mem_alloc((size_t)w->n_mat * r->rank, w->rows * sizeof *t.b);
    if (t.name && t.a && t.b && a->n_targets < r->cap) {
        a->targets[a->n_targets++] = t;
        return;
    }
    mem_free(t.a);
    mem_free(t.b);
    r->failed = true;
}

static enum bz_status add_rank(bz_engine *e, uint32_t rank, struct bz_err *err)
{
    struct adapter a = { .arch = config_arch(&e->model.config) };
    struct rank_adapter r = { .adapter = &a, .rank = rank };
    int id;
    if (rank > LORA_MAX_RANK)
        return fail(err, BZ_ERR_ARGUMENT, "an adapter of rank %u; the most is %d", rank,
                    LORA_MAX_RANK);
    model_each_adaptable(&e->model, &r, add_target);
    if (!r.failed) return engine_add_adapter(e, &a, 1, &id, err);
    adapter_close(&a);
    return fail_memory(err, (uint64_t)rank * e->model.config.n_embd * sizeof(float));
}

/* ---- the matrices by their buffers ---- */

struct named {
    gpu_buffer buffer;
    const char *name;
    const struct weight *w;
    bool read; /* by a dispatch that was looked at already */
};

struct names {
    struct named *list;
    uint32_t n, cap;
    struct arena *arena;
    bool failed;
};

static void add_names(void *ctx, const char *name, struct weight *w)
{
    struct names *all = ctx;
    const struct gpu_weight *g = w->mem;
    if (w->rows == 1 || !g) return;
    size_t n = strlen(name), tail = strlen(".weight");
    if (n > tail && strcmp(name + n - tail, ".weight") == 0) n -= tail;
    const char *copy = arena_copy_str(all->arena, name, n);
    for (uint32_t i = 0; i < g->n_parts; i++) {
        if (all->n == all->cap) {
            uint32_t cap = all->cap ? 2 * all->cap : 256;
            struct named *grown = mem_grow(all->list, cap, sizeof *grown);
            if (grown) all->list = grown, all->cap = cap;
        }
        all->failed = all->failed || !copy || all->n == all->cap;
        if (!all->failed)
            all->list[all->n++] = (struct named) { g->parts[i].buffer, copy, w, false };
    }
}

static struct named *find_name(const struct names *all, gpu_buffer b)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (all->list[i].buffer == b) return &all->list[i];
    return NULL;
}

/* ---- lines ---- */

/* Bytes that a dispatch reads of a matrix: `rows` rows of a table, the experts that `rows` rows use
 * at most, or all. Each matrix counts once, for its product: a dispatch that only prefetches a
 * matrix comes before the product, so lines are looked at from the last to the first. */
static uint64_t bytes_read(const struct plan *p, struct named *m, const char *kernel, uint32_t rows)
{
    uint64_t n = null_host_buffer_bytes(m->buffer);
    uint64_t used = (uint64_t)rows * p->engine->model.config.n_expert_used;
    if (strncmp(kernel, "embed", strlen("embed")) == 0) return n * rows / m->w->rows;
    if (m->read) return 0;
    m->read = true;
    return m->w->n_mat > used && m->w->n_mat > 1 ? n * used / m->w->n_mat : n;
}

static enum bz_status put_line(struct plan *p, struct plan_line *line, const struct names *names,
                               uint32_t rows, struct bz_err *err)
{
    const struct null_dispatch *d = line->dispatch;
    const struct kernel_family *family = kernel_family(d->kernel);
    struct wgsl text;
    struct buf constants = { 0 }, weights = { 0 };
    enum bz_status st = kernel_expand(&text, d->kernel, err);
    if (st == BZ_OK) {
        line->kernel = arena_copy_str(&p->arena, text.name.data, text.name.n);
        line->access = arena_copy_str(&p->arena, text.bindings, strlen(text.bindings));
    }
    wgsl_free(&text);
    if (st) return st;
    for (uint32_t i = 0; i < d->n_constants; i++)
        buf_printf(&constants, "%s%s=%g", i ? " " : "", family->overrides[d->constants[i].index],
                   (double)d->constants[i].value);
    for (uint32_t i = 0; i < d->n_bindings; i++) {
        struct named *m = find_name(names, d->bindings[i].buffer);
        if (!m || !line->kernel) continue;
        buf_printf(&weights, "%s%s", weights.n ? " " : "", m->name);
        line->bytes += bytes_read(p, m, line->kernel, rows);
    }
    line->constants = arena_copy_str(&p->arena, constants.data ? constants.data : "", constants.n);
    line->weights = arena_copy_str(&p->arena, weights.data ? weights.data : "", weights.n);
    bool ok = line->kernel && line->access && line->constants && line->weights &&
              !constants.failed && !weights.failed;
    buf_free(&constants);
    buf_free(&weights);
    p->bytes += line->bytes;
    return ok ? BZ_OK : fail_memory(err, sizeof *line);
}

/* Record the recorder's plan: lines with their dispatches and labels follow the others. */
static struct recorded add_lines(struct plan *p)
{
    const struct gpu_plan *plan = &((struct gpu_ops *)p->engine->backend.ctx)->rec.plan;
    struct plan_line *lines = arena_alloc(&p->arena, p->n + plan->n, sizeof *lines);
    struct recorded recorded = { 0 };
    uint64_t scratch = 0;
    uint32_t n;
    for (int k = 0; k < PLAN_SCRATCHES; k++) scratch += plan->scratch[k];
    if (scratch > p->scratch_bytes) p->scratch_bytes = scratch;
    if (lines) recorded = gpu_ops_record(&p->engine->backend);
    if (!recorded.program) return recorded;
    const struct null_dispatch *d = null_host_program(recorded.program, &n);
    if (p->n) memcpy(lines, p->lines, p->n * sizeof *lines);
    for (uint32_t i = 0; i < n; i++)
        lines[p->n++] = (struct plan_line) { .dispatch = &d[i], .label = plan->list[i].label };
    p->lines = lines;
    return recorded;
}

/* Put all lines into words. */
static enum bz_status put_lines(struct plan *p, uint32_t rows, struct bz_err *err)
{
    struct names names = { .arena = &p->arena };
    model_each_weight(&p->engine->model, &names, add_names);
    enum bz_status st = names.failed ? fail_memory(err, 1 << 20) : BZ_OK;
    for (uint32_t i = p->n; st == BZ_OK && i-- > 0;)
        st = put_line(p, &p->lines[i], &names, rows, err);
    mem_free(names.list);
    return st;
}

/* A step of a text, and the draw after it. */
static bool record_text(struct plan *p, struct run *r, struct recorded both[2], uint32_t rows,
                        uint32_t horizon, const struct gpu_draw *draw)
{
    step_plan(r, p->session, rows, 1, horizon);
    both[0] = add_lines(p);
    step_plan_draw(r, p->session, draw, false, horizon);
    both[1] = add_lines(p);
    return both[0].program && both[1].program;
}

/* A pass of a diffusion model. */
static bool record_pass(struct plan *p, struct run *r, struct recorded *made, uint32_t rows,
                        uint32_t horizon, bool canvas)
{
    if (canvas) step_plan_denoise(r, p->session, horizon);
    else step_plan(r, p->session, rows, 0, horizon);
    *made = add_lines(p);
    return made->program;
}

static enum bz_status record_all(struct plan *p, const struct plan_options *o, struct bz_err *err)
{
    bz_session *s = p->session;
    struct run r = { .be = &p->engine->backend };
    struct bz_sampling greedy = bz_sampling_defaults(p->engine);
    struct gpu_draw draw;
    struct gpu_draw_options how = { .sampling = &greedy,
                                    .n_ctx = s->kv.n_ctx,
                                    .n_vocab = p->engine->model.config.n_vocab };
    how.suppress = tokenizer_suppressed(p->engine->tokenizer, &how.n_suppress);
    uint32_t rows = o->rows ? o->rows : 1, horizon = o->horizon ? o->horizon : FIRST_HORIZON;
    greedy.temperature = 0;
    if (rows > s->n_batch)
        return fail(err, BZ_ERR_ARGUMENT, "a step of %u tokens; this session's have at most %u",
                    rows, s->n_batch);
    if (horizon > s->kv.n_ctx) horizon = s->kv.n_ctx;
    enum bz_status st = gpu_draw_open(&draw, &how, err);
    if (st) return st;
    struct recorded both[2] = { 0 };
    bool ok = p->pass ? record_pass(p, &r, &both[0], rows, horizon, o->canvas)
                      : record_text(p, &r, both, rows, horizon, &draw);
    if (r.status) st = fail(err, r.status, "%s", r.err.text);
    else if (!ok || null_host_failed()) st = fail_memory(err, 1 << 20);
    if (st == BZ_OK) st = put_lines(p, o->canvas ? s->acts.canvas.n : rows, err);
    for (int i = 0; i < 2; i++) recorded_free(&both[i]);
    gpu_draw_close(&draw);
    return st;
}

/* ---- rules of fusion ---- */

static const struct {
    const char *name, *formula;
} rules[N_GPU_RULES] = {
#define RULE(NAME, name, formula) [RULE_##NAME] = { #name, formula },
#include "gpu/rules.def"
#undef RULE
};

const char *plan_rule_name(uint32_t rule)
{
    return rule < N_GPU_RULES ? rules[rule].name : NULL;
}

const char *plan_rule_formula(uint32_t rule)
{
    return rule < N_GPU_RULES ? rules[rule].formula : NULL;
}

uint32_t plan_rule_find(const char *name)
{
    for (uint32_t i = 1; i < N_GPU_RULES; i++)
        if (strcmp(rules[i].name, name) == 0) return i;
    return 0;
}

/* ---- tiers ---- */

static const char *const tiers[] = {
    [TIER_PLAIN] = "plain", [TIER_SUBGROUP] = "subgroup", [TIER_MATRIX] = "matrix"
};

uint32_t plan_tier_find(const char *name)
{
    for (uint32_t i = 0; i < sizeof tiers / sizeof *tiers; i++)
        if (strcmp(tiers[i], name) == 0) return i + 1;
    return 0;
}

/* The device and the engine's options for a tier: one that the device lacks is an error. */
static enum bz_status take_tier(struct gpu_profile *device, struct bz_engine_options *engine,
                                uint32_t number, struct bz_err *err)
{
    if (!number) return BZ_OK;
    enum gpu_tier tier = (enum gpu_tier)(number - 1);
    if (tier >= TIER_SUBGROUP && !device->limits.subgroup_max)
        return fail(err, BZ_ERR_ARGUMENT, "%s has no subgroups: only the plain tier runs there",
                    device->name);
    if (tier == TIER_MATRIX && !device->matrix)
        return fail(err, BZ_ERR_ARGUMENT,
                    "%s has no subgroup matrices: the subgroup and the plain tier run there",
                    device->name);
    device->limits.has_matrix = tier == TIER_MATRIX;
    engine->plain_kernels = tier == TIER_PLAIN;
    return BZ_OK;
}

/* ---- opening ---- */

enum bz_status plan_open(struct plan *out, const char *model,
                         const struct bz_engine_options *engine,
                         const struct bz_session_options *session, const struct plan_options *o,
                         struct bz_err *err)
{
    struct plan p = { 0 };
    struct bz_engine_options gpu = *engine;
    struct gpu_profile device = *o->profile;
    gpu.backend = BZ_BACKEND_GPU;
    enum bz_status st = take_tier(&device, &gpu, o->tier, err);
    if (st) return st;
    null_host_open(&device);
    st = bz_engine_open(&p.engine, model, &gpu, err);
    if (st == BZ_OK) {
        struct gpu_ops *g = p.engine->backend.ctx;
        g->without = o->without;
        p.tier = tiers[g->tier];
        if (p.engine->model.config.canvas.n_canvas) p.pass = o->canvas ? "canvas" : "encoder";
        else if (o->canvas)
            st = fail(err, BZ_ERR_ARGUMENT, "%s is no diffusion model: it has no canvas", model);
    }
    if (st == BZ_OK && o->adapter) {
        int id;
        st = bz_adapter_add(p.engine, o->adapter, 1, &id, err);
    }
    if (st == BZ_OK && o->rank) st = add_rank(p.engine, o->rank, err);
    p.weight_bytes = null_host_bytes();
    if (st == BZ_OK) st = bz_session_open(&p.session, p.engine, session, err);
    if (st == BZ_OK) {
        p.cache_bytes = kv_bytes(&p.engine->model.config, p.session->kv.n_ctx, p.session->n_batch,
                                 session->cache == BZ_CACHE_F16);
        p.act_bytes = null_host_bytes() - p.weight_bytes - p.cache_bytes;
        st = record_all(&p, o, err);
    }
    if (st) plan_close(&p);
    else *out = p;
    return st;
}

void plan_close(struct plan *p)
{
    bz_session_close(p->session);
    bz_engine_close(p->engine);
    arena_free(&p->arena);
    null_host_close();
    *p = (struct plan) { 0 };
}
