/* trainee.c - see trainee.h. */
#include "train/trainee.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/lora.h"

/* ---- which targets ---- */

struct wanted {
    const struct trainee_options *options;
    struct trainee_target *targets; /* NULL: only count */
    size_t n;
    uint64_t n_numbers;
};

/* Are the pieces of the pattern between its stars in the name, one after the other? */
static bool matches(const char *pattern, const char *name)
{
    while (*pattern) {
        size_t n = strcspn(pattern, "*");
        while (*name && strncmp(name, pattern, n) != 0) name++;
        if (strncmp(name, pattern, n) != 0) return false;
        name += n;
        pattern += n + (pattern[n] == '*');
    }
    return true;
}

static bool is_wanted(const struct trainee_options *o, const char *name)
{
    if (!o->n_targets) return !strstr(name, "_exps.") && !strstr(name, "ffn_gate_inp");
    for (size_t i = 0; i < o->n_targets; i++)
        if (matches(o->targets[i], name)) return true;
    return false;
}

static void take_target(void *ctx, const char *name, struct weight *w)
{
    struct wanted *all = ctx;
    if (!is_wanted(all->options, name)) return;
    if (all->targets) {
        struct trainee_target *t = &all->targets[all->n];
        snprintf(t->name, sizeof t->name, "%s", name);
        t->where = w;
    }
    all->n++;
    all->n_numbers += (uint64_t)all->options->rank * w->n_mat * ((uint64_t)w->cols + w->rows);
}

uint64_t trainee_bytes(struct model *m, const struct trainee_options *options)
{
    struct wanted all = { .options = options };
    model_each_adaptable(m, &all, take_target);
    return all.n_numbers * 4 * sizeof(float); /* number, gradient, two moments */
}

/* ---- memory ---- */

static bool learning_open(const struct backend *be, struct learning *l, struct tensor *grad,
                          uint32_t rows, uint32_t cols)
{
    struct tensor *all[] = { &l->value, &l->m, &l->v, grad };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!tensor_alloc(be, all[i], rows, cols)) return false;
        all[i]->rows = rows;
    }
    return true;
}

static void learning_close(const struct backend *be, struct learning *l, struct tensor *grad)
{
    struct tensor *all[] = { &l->value, &l->m, &l->v, grad };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tensor_free(be, all[i]);
}

/* A begins uniform within 1 / sqrt(inputs); everything else as zero, which new tensors are. */
static float *first_numbers(uint32_t rows, uint32_t cols, uint64_t seed)
{
    float *a = mem_alloc((size_t)rows * cols, sizeof *a), reach = 1.0f / sqrtf((float)cols);
    struct rng rng = { seed };
    for (size_t i = 0; a && i < (size_t)rows * cols; i++)
        a[i] = reach * (2 * rng_unit(rng_next(&rng)) - 1);
    return a;
}

/* A weight that looks into floats in memory. */
static enum bz_status look_into(struct weight *w, struct source *bytes, const char *name,
                                const void *mem, const struct tensor *t, uint32_t n_mat,
                                struct bz_err *err)
{
    size_t n_bytes = (size_t)t->rows * t->cols * sizeof(float);
    enum bz_status st = source_open_memory(bytes, name, mem, n_bytes, err);
    if (st) return st;
    *w = (struct weight) { .fmt = quant_find(QUANT_F32),
                           .cols = t->cols,
                           .rows = t->rows / n_mat,
                           .n_mat = n_mat,
                           .src = bytes };
    return BZ_OK;
}

/* Onto the model. A backend that publishes has looked at a and b when this returns. */
static enum bz_status hang(const struct backend *be, struct trainee_target *t, const void *a,
                           const void *b, struct bz_err *err)
{
    struct weight *w = t->where;
    enum bz_status st = look_into(&t->lora.a, &t->a_bytes, t->name, a, &t->a.value, w->n_mat, err);
    if (st == BZ_OK)
        st = look_into(&t->lora.b, &t->b_bytes, t->name, b, &t->b.value, w->n_mat, err);
    if (st) return st;
    t->lora.grad = &t->grad;
    t->lora.next = w->lora;
    w->lora = &t->lora;
    t->hangs = true;
    if (be->adapt) return be->adapt(be->ctx, w, err);
    st = be->load(be->ctx, &t->lora.a, err);
    return st ? st : be->load(be->ctx, &t->lora.b, err);
}

static float full_scale(const struct trainee *t)
{
    return t->alpha / (t->rslora ? sqrtf((float)t->rank) : (float)t->rank);
}

