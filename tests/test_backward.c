/* Gradients of whole models, compared with the slope of the loss, which is measured by moving one
 * number of an adapter a little, and with the same gradients computed in other ways. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "io/gguf.h"
#include "model/forward.h"
#include "ops/ops_cpu.h"
#include "train/pass.h"
#include "train/trainee.h"

enum { N_TOK = 24 };

static float dropout; /* of the fixtures opened from now on */

struct fixture {
    struct gguf file;
    struct backend be;
    struct model m;
    struct trainee trainee;
    struct pass pass;
    int32_t ids[N_TOK], targets[N_TOK];
};

/* A third of the positions is not trained on. B is not zero, so that A has a gradient too. */
static bool open_fixture(struct fixture *f, const char *name, bool fast, bool keep_all)
{
    static const char *const everything[] = { "blk." };
    struct trainee_options o = {
        .rank = 3, .alpha = 6, .targets = everything, .n_targets = 1, .seed = 5
    };
    char path[96];
    struct bz_err err = { "" };
    memset(f, 0, sizeof *f);
    snprintf(path, sizeof path, "tests/golden/model_%s.gguf", name);
    bool ok = gguf_open_file(&f->file, path, &err) == BZ_OK &&
              cpu_open(&f->be, fast, 3, &err) == BZ_OK &&
              model_load(&f->m, &f->file, &f->be, &err) == BZ_OK &&
              trainee_open(&f->trainee, &f->m, &f->be, &o, &err) == BZ_OK &&
              pass_open(&f->pass, &f->m, &f->be, N_TOK, keep_all, &err) == BZ_OK;
    CHECK_MSG(ok, "%s: %s", name, err.text);
    if (ok) *f->trainee.drop = (struct dropout) { dropout, 77, 0 };
    struct rng rng = { 11 };
    for (int i = 0; i < N_TOK; i++) {
        f->ids[i] = (int32_t)(rng_next(&rng) % f->m.config.n_vocab);
        f->targets[i] = i % 3 ? (int32_t)(rng_next(&rng) % f->m.config.n_vocab) : -1;
    }
    for (size_t i = 0; ok && i < f->trainee.n_targets; i++) {
        struct tensor *b = &f->trainee.targets[i].b.value;
        float *p = b->mem;
        for (uint64_t k = 0; k < (uint64_t)b->rows * b->cols; k++)
            p[k] = 0.1f * (2 * rng_unit(rng_next(&rng)) - 1);
    }
    return ok;
}

static void close_fixture(struct fixture *f)
{
    pass_close(&f->pass);
    trainee_close(&f->trainee);
    model_free(&f->m, &f->be);
    cpu_close(&f->be);
    gguf_close(&f->file);
}

static double total_loss(struct fixture *f)
{
    struct run r = { .be = &f->be };
    double sum = 0;
    pass_put(&r, &f->pass, f->ids, f->targets, N_TOK);
    pass_losses(&r, &f->pass, N_TOK);
    CHECK_MSG(r.status == BZ_OK, "%s", r.err.text);
    for (int i = 0; i < N_TOK; i++) sum += (double)((float *)f->pass.loss.mem)[i];
    return sum;
}

static void train(struct run *r, struct pass *p, const int32_t *ids, const int32_t *targets,
                  uint32_t n, float weight)
{
    pass_put(r, p, ids, targets, n);
    pass_gradients(r, p, n, weight);
}

static void gradients(struct fixture *f)
{
    struct run r = { .be = &f->be };
    trainee_zero_grads(&r, &f->trainee);
    train(&r, &f->pass, f->ids, f->targets, N_TOK, 1);
    CHECK_MSG(r.status == BZ_OK, "%s", r.err.text);
}

/* How fast the loss rises along g, |g| = length, measured with steps of h. */
static double slope(struct fixture *f, struct tensor *value, const float *g, double length,
                    double h)
{
    static const double steps[] = { -2, -1, 1, 2 };
    size_t n = (size_t)value->rows * value->cols;
    float *x = value->mem, *kept = malloc(n * sizeof *kept);
    double at[4];
    memcpy(kept, x, n * sizeof *kept);
    for (int side = 0; side < 4; side++) {
        for (size_t i = 0; i < n; i++)
            x[i] = (float)((double)kept[i] + steps[side] * h * (double)g[i] / length);
        at[side] = total_loss(f);
    }
    memcpy(x, kept, n * sizeof *kept);
    free(kept);
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h);
}

static double length_of(const struct tensor *t)
{
    double sum = 0;
    const float *p = t->mem;
    for (size_t i = 0; i < (size_t)t->rows * t->cols; i++) sum += (double)p[i] * (double)p[i];
    return sqrt(sum);
}

