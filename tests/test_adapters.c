/* test_adapters.c - LoRA through the public interface: y = W x + scale * B (A x), nothing else. */
#include "model_fixture.h"

enum { N = 24, MAX_TARGETS = 128 };

#define CLOSE                                                                                      \
    1e-3 /* f32 rounding of W x + B A x against (W + B A) x, through 6 layers of logits <= 30 */
#define MOVED 0.1 /* an adapter that works changes some logit by this much at least */

/* Every linear of the model's layers, read off the file. */
struct targets {
    struct lora_spec list[MAX_TARGETS];
    char names[MAX_TARGETS][64];
    size_t n;
};

static void add_target(struct targets *t, const char *name, uint32_t n_in, uint32_t n_out,
                       uint32_t n_expert)
{
    snprintf(t->names[t->n], sizeof t->names[0], "%s", name);
    t->list[t->n] =
        (struct lora_spec) { t->names[t->n], n_in, n_out, n_expert, 3, 90 + t->n, 0.3f };
    t->n++;
}

static void find_targets(struct targets *t, const char *path, const char *containing)
{
    struct gguf g;
    CHECK(gguf_open_file(&g, path, NULL) == BZ_OK);
    t->n = 0;
    for (uint64_t i = 0; i < g.n_tensors; i++) {
        const struct gguf_tensor *x = &g.tensors[i];
        char name[64];
        snprintf(name, sizeof name, "%.*s", STR_ARG(x->name));
        if (x->ne[1] > 1 && str_starts(x->name, "blk.") && strstr(name, containing))
            add_target(t, name, (uint32_t)x->ne[0], (uint32_t)x->ne[1], (uint32_t)x->ne[2]);
    }
    CHECK(t->n > 0 && t->n <= MAX_TARGETS);
    gguf_close(&g);
}

/* W += scale * B A, for copy_model. */
struct merge {
    const struct targets *targets;
    float scale;
};

static bool merge_tensor(void *ctx, struct str name, const uint64_t ne[4], float *v)
{
    const struct merge *m = ctx;
    for (size_t k = 0; k < m->targets->n; k++) {
        const struct lora_spec *l = &m->targets->list[k];
        if (!str_is(name, l->name)) continue;
        CHECK(ne[0] == l->n_in && ne[1] == l->n_out && ne[2] == l->n_expert);
        float *a = lora_values(l), *b = a + lora_a_size(l);
        for (size_t i = 0; i < (size_t)l->n_expert * l->n_out; i++)
            for (size_t j = 0; j < l->n_in; j++) {
                double sum = 0;
                const float *ax = a + i / l->n_out * l->rank * l->n_in;
                for (size_t r = 0; r < l->rank; r++)
                    sum += (double)b[i * l->rank + r] * (double)ax[r * l->n_in + j];
                v[i * l->n_in + j] += (float)((double)m->scale * sum);
            }
        free(a);
        return true;
    }
    return false;
}

/* Logits of a fixed text on a fresh session, read in pieces so that both paths are used. */
static float *logits_of(bz_engine *e)
{
    int32_t *ids = random_ids(e, N, 60);
    bz_session *s = open_session(e, N, 16);
    feed_pieces(s, ids, N - 3, N);
    feed_pieces(s, ids + N - 3, 3, 1);
    float *z = keep_logits(s, bz_engine_info(e).n_vocab);
    bz_session_close(s);
    free(ids);
    return z;
}

static int add(bz_engine *e, const char *path, float scale)
{
    struct bz_err err = { "" };
    int id = -1;
    CHECK_MSG(bz_adapter_add(e, path, scale, &id, &err) == BZ_OK, "%s", err.text);
    return id;
}

/* The engine gives these logits now: to the bit, or nearly. Frees nothing of `want`. */
static void check_logits(bz_engine *e, const float *want, bool exact, const char *what)
{
    uint32_t n = bz_engine_info(e).n_vocab;
    float *got = logits_of(e);
    double d = largest_difference(got, want, n);
    CHECK_MSG(exact ? same_floats(got, want, n) : d <= CLOSE, "%s: differ by %g", what, d);
    free(got);
}

static void check_moved(bz_engine *e, const float *from, const char *what)
{
    float *got = logits_of(e);
    double d = largest_difference(got, from, bz_engine_info(e).n_vocab);
    CHECK_MSG(d >= MOVED, "%s: moved by %g only", what, d);
    free(got);
}

/* ---- sums ---- */

