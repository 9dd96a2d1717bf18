/* Gradients of whole models and ten steps of the optimiser against torch, on files that
 * tools/golden/make_train_golden.py made with the transformers library. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "io/gguf.h"
#include "ops/ops_cpu.h"
#include "train/pass.h"
#include "train/trainee.h"

enum { MAX_TOK = 128, N_STEPS = 10 };

struct fixture {
    struct gguf file, golden;
    struct backend be;
    struct model m;
    struct trainee trainee;
    struct pass pass;
    int32_t ids[MAX_TOK], targets[MAX_TOK];
    uint32_t n, n_learned;
};

static uint32_t read_numbers(const struct gguf *g, const char *key, int32_t *out)
{
    const struct gguf_kv *kv = gguf_find(g, key);
    uint32_t n = kv ? (uint32_t)kv->n : 0;
    for (uint32_t i = 0; i < n && i < MAX_TOK; i++) {
        int64_t v = 0;
        CHECK(gguf_at_i64(kv, i, &v));
        out[i] = (int32_t)v;
    }
    CHECK(n > 0 && n <= MAX_TOK);
    return n <= MAX_TOK ? n : 0;
}

static float number_of(const struct gguf *g, const char *key)
{
    double v = NAN;
    CHECK_MSG(gguf_get_f64(g, key, &v), "%s is missing", key);
    return (float)v;
}

/* The number-th random matrix of make_train_golden.py. */
static void fill(struct tensor *t, uint64_t number, double reach)
{
    float *p = t->mem;
    for (uint64_t i = 0; i < (uint64_t)t->rows * t->cols; i++)
        p[i] = (float)reach * (2 * rng_unit(rng_at(number, i)) - 1);
}

static struct trainee_target *target_of(struct fixture *f, struct str name)
{
    for (size_t i = 0; i < f->trainee.n_targets; i++)
        if (str_eq(str_of(f->trainee.targets[i].name), name)) return &f->trainee.targets[i];
    return NULL;
}

/* A and B follow from the target's place in the list; all that can learn must be in it. */
static void fill_adapter(struct fixture *f)
{
    const struct gguf_kv *names = gguf_find(&f->golden, "train.adapted");
    struct str name;
    uint64_t cursor = 0, i = 0;
    CHECK(names && names->n == f->trainee.n_targets);
    for (; names && gguf_next_str(names, &cursor, &name); i++) {
        struct trainee_target *t = target_of(f, name);
        CHECK_MSG(t != NULL, "no target %.*s", (int)name.n, name.p);
        if (!t) continue;
        fill(&t->a.value, 2 * i, 1.5 / sqrt((double)t->where->cols));
        fill(&t->b.value, 2 * i + 1, 0.3);
    }
}

static bool open_fixture(struct fixture *f, const char *name, bool fast)
{
    static const char *const everything[] = { "blk." };
    char path[96];
    struct bz_err err = { "" };
    memset(f, 0, sizeof *f);
    snprintf(path, sizeof path, "tests/golden/model_%s.gguf", name);
    bool ok = gguf_open_file(&f->file, path, &err) == BZ_OK;
    snprintf(path, sizeof path, "tests/golden/train_%s.gguf", name);
    ok = ok && gguf_open_file(&f->golden, path, &err) == BZ_OK;
    CHECK_MSG(ok, "%s: %s", name, err.text);
    if (!ok) return false;
    uint32_t rank = (uint32_t)number_of(&f->golden, "train.rank");
    struct trainee_options o = {
        .rank = rank,
        .alpha = number_of(&f->golden, "train.scale") * (float)rank,
        .targets = everything,
        .n_targets = 1,
    };
    f->n = read_numbers(&f->golden, "train.ids", f->ids);
    CHECK(read_numbers(&f->golden, "train.targets", f->targets) == f->n);
    for (uint32_t i = 0; i < f->n; i++) f->n_learned += f->targets[i] >= 0;
    ok = cpu_open(&f->be, fast, 2, &err) == BZ_OK &&
         model_load(&f->m, &f->file, &f->be, &err) == BZ_OK &&
         trainee_open(&f->trainee, &f->m, &f->be, &o, &err) == BZ_OK &&
         pass_open(&f->pass, &f->m, &f->be, f->n, false, &err) == BZ_OK;
    CHECK_MSG(ok, "%s: %s", name, err.text);
    if (ok) fill_adapter(f);
    return ok;
}

static void close_fixture(struct fixture *f)
{
    pass_close(&f->pass);
    trainee_close(&f->trainee);
    model_free(&f->m, &f->be);
    cpu_close(&f->be);
    gguf_close(&f->file);
    gguf_close(&f->golden);
}

