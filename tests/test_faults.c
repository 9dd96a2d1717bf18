/* test_faults.c - a model opened and used while memory runs out, and from files that are cut short
 * or damaged: always a status and a sentence, never a leak or a crash. */
#include "diffusion_fixture.h"

enum { N_FED = 3 };

/* A canvas of two steps, and the logits of a text model. */
static enum bz_status go_on(bz_engine *e, bz_session *s, struct bz_err *err)
{
    struct bz_diffusion how = bz_diffusion_defaults(e);
    struct bz_generate_options o = { .diffusion = &how };
    CHECK((bz_session_logits(s) != NULL) == !bz_engine_info(e).n_canvas);
    how.n_steps = 2;
    how.n_canvases = 1;
    return bz_engine_info(e).n_canvas ? bz_generate(s, &o, NULL, err) : BZ_OK;
}

/* Open the model, open a session, feed three tokens, go on; close what was opened. */
static enum bz_status use_model(const char *path, enum bz_backend backend, struct bz_err *err)
{
    const struct bz_engine_options o = { .backend = backend, .n_threads = 1 };
    const struct bz_session_options so = { .n_context = 32, .n_batch = 8 };
    const int32_t ids[N_FED] = { 7, 1, 12 };
    bz_engine *e = NULL;
    bz_session *s = NULL;
    enum bz_status st = bz_engine_open(&e, path, &o, err);
    if (st == BZ_OK) st = bz_session_open(&s, e, &so, err);
    if (st == BZ_OK) st = bz_session_feed(s, ids, N_FED, 1, NULL, NULL, err);
    if (st == BZ_OK) st = go_on(e, s, err);
    bz_session_close(s);
    bz_engine_close(e);
    return st;
}

/* Every allocation on the way fails once. */
static void check_memory(const char *path, enum bz_backend backend)
{
    int64_t live = mem_live();
    bool failed = true;
    uint64_t k = 1;
    for (; failed; k++) {
        struct bz_err err = { "" };
        uint64_t before = mem_count();
        mem_fail_at(k);
        enum bz_status st = use_model(path, backend, &err);
        mem_fail_at(0);
        failed = mem_count() - before >= k;
        CHECK_MSG(st == (failed ? BZ_ERR_MEMORY : BZ_OK), "allocation %u: status %d: %s",
                  (unsigned)k, (int)st, err.text);
        CHECK(!failed || err.text[0]);
        CHECK_MSG(mem_live() == live, "allocation %u: %d leaked", (unsigned)k,
                  (int)(mem_live() - live));
    }
    CHECK(k > 100);
}

/* What a session would take is known, or is told to be unknown. */
static void check_estimate(const char *path)
{
    const struct bz_engine_options o = { .backend = BZ_BACKEND_CPU, .n_threads = 1 };
    const struct bz_session_options so = { .n_context = 32, .n_batch = 8 };
    struct bz_err err;
    bz_engine *e = NULL;
    CHECK(bz_engine_open(&e, path, &o, &err) == BZ_OK);
    uint64_t want = bz_session_bytes(e, &so), k = 1;
    CHECK(want > 0 && want < UINT64_MAX);
    for (bool failed = true; failed; k++) {
        uint64_t before = mem_count();
        mem_fail_at(k);
        uint64_t got = bz_session_bytes(e, &so);
        mem_fail_at(0);
        failed = mem_count() - before >= k;
        CHECK(got == (failed ? UINT64_MAX : want));
    }
    CHECK(k > 3);
    bz_engine_close(e);
}

/* ---- files ---- */

struct bytes {
    uint8_t *p;
    size_t n, header;
};

static struct bytes read_model(const char *path)
{
    struct gguf g;
    struct bytes b = { 0 };
    CHECK(gguf_open_file(&g, path, NULL) == BZ_OK);
    b.n = (size_t)g.sources[0].size;
    b.header = (size_t)g.header_bytes;
    b.p = malloc(b.n);
    CHECK(source_read(&g.sources[0], 0, b.p, b.n, NULL) == BZ_OK);
    gguf_close(&g);
    return b;
}

static void write_bytes(const char *path, const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(p, 1, n, f) == n);
    CHECK(f && fclose(f) == 0);
}

static void check_cut(const char *path, const struct bytes *b, size_t n)
{
    struct bz_err err = { "" };
    int64_t live = mem_live();
    write_bytes(path, b->p, n);
    enum bz_status st = use_model(path, BZ_BACKEND_CPU, &err);
    CHECK_MSG(st == BZ_ERR_FORMAT && strstr(err.text, path) && !strchr(err.text, '\n'),
              "cut at %zu: status %d: %s", n, (int)st, err.text);
    CHECK(mem_live() == live);
}

/* Bytes of the header changed at random: an error, or a model that can be used. Only the numbers
 * and names of the header are changed: tensors may hold anything. */
static void check_damage(const char *path, const struct bytes *b, uint64_t seed)
{
    struct rng rng = { seed };
    int64_t live = mem_live();
    uint8_t *copy = malloc(b->n);
    memcpy(copy, b->p, b->n);
    for (uint32_t i = 0; i < 1 + seed % 4; i++)
        copy[rng_below(&rng, (uint32_t)b->header)] ^= (uint8_t)(1u << rng_below(&rng, 8));
    write_bytes(path, copy, b->n);
    free(copy);
    struct bz_err err = { "" };
    enum bz_status st = use_model(path, BZ_BACKEND_CPU, &err);
    CHECK_MSG(st == BZ_OK || err.text[0], "seed %u: status %d without a sentence", (unsigned)seed,
              (int)st);
    CHECK(mem_live() == live);
}