static void check_zero_and_remove(const char *model, enum bz_backend backend)
{
    struct targets t;
    struct tmp_path path = tmp_path("lora.gguf"), zero = tmp_path("lora_zero.gguf");
    find_targets(&t, model, "");
    write_adapter(path.z, 6, t.list, t.n);
    for (size_t i = 0; i < t.n; i++) t.list[i].b_size = 0;
    write_adapter(zero.z, 6, t.list, t.n);
    bz_engine *e = open_engine(model, backend);
    float *base = logits_of(e);
    int id = add(e, zero.z, 1);
    check_logits(e, base, true, "zero B");
    int second = add(e, path.z, 1);
    check_moved(e, base, "adapter");
    float *adapted = logits_of(e);
    CHECK(bz_adapter_remove(e, id, NULL) == BZ_OK); /* the older of two on every linear */
    check_logits(e, adapted, true, "zero B removed");
    CHECK(bz_adapter_scale(e, second, 0, NULL) == BZ_OK);
    check_logits(e, base, true, "scale 0");
    CHECK(bz_adapter_scale(e, second, 1, NULL) == BZ_OK);
    check_logits(e, adapted, true, "scale 1 again");
    int third = add(e, path.z, 1); /* takes the free number */
    CHECK(third == id);
    CHECK(bz_adapter_remove(e, second, NULL) == BZ_OK);
    check_logits(e, adapted, true, "one of two removed");
    CHECK(bz_adapter_remove(e, third, NULL) == BZ_OK);
    check_logits(e, base, true, "all removed");
    add(e, path.z, 1);
    bz_engine_close(e); /* with the adapter on */
    free(base);
    free(adapted);
    remove(path.z);
    remove(zero.z);
}

/* Scales add up; alpha / rank is part of the scale. */
static void check_scales(const char *model)
{
    struct targets t;
    struct tmp_path path = tmp_path("lora.gguf"), strong = tmp_path("lora_strong.gguf");
    find_targets(&t, model, "");
    write_adapter(path.z, 3, t.list, t.n); /* alpha = rank: scale 1 */
    write_adapter(strong.z, 12, t.list, t.n);
    bz_engine *e = open_engine(model, BZ_BACKEND_CPU);
    int id = add(e, path.z, 1);
    float *want = logits_of(e);
    CHECK(bz_adapter_scale(e, id, 0.5f, NULL) == BZ_OK);
    int twin = add(e, path.z, 0.5f);
    check_logits(e, want, false, "0.5 + 0.5");
    CHECK(bz_adapter_scale(e, twin, -0.5f, NULL) == BZ_OK && !bz_adapter_remove(e, id, NULL));
    id = add(e, path.z, 1.5f);
    check_logits(e, want, false, "1.5 - 0.5");
    CHECK(!bz_adapter_remove(e, id, NULL) && !bz_adapter_remove(e, twin, NULL));
    add(e, strong.z, 0.25f);
    check_logits(e, want, true, "four times the alpha, a quarter of the scale");
    bz_engine_close(e);
    free(want);
    remove(path.z);
    remove(strong.z);
}

/* An adapter on the targets whose name contains `part` is the model with merged weights. */
static void check_merged(const char *model, const char *part, enum bz_backend backend)
{
    struct targets t;
    struct tmp_path path = tmp_path("lora.gguf"), merged = tmp_path("merged.gguf");
    find_targets(&t, model, part);
    for (size_t i = 0; i < t.n; i++) t.list[i].b_size = 0.6f / sqrtf((float)t.n);
    write_adapter(path.z, 6, t.list, t.n); /* rank 3: scale 2 */
    struct merge m = { &t, 2 * 0.75f };
    struct model_edit edit = { .change = merge_tensor, .ctx = &m };
    copy_model(model, merged.z, &edit);
    bz_engine *e = open_engine(model, backend), *whole = open_engine(merged.z, backend);
    float *base = logits_of(e), *want = logits_of(whole);
    add(e, path.z, 0.75f);
    check_moved(e, base, part);
    check_logits(e, want, false, part);
    bz_engine_close(e);
    bz_engine_close(whole);
    free(base);
    free(want);
    remove(path.z);
    remove(merged.z);
}

/* ---- time ---- */