static enum bz_status open_target(struct trainee *all, struct trainee_target *t, uint64_t seed,
                                  struct bz_err *err)
{
    const struct backend *be = all->be;
    struct run r = { .be = be };
    struct weight *w = t->where;
    uint32_t rank = all->rank, n = w->n_mat;
    if (!learning_open(be, &t->a, &t->grad.a, n * rank, w->cols) ||
        !learning_open(be, &t->b, &t->grad.b, n * w->rows, rank))
        return fail(err, BZ_ERR_MEMORY, "not enough memory to train %s", t->name);
    t->lora.scale = full_scale(all);
    t->lora.drop = all->drop;
    t->lora.salt = (uint32_t)(t - all->targets);
    bool apart = be->bwd->publish != NULL;
    size_t n_b = apart ? (size_t)t->b.value.rows * rank : 0;
    float *a = first_numbers(t->a.value.rows, w->cols, seed), *b = mem_alloc(n_b, sizeof *b);
    enum bz_status st = a && b ? BZ_OK : fail_memory(err, n_b * sizeof *b);
    if (st == BZ_OK) {
        op_write(&r, &t->a.value, 0, a, t->a.value.rows);
        st = hang(be, t, apart ? a : t->a.value.mem, apart ? b : t->b.value.mem, err);
    }
    if (apart) {
        source_close(&t->a_bytes);
        source_close(&t->b_bytes);
    }
    mem_free(a);
    mem_free(b);
    return st;
}

enum bz_status trainee_open(struct trainee *out, struct model *m, const struct backend *be,
                            const struct trainee_options *o, struct bz_err *err)
{
    if (o->rank < 1 || o->rank > LORA_MAX_RANK)
        return fail(err, BZ_ERR_ARGUMENT, "a rank is 1 to %d, not %u", LORA_MAX_RANK, o->rank);
    struct wanted all = { .options = o };
    model_each_adaptable(m, &all, take_target);
    if (!all.n) return fail(err, BZ_ERR_ARGUMENT, "no linear of this model matches the targets");
    struct trainee t = { .be = be, .rank = o->rank, .alpha = o->alpha, .rslora = o->rslora };
    t.targets = mem_alloc(all.n, sizeof *t.targets);
    t.drop = mem_alloc(1, sizeof *t.drop);
    if (!t.targets || !t.drop) {
        trainee_close(&t);
        return fail_memory(err, all.n * sizeof *t.targets);
    }
    t.n_targets = all.n;
    all = (struct wanted) { .options = o, .targets = t.targets };
    model_each_adaptable(m, &all, take_target);
    enum bz_status st = BZ_OK;
    for (size_t i = 0; i < t.n_targets && st == BZ_OK; i++)
        st = open_target(&t, &t.targets[i], rng_at(o->seed, i), err);
    if (st) trainee_close(&t);
    else *out = t;
    return st;
}

/* Off the model. The backend cannot fail: it keeps some of what it has. */
static void unhang(const struct backend *be, struct trainee_target *t)
{
    struct bz_err err;
    const struct lora **at = &t->where->lora;
    if (!t->hangs) return;
    while (*at != &t->lora) at = (const struct lora **)&(*at)->next;
    *at = t->lora.next;
    if (be->adapt) be->adapt(be->ctx, t->where, &err);
    if (t->lora.a.mem) be->unload(be->ctx, &t->lora.a);
    if (t->lora.b.mem) be->unload(be->ctx, &t->lora.b);
}

void trainee_close(struct trainee *all)
{
    for (size_t i = 0; i < all->n_targets; i++) {
        struct trainee_target *t = &all->targets[i];
        unhang(all->be, t);
        source_close(&t->a_bytes);
        source_close(&t->b_bytes);
        learning_close(all->be, &t->a, &t->grad.a);
        learning_close(all->be, &t->b, &t->grad.b);
    }
    mem_free(all->targets);
    mem_free(all->drop);
    *all = (struct trainee) { 0 };
}

void trainee_set_scale(struct trainee *all, float scale)
{
    struct bz_err err;
    for (size_t i = 0; i < all->n_targets; i++) {
        struct trainee_target *t = &all->targets[i];
        t->lora.scale = scale * full_scale(all);
        if (all->be->adapt)
            all->be->adapt(all->be->ctx, t->where, &err); /* nothing new: no failure */
    }
}

/* ---- steps ---- */

void trainee_zero_grads(struct run *r, struct trainee *all)
{
    for (size_t i = 0; i < all->n_targets; i++) {
        struct trainee_target *t = &all->targets[i];
        op_zero(r, &t->grad.a, t->grad.a.rows);
        op_zero(r, &t->grad.b, t->grad.b.rows);
    }
}

void trainee_sum_squares(struct run *r, const struct trainee *all, struct tensor *control)
{
    for (size_t i = 0; i < all->n_targets; i++) {
        op_sum_squares(r, control, CONTROL_SQUARES, &all->targets[i].grad.a);
        op_sum_squares(r, control, CONTROL_SQUARES, &all->targets[i].grad.b);
    }
}

void trainee_update(struct run *r, struct trainee *all, const struct tensor *control,
                    const struct adamw *o)
{
    for (size_t i = 0; i < all->n_targets; i++) {
        struct trainee_target *t = &all->targets[i];
        op_adamw(r, &t->a.value, &t->grad.a, &t->a.m, &t->a.v, control, o);
        op_adamw(r, &t->b.value, &t->grad.b, &t->b.m, &t->b.v, control, o);
    }
    trainee_publish(r, all);
}

void trainee_publish(struct run *r, struct trainee *all)
{
    for (size_t i = 0; i < all->n_targets; i++) {
        struct trainee_target *t = &all->targets[i];
        op_publish(r, t->where, &t->lora, &t->a.value, &t->b.value);
    }
}