/* Along the gradient of a matrix the loss must rise at a speed equal to the gradient's length. A
 * step across the border where a router chooses another expert measures the jump there; then a
 * shorter step is tried. */
static void check_slope(struct fixture *f, const char *name, struct learning *l,
                        const struct tensor *grad)
{
    double length = length_of(grad), size = length_of(&l->value), measured = 0, off = INFINITY;
    for (double h = 2e-3; length > 0 && h > 1e-5 && off > 2e-2; h /= 10) {
        measured = slope(f, &l->value, grad->mem, length, h * size);
        off = fabs(measured - length) / (length + 1e-3);
    }
    CHECK_MSG(off < 2e-2, "%s: the loss rises by %g, the gradient says %g", name, measured, length);
}

static void check_model(const char *name)
{
    struct fixture f;
    size_t n_checked = 0;
    if (open_fixture(&f, name, false, false)) {
        gradients(&f);
        for (size_t i = 0; i < f.trainee.n_targets; i++) {
            struct trainee_target *t = &f.trainee.targets[i];
            if (i % 2) check_slope(&f, t->name, &t->a, &t->grad.a);
            else check_slope(&f, t->name, &t->b, &t->grad.b);
            n_checked++;
        }
        printf("  %s: %zu matrices\n", name, n_checked);
    }
    close_fixture(&f);
}

/* The largest difference of any gradient between two fixtures, as a part of its matrix's length. */
static double difference(const struct fixture *a, const struct fixture *b)
{
    double worst = 0;
    for (size_t i = 0; i < a->trainee.n_targets; i++) {
        const struct lora_grad *x = &a->trainee.targets[i].grad, *y = &b->trainee.targets[i].grad;
        const struct tensor *pairs[2][2] = { { &x->a, &y->a }, { &x->b, &y->b } };
        for (int k = 0; k < 2; k++) {
            const float *p = pairs[k][0]->mem, *q = pairs[k][1]->mem;
            double length = length_of(pairs[k][0]);
            for (size_t j = 0; j < (size_t)pairs[k][0]->rows * pairs[k][0]->cols; j++)
                worst = fmax(worst, fabs((double)p[j] - (double)q[j]) / length);
        }
    }
    return worst;
}

static void check_ways(const char *name)
{
    struct fixture again, kept, fast;
    if (open_fixture(&again, name, false, false) && open_fixture(&kept, name, false, true) &&
        open_fixture(&fast, name, true, true)) {
        gradients(&again);
        gradients(&kept);
        gradients(&fast);
        CHECK(difference(&again, &kept) == 0);
        double off = difference(&again, &fast);
        CHECK_MSG(off < 1e-4, "%s: threads and SIMD change a gradient by %g of its length", name,
                  off);
        CHECK(pass_bytes(&again.m, &again.be, N_TOK, false) <
              pass_bytes(&again.m, &again.be, N_TOK, true));
    }
    close_fixture(&again);
    close_fixture(&kept);
    close_fixture(&fast);
}

/* The losses are those of the logits that inference computes. */
static void check_losses(const char *name)
{
    struct fixture f;
    struct kv_cache kv = { 0 };
    struct acts a = { 0 };
    struct bz_err err;
    if (open_fixture(&f, name, false, false)) {
        struct run r = { .be = &f.be };
        uint32_t V = f.m.config.n_vocab;
        CHECK(kv_open(&kv, &f.m.config, &f.be, N_TOK, N_TOK, false, &err) == BZ_OK);
        CHECK(acts_open(&a, &f.m, &f.be, &kv, N_TOK, &err) == BZ_OK);
        total_loss(&f);
        a.ids.rows = N_TOK;
        op_write(&r, &a.ids, 0, f.ids, N_TOK);
        model_forward(&r, &f.m, &a, N_TOK);
        for (uint32_t t = 0; t < N_TOK; t++) {
            model_logits(&r, &f.m, &a, t, 1);
            const float *z = a.logits.mem;
            double sum = 0, want = 0;
            for (uint32_t i = 0; i < V; i++) sum += exp((double)z[i]);
            if (f.targets[t] >= 0) want = log(sum) - (double)z[f.targets[t]];
            CHECK(fabs((double)((float *)f.pass.loss.mem)[t] - want) < 1e-4);
        }
        acts_close(&a, &f.be);
        kv_close(&kv);
    }
    close_fixture(&f);
}