/* Switching an adapter on between steps changes the steps after it, not those before. */
static void check_between_steps(const char *model)
{
    enum { BEFORE = 12 };
    struct targets t;
    struct tmp_path path = tmp_path("lora.gguf");
    find_targets(&t, model, "");
    write_adapter(path.z, 3, t.list, t.n);
    bz_engine *e = open_engine(model, BZ_BACKEND_CPU);
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    int32_t *ids = random_ids(e, N, 61);
    bz_session *s = open_session(e, N, N);

    feed_pieces(s, ids, BEFORE, BEFORE); /* added half-way */
    int id = add(e, path.z, 1);
    feed_pieces(s, ids + BEFORE, N - BEFORE, 1);
    float *want = keep_logits(s, n_vocab);

    bz_session_truncate(s, 0, NULL, NULL); /* scale changed half-way */
    CHECK(bz_adapter_scale(e, id, 0, NULL) == BZ_OK);
    feed_pieces(s, ids, BEFORE, BEFORE);
    CHECK(bz_adapter_scale(e, id, 1, NULL) == BZ_OK);
    feed_pieces(s, ids + BEFORE, N - BEFORE, 1);
    CHECK(same_floats(bz_session_logits(s), want, n_vocab));

    bz_session_truncate(s, 0, NULL, NULL); /* on from the start: another history */
    feed_pieces(s, ids, BEFORE, BEFORE);
    feed_pieces(s, ids + BEFORE, N - BEFORE, 1);
    CHECK(largest_difference(bz_session_logits(s), want, n_vocab) > 0.05);
    bz_session_close(s);
    bz_engine_close(e);
    free(want);
    free(ids);
    remove(path.z);
}

/* ---- what has no effect, and what is refused ---- */

/* Layers 3 to 5 of E2B read the keys and values of layers 1 and 2. */
static void check_inert(void)
{
    struct targets t = { 0 };
    struct tmp_path path = tmp_path("lora.gguf");
    add_target(&t, "blk.3.attn_k.weight", 96, 16, 1);
    add_target(&t, "blk.5.attn_v.weight", 96, 32, 1);
    write_adapter(path.z, 3, t.list, t.n);
    bz_engine *e = open_engine(E2B, BZ_BACKEND_CPU);
    float *base = logits_of(e);
    int id = add(e, path.z, 1);
    check_logits(e, base, true, "inert targets");
    CHECK(bz_adapter_scale(e, id, 3, NULL) == BZ_OK && bz_adapter_remove(e, id, NULL) == BZ_OK);
    bz_engine_close(e);
    free(base);
    remove(path.z);
}

static void check_refused(void)
{
    static const struct {
        const char *name;
        uint32_t n_in, n_out, n_expert, rank;
        const char *says; /* the sentence names it */
    } bad[] = {
        { "blk.0.attn_q.weight", 65, 64, 1, 2, "blk.0.attn_q.weight" },
        { "blk.0.attn_q.weight", 64, 63, 1, 2, "blk.0.attn_q.weight" },
        { "blk.0.ffn_down_exps.weight", 32, 64, 7, 2, "blk.0.ffn_down_exps.weight" },
        { "blk.0.ffn_down_exps.weight", 32, 64, 1, 2, "blk.0.ffn_down_exps.weight" },
        { "blk.0.attn_q.weight", 64, 64, 8, 2, "blk.0.attn_q.weight" },
        { "blk.0.attn_q.weight", 64, 64, 1, 257, "257" },
        { "blk.5.attn_q.weight", 64, 64, 1, 2, "blk.5.attn_q.weight" },
        { "blk.1.attn_v.weight", 64, 32, 1, 2, "blk.1.attn_v.weight" }, /* V is K there */
        { "blk.0.attn_norm.weight", 64, 1, 1, 2, "blk.0.attn_norm.weight" },
        { "blk.00000000000000000000000000000.attn_q.weight", 64, 64, 1, 2, "attn_q" },
        { "blk..attn_q.weight", 64, 64, 1, 2, "attn_q" },
        { "token_embd.weight", 64, 311, 1, 2, "token_embd.weight" },
        { "nonsense", 64, 64, 1, 2, "nonsense" },
    };
    struct tmp_path path = tmp_path("lora.gguf");
    bz_engine *e = open_engine(MOE, BZ_BACKEND_CPU);
    float *base = logits_of(e);
    int64_t live = mem_live();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        /* A good target in front must not stay on. */
        struct lora_spec list[2] = {
            { "blk.2.attn_output.weight", 64, 64, 1, 2, 1, 1 },
            { bad[i].name, bad[i].n_in, bad[i].n_out, bad[i].n_expert, bad[i].rank, 2, 1 },
        };
        struct bz_err err = { "" };
        int id = -5;
        write_adapter(path.z, 2, list, 2);
        enum bz_status st = bz_adapter_add(e, path.z, 1, &id, &err);
        CHECK_MSG(st != BZ_OK && st != BZ_ERR_MEMORY && id == -5, "%s", bad[i].name);
        CHECK_MSG(strstr(err.text, bad[i].says) && !strchr(err.text, '\n'), "%s", err.text);
        check_logits(e, base, true, "after a refused adapter");
    }
    CHECK(bz_adapter_add(e, MOE, 1, &(int) { 0 }, NULL) == BZ_ERR_FORMAT); /* a model */
    CHECK(bz_adapter_add(e, "build/tmp/no/such/file", 1, &(int) { 0 }, NULL) != BZ_OK);
    for (int id = -1; id < 3; id++) {
        struct bz_err err = { "" };
        CHECK(bz_adapter_scale(e, id, 1, &err) == BZ_ERR_NOT_FOUND && err.text[0]);
        CHECK(bz_adapter_remove(e, id, &err) == BZ_ERR_NOT_FOUND);
    }
    CHECK(mem_live() <= live + 1); /* the list of adapters may have grown */
    check_logits(e, base, true, "after all of them");
    bz_engine_close(e);
    free(base);
    remove(path.z);
}

