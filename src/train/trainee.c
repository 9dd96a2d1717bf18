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

static bool is_wanted(const struct trainee_options *o, const char *name)
{
    if (!o->n_targets) return !strstr(name, "_exps.") && !strstr(name, "ffn_gate_inp");
    for (size_t i = 0; i < o->n_targets; i++)
        if (strstr(name, o->targets[i])) return true;
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

/* A is uniform within 1 / sqrt(inputs); everything else starts as zero. */
static enum bz_status fill(const struct backend *be, struct trainee_target *t, uint64_t seed,
                           struct bz_err *err)
{
    struct run r = { .be = be };
    struct tensor *zeros[] = { &t->a.m, &t->a.v, &t->grad.a, &t->b.value,
                               &t->b.m, &t->b.v, &t->grad.b };
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) op_zero(&r, zeros[i], zeros[i]->rows);
    uint32_t rows = t->a.value.rows, cols = t->a.value.cols;
    float *row = mem_alloc(cols, sizeof *row);
    if (!row) return fail_memory(err, cols * sizeof *row);
    float reach = 1.0f / sqrtf((float)cols);
    struct rng rng = { seed };
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t j = 0; j < cols; j++) row[j] = reach * (2 * rng_unit(rng_next(&rng)) - 1);
        op_write(&r, &t->a.value, i, row, 1);
    }
    mem_free(row);
    return r.status ? fail(err, r.status, "%s", r.err.text) : BZ_OK;
}

/* A weight that looks into a tensor. */
static enum bz_status look_into(struct weight *w, struct source *bytes, const char *name,
                                const struct tensor *t, uint32_t n_mat, const struct backend *be,
                                struct bz_err *err)
{
    size_t n_bytes = (size_t)t->rows * t->cols * sizeof(float);
    enum bz_status st = source_open_memory(bytes, name, t->mem, n_bytes, err);
    if (st) return st;
    *w = (struct weight) { .fmt = quant_find(QUANT_F32),
                           .cols = t->cols,
                           .rows = t->rows / n_mat,
                           .n_mat = n_mat,
                           .src = bytes };
    return be->load(be->ctx, w, err);
}

static float full_scale(const struct trainee *t)
{
    return t->alpha / (t->rslora ? sqrtf((float)t->rank) : (float)t->rank);
}

static enum bz_status open_target(struct trainee *all, struct trainee_target *t, uint64_t seed,
                                  struct bz_err *err)
{
    const struct backend *be = all->be;
    struct weight *w = t->where;
    uint32_t rank = all->rank, n = w->n_mat;
    if (!learning_open(be, &t->a, &t->grad.a, n * rank, w->cols) ||
        !learning_open(be, &t->b, &t->grad.b, n * w->rows, rank))
        return fail(err, BZ_ERR_MEMORY, "not enough memory to train %s", t->name);
    enum bz_status st = fill(be, t, seed, err);
    if (st == BZ_OK) st = look_into(&t->lora.a, &t->a_bytes, t->name, &t->a.value, n, be, err);
    if (st == BZ_OK) st = look_into(&t->lora.b, &t->b_bytes, t->name, &t->b.value, n, be, err);
    if (st) return st;
    t->lora.scale = full_scale(all);
    t->lora.drop = all->drop;
    t->lora.salt = (uint32_t)(t - all->targets);
    t->lora.grad = &t->grad;
    t->lora.next = w->lora;
    w->lora = &t->lora;
    return BZ_OK;
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

/* Take a lora out of the list of a weight. */
static void unhang(struct weight *w, const struct lora *l)
{
    for (const struct lora **at = &w->lora; *at; at = (const struct lora **)&(*at)->next)
        if (*at == l) {
            *at = l->next;
            return;
        }
}

void trainee_close(struct trainee *all)
{
    for (size_t i = 0; i < all->n_targets; i++) {
        struct trainee_target *t = &all->targets[i];
        unhang(t->where, &t->lora);
        if (weight_exists(&t->lora.a)) all->be->unload(all->be->ctx, &t->lora.a);
        if (weight_exists(&t->lora.b)) all->be->unload(all->be->ctx, &t->lora.b);
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

double trainee_grad_norm(struct run *r, const struct trainee *all)
{
    double sum = 0;
    for (size_t i = 0; i < all->n_targets; i++)
        sum +=
            op_sum_squares(r, &all->targets[i].grad.a) + op_sum_squares(r, &all->targets[i].grad.b);
    return sqrt(sum);
}

void trainee_update(struct run *r, struct trainee *all, const struct adamw *o)
{
    for (size_t i = 0; i < all->n_targets; i++) {
        struct trainee_target *t = &all->targets[i];
        op_adamw(r, &t->a.value, &t->grad.a, &t->a.m, &t->a.v, o);
        op_adamw(r, &t->b.value, &t->grad.b, &t->b.m, &t->b.v, o);
    }
}