/* Two steps add up, and a weight multiplies. */
static void check_sum(void)
{
    struct fixture once, twice;
    if (open_fixture(&once, "e2b", false, false) && open_fixture(&twice, "e2b", false, false)) {
        struct run r = { .be = &twice.be };
        gradients(&once);
        trainee_zero_grads(&r, &twice.trainee);
        train(&r, &twice.pass, twice.ids, twice.targets, N_TOK, 0.25f);
        train(&r, &twice.pass, twice.ids, twice.targets, N_TOK, 0.75f);
        CHECK(r.status == BZ_OK && difference(&once, &twice) < 1e-5);
    }
    close_fixture(&once);
    close_fixture(&twice);
}

/* Two examples in one sequence, and each in one of its own. */
static void check_packed(const char *name, bool fast)
{
    enum { FIRST = 7 };
    struct fixture packed, alone;
    int32_t starts[N_TOK];
    for (int i = 0; i < N_TOK; i++) starts[i] = i < FIRST ? 0 : FIRST;
    if (open_fixture(&packed, name, fast, false) && open_fixture(&alone, name, false, false)) {
        struct run r = { .be = &packed.be }, s = { .be = &alone.be };
        double together = 0, apart = 0;
        trainee_zero_grads(&r, &packed.trainee);
        pass_pack(&r, &packed.pass, starts, N_TOK);
        train(&r, &packed.pass, packed.ids, packed.targets, N_TOK, 1);
        for (int i = 0; i < N_TOK; i++) together += (double)((float *)packed.pass.loss.mem)[i];
        trainee_zero_grads(&s, &alone.trainee);
        train(&s, &alone.pass, alone.ids, alone.targets, FIRST, 1);
        for (int i = 0; i < FIRST; i++) apart += (double)((float *)alone.pass.loss.mem)[i];
        train(&s, &alone.pass, alone.ids + FIRST, alone.targets + FIRST, N_TOK - FIRST, 1);
        for (int i = 0; i < N_TOK - FIRST; i++) apart += (double)((float *)alone.pass.loss.mem)[i];
        CHECK(r.status == BZ_OK && s.status == BZ_OK);
        CHECK_MSG(fabs(together - apart) < 1e-4 * apart, "%s: losses %g and %g", name, together,
                  apart);
        double off = difference(&alone, &packed);
        CHECK_MSG(off < 1e-4, "%s: packing changes a gradient by %g of its length", name, off);
        pass_pack(&r, &packed.pass, NULL, 0);
        gradients(&packed);
        CHECK(difference(&alone, &packed) > 1e-2);
    }
    close_fixture(&packed);
    close_fixture(&alone);
}

/* The share of an adapter's inputs that is left out, and that rows and columns differ. */
static void check_share(void)
{
    struct dropout d = { 0.3f, 5, 0 };
    struct lora l = { .drop = &d, .salt = 3 };
    int n_out = 0, n_like_row = 0, n_like_key = 0;
    for (uint32_t row = 0; row < 100; row++)
        for (uint32_t col = 0; col < 100; col++) {
            float here = dropout_factor(&l, dropout_row(&l, row), col);
            CHECK(here == 0 || fabsf(here - 1 / 0.7f) < 1e-6f);
            n_out += here == 0;
            n_like_row += here == dropout_factor(&l, dropout_row(&l, row + 1), col);
            d.key++;
            n_like_key += here == dropout_factor(&l, dropout_row(&l, row), col);
            d.key--;
        }
    CHECK_MSG(abs(n_out - 3000) < 150, "%d of 10000 left out", n_out);
    CHECK_MSG(abs(n_like_row - 5800) < 150, "%d like the row below", n_like_row);
    CHECK_MSG(abs(n_like_key - 5800) < 150, "%d like under another key", n_like_key);
}

int main(void)
{
    static const char *const models[] = { "e2b", "e4b", "kv", "moe" };
    TEST("gradients are the slope of the loss: per-layer inputs, shared keys, double-wide")
    check_model("e2b");
    TEST("the same with V = K and other global heads") check_model("kv");
    TEST("the same with experts and their router") check_model("moe");
    TEST("a layer computed again gives the same gradients; threads nearly the same")
    for (int i = 0; i < 4; i++) check_ways(models[i]);
    TEST("training and inference compute the same losses")
    for (int i = 0; i < 4; i++) check_losses(models[i]);
    TEST("gradients of several steps add up") check_sum();
    TEST("examples in one sequence do not see one another")
    for (int i = 0; i < 8; i++) check_packed(models[i / 2], i % 2);
    TEST("dropout leaves out its share at random") check_share();
    TEST("gradients are the slope of the loss with dropout too, computed in every way")
    {
        dropout = 0.3f;
        check_model("e2b");
        check_model("moe");
        for (int i = 0; i < 4; i++) check_ways(models[i]);
    }
    return check_done();
}