static void check_memory(void)
{
    struct targets t;
    struct tmp_path path = tmp_path("lora.gguf");
    find_targets(&t, MOE, "blk.0");
    write_adapter(path.z, 3, t.list, t.n);
    bz_engine *e = open_engine(MOE, BZ_BACKEND_CPU);
    float *base = logits_of(e);
    bool done = false;
    uint64_t k = 1;
    for (; !done && k < 10000; k++) {
        struct bz_err err = { "" };
        int id;
        mem_fail_at(k);
        enum bz_status st = bz_adapter_add(e, path.z, 1, &id, &err);
        mem_fail_at(0);
        done = st == BZ_OK;
        CHECK_MSG(done || (st == BZ_ERR_MEMORY && err.text[0]), "allocation %u: %d %s", (unsigned)k,
                  (int)st, err.text);
        if (done) CHECK(bz_adapter_remove(e, id, NULL) == BZ_OK);
        if (done || k % 16 == 0) check_logits(e, base, true, "after a failed allocation");
    }
    CHECK(done && k > 20);
    bz_engine_close(e);
    free(base);
    remove(path.z);
}

int main(void)
{
    int64_t live = mem_live();
    TEST("zero B and scale 0 are the base model; removing restores it, to the bit")
    {
        for (int m = 0; m < N_GOLDEN; m++) check_zero_and_remove(golden[m], BZ_BACKEND_CPU);
        check_zero_and_remove(KV, BZ_BACKEND_REFERENCE);
    }
    TEST("scales add up, and alpha / rank is one of them")
    for (int m = 0; m < N_GOLDEN; m++) check_scales(golden[m]);
    TEST("an adapter on all linears is the model with merged weights")
    {
        for (int m = 0; m < N_GOLDEN; m++) check_merged(golden[m], "", BZ_BACKEND_CPU);
        check_merged(MOE, "", BZ_BACKEND_REFERENCE);
        check_merged(E4B, "", BZ_BACKEND_REFERENCE);
    }
    TEST("so is one on each kind of linear alone")
    {
        static const char *const kinds[] = { "attn_q",    "attn_k", "attn_v",  "attn_output",
                                             "ffn_gate.", "ffn_up", "ffn_down" };
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            check_merged(KV, kinds[i], BZ_BACKEND_CPU);
        check_merged(E2B, "inp_gate", BZ_BACKEND_CPU);
        check_merged(E2B, ".proj", BZ_BACKEND_CPU);
        check_merged(MOE, "ffn_gate_inp", BZ_BACKEND_CPU);
        check_merged(MOE, "ffn_gate_up_exps", BZ_BACKEND_CPU);
        check_merged(MOE, "ffn_down_exps", BZ_BACKEND_CPU);
    }
    TEST("where a layer has no V, an adapter on K moves its values too")
    check_merged(KV, "blk.2.attn_k", BZ_BACKEND_CPU);
    TEST("an adapter works from the step on at which it is switched on")
    for (int m = 0; m < N_GOLDEN; m++) check_between_steps(golden[m]);
    TEST("keys of a layer that reads another's cache are accepted and do nothing") check_inert();
    TEST("an adapter that does not fit is refused with one sentence, and nothing of it stays")
    check_refused();
    TEST("adding an adapter survives any failed allocation") check_memory();
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