/* A key of the metadata, as one number, replaced. */
static void check_lie(const char *path, const struct bytes *b, const char *key, uint32_t value)
{
    size_t n_key = strlen(key), at = 0;
    while (at + n_key < b->header && memcmp(b->p + at, key, n_key) != 0) at++;
    CHECK(at + n_key < b->header);
    uint8_t *copy = malloc(b->n);
    memcpy(copy, b->p, b->n);
    memcpy(copy + at + n_key + 4, &value, 4); /* after the type */
    write_bytes(path, copy, b->n);
    free(copy);
    struct bz_err err = { "" };
    int64_t live = mem_live();
    enum bz_status st = use_model(path, BZ_BACKEND_CPU, &err);
    CHECK_MSG(st == BZ_OK || err.text[0], "%s = %u: status %d", key, value, (int)st);
    CHECK(mem_live() == live);
}

static void check_lies(const char *path, const struct bytes *b)
{
    static const char *const keys[] = {
        "gemma4.block_count",
        "gemma4.context_length",
        "gemma4.embedding_length",
        "gemma4.feed_forward_length",
        "gemma4.attention.head_count",
        "gemma4.attention.key_length",
        "gemma4.attention.value_length",
        "gemma4.attention.key_length_swa",
        "gemma4.attention.layer_norm_rms_epsilon",
        "gemma4.attention.sliding_window",
        "gemma4.attention.shared_kv_layers",
        "gemma4.embedding_length_per_layer_input",
        "gemma4.rope.freq_base",
        "gemma4.final_logit_softcapping",
        "gemma4.expert_count",
        "gemma4.expert_used_count",
        "gemma4.expert_feed_forward_length",
        "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.eos_token_id",
    };
    static const uint32_t values[] = { 0,          1,          2,          3,          4,
                                       5,          6,          7,          8,          64,
                                       0x00010000, 0x00100000, 0x7fffffff, 0x80000000, 0xffffffff,
                                       0x7fc00000, 0x7f800000, 0xff800000, 0x00000400 };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            check_lie(path, b, keys[i], values[k]);
}

int main(void)
{
    struct tmp_path canvas = tmp_path("canvas.gguf");
    write_diffusion(canvas.z, MOE, &(struct diffusion_edit) { .n_canvas = 5 });
    TEST("opening a model, a session and feeding it survive any failed allocation")
    {
        check_memory(canvas.z, BZ_BACKEND_CPU);
        check_memory(canvas.z, BZ_BACKEND_REFERENCE);
        check_memory(MOE, BZ_BACKEND_CPU);
        check_memory(E2B, BZ_BACKEND_CPU);
        check_memory(KV, BZ_BACKEND_REFERENCE);
    }
    TEST("the estimate of a session is the same, or told to be unknown, at any failed allocation")
    {
        check_estimate(E2B);
        check_estimate(canvas.z);
    }
    unlink(canvas.z);
    struct tmp_path path = tmp_path("faults.gguf");
    TEST("a model file cut anywhere is an error that names it")
    {
        struct bytes b = read_model(MOE);
        for (size_t n = 0; n < b.header; n += 64) check_cut(path.z, &b, n);
        for (size_t n = b.header; n < b.n - 32; n += (b.n - b.header) / 40)
            check_cut(path.z, &b, n);
        check_cut(path.z, &b, b.n - 32); /* the last tensor has its padding at most */
        free(b.p);
    }
    TEST("a model file damaged in its header is an error or a model")
    {
        struct bytes b = read_model(E2B);
        for (uint64_t seed = 0; seed < 250; seed++) check_damage(path.z, &b, seed);
        free(b.p);
    }
    TEST("metadata that lies is an error or a model")
    {
        struct bytes b = read_model(MOE);
        check_lies(path.z, &b);
        free(b.p);
    }
    TEST("what is not a file, or not a model, is an error")
    {
        struct bz_err err = { "" };
        bz_engine *e = NULL;
        CHECK(bz_engine_open(&e, "", NULL, &err) == BZ_ERR_ARGUMENT);
        CHECK(bz_engine_open(&e, "build/tmp/no-such.gguf", NULL, &err) == BZ_ERR_NOT_FOUND);
        CHECK(bz_engine_open(&e, "tests", NULL, &err) != BZ_OK);
        CHECK(bz_engine_open(&e, "tests/check.h", NULL, &err) == BZ_ERR_FORMAT);
        CHECK(bz_engine_open(&e, "tests/golden/taps_kv.gguf", NULL, &err) != BZ_OK);
        CHECK(e == NULL && err.text[0]);
        bz_engine_close(NULL);
    }
    TEST("a vocabulary alone neither computes nor takes adapters")
    {
        const struct bz_engine_options o = { .vocab_only = true };
        struct bz_err err = { "" };
        bz_engine *e = NULL;
        bz_session *s = NULL;
        int id;
        CHECK(bz_engine_open(&e, KV, &o, &err) == BZ_OK);
        CHECK(bz_session_open(&s, e, NULL, &err) == BZ_ERR_ARGUMENT && !s);
        CHECK(bz_adapter_add(e, KV, 1, &id, &err) == BZ_ERR_ARGUMENT);
        CHECK(bz_engine_info(e).n_vocab == 317);
        bz_engine_close(e);
    }
    remove(path.z);
    TEST("nothing is left allocated") CHECK(mem_live() == 0);
    return check_done();
}