/* Gradients of the mean loss, and that loss. */
static double gradients(struct fixture *f)
{
    struct run r = { .be = &f->be };
    double sum = 0;
    trainee_zero_grads(&r, &f->trainee);
    pass_put(&r, &f->pass, f->ids, f->targets, f->n);
    pass_gradients(&r, &f->pass, f->n, 1.0f / (float)f->n_learned);
    CHECK_MSG(r.status == BZ_OK, "%s", r.err.text);
    for (uint32_t i = 0; i < f->n; i++) sum += (double)((float *)f->pass.loss.mem)[i];
    return sum / f->n_learned;
}

/* The length of the difference, as a part of the length of what it should be. */
static double relative_error(const struct fixture *f, const char *name, const char *part,
                             const struct tensor *grad)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", name, part);
    const struct gguf_tensor *t = gguf_tensor_find(&f->golden, full);
    uint64_t n = (uint64_t)grad->rows * grad->cols;
    CHECK_MSG(t && t->n_bytes == n * sizeof(float), "%s is missing or has another size", full);
    if (!t || t->n_bytes != n * sizeof(float)) return INFINITY;
    const float *want = source_map(&f->golden.sources[t->shard], t->offset, t->n_bytes);
    const float *got = grad->mem;
    double off = 0, length = 0;
    for (uint64_t i = 0; want && i < n; i++) {
        double d = (double)got[i] - (double)want[i];
        off += d * d;
        length += (double)want[i] * (double)want[i];
    }
    return length > 0 ? sqrt(off / length) : INFINITY;
}

static void check_gradients(struct fixture *f, const char *name)
{
    double worst = 0;
    for (size_t i = 0; i < f->trainee.n_targets; i++) {
        const struct trainee_target *t = &f->trainee.targets[i];
        double a = relative_error(f, t->name, "a", &t->grad.a);
        double b = relative_error(f, t->name, "b", &t->grad.b);
        CHECK_MSG(a <= 1e-4 && b <= 1e-4, "%s %s: A is off by %.2g, B by %.2g", name, t->name, a,
                  b);
        worst = fmax(worst, fmax(a, b));
    }
    printf("  %-4s %-13s %zu matrices, worst gradient off by %.2g", name, f->be.name,
           2 * f->trainee.n_targets, worst);
}

static void check_model(const char *name, bool fast)
{
    struct fixture f;
    if (open_fixture(&f, name, fast)) {
        const struct gguf *g = &f.golden;
        const struct gguf_kv *losses = gguf_find(g, "train.losses");
        const float beta1 = number_of(g, "train.beta1"), beta2 = number_of(g, "train.beta2");
        const struct adamw o = { beta1, beta2, number_of(g, "train.eps"),
                                 number_of(g, "train.decay") };
        double worst = 0;
        struct tensor control = { 0 };
        CHECK(losses && losses->n == N_STEPS && tensor_alloc(&f.be, &control, N_CONTROL, 1));
        control.rows = N_CONTROL;
        for (uint32_t step = 1; losses && step <= N_STEPS; step++) {
            struct run r = { .be = &f.be };
            double want = NAN, loss = gradients(&f);
            if (step == 1) check_gradients(&f, name);
            CHECK(gguf_at_f64(losses, step - 1, &want));
            CHECK_MSG(fabs(loss - want) <= 1e-4, "%s step %u: the loss is %.6f, torch's %.6f", name,
                      step, loss, want);
            worst = fmax(worst, fabs(loss - want));
            const float values[N_CONTROL] = {
                [CONTROL_LR] = number_of(g, "train.lr"),
                [CONTROL_FIX1] = 1 / (1 - powf(beta1, (float)step)),
                [CONTROL_FIX2] = 1 / (1 - powf(beta2, (float)step)),
                [CONTROL_SCALE] = 1,
            };
            op_write(&r, &control, 0, values, N_CONTROL);
            trainee_update(&r, &f.trainee, &control, &o);
        }
        tensor_free(&f.be, &control);
        printf(", worst loss by %.2g\n", worst);
    }
    close_fixture(&f);
}

int main(void)
{
    static const char *const names[] = { "e2b", "kv", "moe" };
    TEST("gradients and ten steps of AdamW are torch's: dense with shared keys, V = K, experts")
    for (int i = 0; i < 3; i++) check_model(names[i], false);
    TEST("so they are with SIMD and threads")
    for (int i = 0; i < 3; i++) check_model(names[i], true);
    CHECK(mem_live() == 0);
    return check_done();
}
