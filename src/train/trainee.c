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

enum { SLAB = 1 << 25 }; /* numbers; four bytes each, a slab is what every device can bind */

/* The shape of A or B of a target. */
static struct tensor shape_of(const struct trainee *all, size_t i, bool is_b)
{
    const struct weight *w = all->targets[i].where;
    struct tensor t = { .rows = w->n_mat * (is_b ? w->rows : all->rank),
                        .cols = is_b ? all->rank : w->cols };
    t.size = (uint64_t)t.rows * t.cols;
    return t;
}

/* Numbers that it takes in a slab. */
static uint64_t room_of(const struct trainee *all, size_t i, bool is_b)
{
    return (shape_of(all, i, is_b).size + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

static bool slab_open(const struct backend *be, struct slab *s, uint64_t n)
{
    struct tensor *all[] = { &s->value, &s->m, &s->v, &s->grad };
    if (n > UINT32_MAX) return false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!tensor_alloc(be, all[i], (uint32_t)(n / TENSOR_ALIGN), TENSOR_ALIGN)) return false;
        all[i]->rows = (uint32_t)(n / TENSOR_ALIGN);
    }
    return true;
}

static void slab_close(const struct backend *be, struct slab *s)
{
    struct tensor *all[] = { &s->value, &s->m, &s->v, &s->grad };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tensor_free(be, all[i]);
}

/* The matrix of target i lies in a slab from number `first` on. */
static void place(struct trainee *all, size_t i, bool is_b, const struct slab *s, uint64_t first)
{
    struct trainee_target *t = &all->targets[i];
    struct learning *l = is_b ? &t->b : &t->a;
    struct tensor *views[] = { &l->value, &l->m, &l->v, is_b ? &t->grad.b : &t->grad.a };
    const struct tensor *of[] = { &s->value, &s->m, &s->v, &s->grad };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        *views[k] = shape_of(all, i, is_b);
        all->be->view(views[k], of[k], (uint32_t)first);
    }
}

/* As many matrices a slab as there is room for; one that is larger has its own. */
static bool lay_out(struct trainee *all, bool is_b)
{
    size_t last;
    for (size_t i = 0; i < all->n_targets; i = last) {
        struct slab *s = &all->slabs[all->n_slabs++];
        uint64_t n = 0, first = 0;
        for (last = i; last < all->n_targets; n += room_of(all, last++, is_b))
            if (last > i && n + room_of(all, last, is_b) > SLAB) break;
        if (!slab_open(all->be, s, n)) return false;
        for (size_t k = i; k < last; first += room_of(all, k++, is_b))
            place(all, k, is_b, s, first);
    }
    return true;
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

static void put_on_list(struct trainee_target *t)
{
    t->lora.next = t->where->lora;
    t->where->lora = &t->lora;
    t->hangs = true;
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
    put_on_list(t);
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
    t->lora.scale = full_scale(all);
    t->lora.drop = all->drop;
    t->lora.salt = (uint32_t)(t - all->targets);
    bool apart = be->bwd->publish != NULL;
    size_t n_b = apart ? (size_t)t->b.value.rows * all->rank : 0;
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
    t.slabs = mem_alloc(2 * all.n, sizeof *t.slabs);
    t.drop = mem_alloc(1, sizeof *t.drop);
    if (!t.targets || !t.slabs || !t.drop) {
        trainee_close(&t);
        return fail_memory(err, all.n * sizeof *t.targets);
    }
    t.n_targets = all.n;
    all = (struct wanted) { .options = o, .targets = t.targets };
    model_each_adaptable(m, &all, take_target);
    enum bz_status st =
        lay_out(&t, false) && lay_out(&t, true)
            ? BZ_OK
            : fail(err, BZ_ERR_MEMORY, "not enough memory to train %zu matrices", all.n);
    for (size_t i = 0; i < t.n_targets && st == BZ_OK; i++)
        st = open_target(&t, &t.targets[i], rng_at(o->seed, i), err);
    if (st) trainee_close(&t);
    else *out = t;
    return st;
}

bool trainee_imagine(struct trainee *out, struct model *m, const struct trainee_options *o)
{
    struct wanted all = { .options = o };
    model_each_adaptable(m, &all, take_target);
    struct trainee t = { .rank = o->rank, .n_targets = all.n };
    t.targets = mem_alloc(all.n, sizeof *t.targets);
    if (!t.targets) return false;
    all = (struct wanted) { .options = o, .targets = t.targets };
    model_each_adaptable(m, &all, take_target);
    for (size_t i = 0; i < t.n_targets; i++) {
        struct trainee_target *one = &t.targets[i];
        one->lora = (struct lora) { .a.rows = o->rank, .grad = &one->grad };
        put_on_list(one);
    }
    *out = t;
    return true;
}

/* Off the model. The backend cannot fail: it keeps some of what it has. */
static void unhang(const struct backend *be, struct trainee_target *t)
{
    struct bz_err err;
    const struct lora **at = &t->where->lora;
    if (!t->hangs) return;
    while (*at != &t->lora) at = (const struct lora **)&(*at)->next;
    *at = t->lora.next;
    if (be && be->adapt) be->adapt(be->ctx, t->where, &err);
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
    }
    for (size_t i = 0; i < all->n_slabs; i++) slab_close(all->be, &all->slabs[i]);
    mem_free(all->slabs);
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
    for (size_t i = 0; i < all->n_slabs; i++)
        op_zero(r, &all->slabs[i].grad, all->slabs[i].grad.rows);
}

void trainee_sum_squares(struct run *r, const struct trainee *all, struct tensor *control)
{
    for (size_t i = 0; i < all->n_slabs; i++)
        op_sum_squares(r, control, CONTROL_SQUARES, &all->slabs[i].grad);
}

void trainee_update(struct run *r, struct trainee *all, const struct tensor *control,
                    const struct adamw *o)
{
    for (size_t i = 0; i < all->n_slabs; i++) {
        struct slab *s = &all->slabs[i];
        op_adamw(r, &s->value, &s->grad, &s->m, &s->v, control, o);
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
