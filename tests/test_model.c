/* The network against the transformers reference: four small random models that between them have
 * per-layer embeddings, shared keys, double-wide layers, K = V, routed experts, and windows shorter
 * than the prompt. tools/golden/README.md says how the files were made.
 *
 * Every tap is compared. When one is off, the test names the first in order of computation, which
 * is the op that is broken.
 */
#include "model/forward.h"
#include "ops/ops_cpu.h"
#include "taps_fixture.h"

static void compare_logits(struct golden *g, const struct acts *a, uint32_t n)
{
    uint64_t cols = 0, rows = 0;
    const float *want = stored(g, "logits", &cols, &rows);
    CHECK(want && rows >= g->logit_row + n);
    for (uint64_t i = 0; i < n * cols; i++) {
        double d =
            fabs((double)((float *)a->logits.mem)[i] - (double)want[g->logit_row * cols + i]);
        if (!(d <= g->worst_logit)) g->worst_logit = d;
    }
    g->logit_row += n;
}

struct fixture {
    struct gguf file;
    struct backend be;
    struct model m;
    struct kv_cache kv;
    struct acts acts;
    int32_t ids[256];
    uint32_t n;
};

static uint32_t read_ids(const struct gguf *g, const char *key, int32_t ids[256])
{
    const struct gguf_kv *kv = gguf_find(g, key);
    int64_t v;
    uint32_t n = 0;
    while (kv && n < 256 && gguf_at_i64(kv, n, &v)) ids[n++] = (int32_t)v;
    return n;
}

static bool open_fixture(struct fixture *f, struct golden *g, const char *name, bool fast)
{
    char path[96];
    struct bz_err err = { "" };
    snprintf(path, sizeof path, "tests/golden/model_%s.gguf", name);
    bool ok = gguf_open_file(&f->file, path, &err) == BZ_OK;
    snprintf(path, sizeof path, "tests/golden/taps_%s.gguf", name);
    ok = ok && gguf_open_file(&g->taps, path, &err) == BZ_OK;
    ok = ok && cpu_open(&f->be, fast, 2, &err) == BZ_OK;
    ok = ok && model_load(&f->m, &f->file, &f->be, &err) == BZ_OK;
    ok = ok && kv_open(&f->kv, &f->m.config, &f->be, 256, 128, false, &err) == BZ_OK;
    ok = ok && acts_open(&f->acts, &f->m, &f->be, &f->kv, 128, &err) == BZ_OK;
    g->rows = ok ? gguf_find(&g->taps, "golden.rows") : NULL;
    f->n = ok ? read_ids(&g->taps, "golden.ids", f->ids) : 0;
    CHECK_MSG(ok && f->n == 96 && g->rows, "%s: %s", name, err.text);
    return ok;
}

static void close_fixture(struct fixture *f, struct golden *g)
{
    if (f->m.layers) acts_close(&f->acts, &f->be);
    kv_close(&f->kv);
    model_free(&f->m, &f->be);
    cpu_close(&f->be);
    gguf_close(&f->file);
    gguf_close(&g->taps);
}

/* The whole prompt in one step, all logits, every tap. */
static void check_prompt(const char *name, bool fast)
{
    struct fixture f = { 0 };
    struct golden g = { 0 };
    if (open_fixture(&f, &g, name, fast)) {
        struct tap_ctx ctx = { .g = &g, .n_expert = f.m.config.n_expert };
        struct run r = { .be = &f.be, .tap = on_tap, .tap_ctx = &ctx };
        f.acts.ids.rows = f.n;
        op_write(&r, &f.acts.ids, 0, f.ids, f.n);
        model_forward(&r, &f.m, &f.acts, f.n);
        for (uint32_t at = 0; at < f.n; at += LOGIT_ROWS) {
            model_logits(&r, &f.m, &f.acts, at, LOGIT_ROWS);
            compare_logits(&g, &f.acts, LOGIT_ROWS);
        }
        CHECK_MSG(r.status == BZ_OK, "%s", r.err.text);
        CHECK_MSG(g.n_bad == 0, "%s on %s: first diverging tap %s (%d of %d are off)", name,
                  f.be.name, g.first_bad, g.n_bad, g.n_seen);
        /* Every tap of the reference was met; logits are compared apart. */
        uint64_t n_taps = g.taps.n_tensors - 1;
        CHECK_MSG((uint64_t)g.n_seen == n_taps, "%d of %llu taps met", g.n_seen,
                  (unsigned long long)n_taps);
        CHECK_MSG(g.worst_logit <= LOGIT_TOLERANCE, "%s on %s: worst logit off by %.3g", name,
                  f.be.name, g.worst_logit);
        printf("  %-4s %-13s %d taps, worst logit off by %.2g\n", name, f.be.name, g.n_seen,
               g.worst_logit);
    }
    close_fixture(&f, &g);
}

static int32_t best(const float *z, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < n; i++)
        if (z[i] > z[at]) at = i;
    return (int32_t)at;
}

/* Greedy continuation, prompt without its other logits, then one token at a time. */
static void check_greedy(const char *name)
{
    struct fixture f = { 0 };
    struct golden g = { 0 };
    int32_t want[256];
    if (open_fixture(&f, &g, name, true)) {
        uint32_t n = read_ids(&g.taps, "golden.greedy", want);
        struct run r = { .be = &f.be };
        f.acts.ids.rows = f.n;
        op_write(&r, &f.acts.ids, 0, f.ids, f.n);
        model_forward(&r, &f.m, &f.acts, 1);
        kv_advance(&f.kv, f.n);
        CHECK(n == 24);
        for (uint32_t i = 0; i < n; i++) {
            model_logits(&r, &f.m, &f.acts, 0, 1);
            int32_t id = best(f.acts.logits.mem, f.m.config.n_vocab);
            CHECK_MSG(id == want[i], "%s: greedy token %u is %d, want %d", name, i, id, want[i]);
            f.acts.ids.rows = 1;
            op_write(&r, &f.acts.ids, 0, &id, 1);
            model_forward(&r, &f.m, &f.acts, 1);
            kv_advance(&f.kv, 1);
        }
        CHECK_MSG(r.status == BZ_OK, "%s", r.err.text);
    }
    close_fixture(&f, &g);
}

int main(void)
{
    static const char *const names[] = { "e2b", "e4b", "kv", "moe" };
    int64_t live = mem_live();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        TEST("every tap and logit of the prompt agrees with transformers, reference loops")
        check_prompt(names[i], false);
        TEST("every tap and logit of the prompt agrees with transformers, threads and SIMD")
        check_prompt(names[i], true);
        TEST("the greedy continuation is the reference's")
        check_greedy(names[i]);
    }
    TEST("nothing leaks")
    CHECK(mem_live() == live);
    return check_done();
}
