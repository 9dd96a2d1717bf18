/* model_fixture.h - the small random models of tests/golden, copies of them with something changed,
 * and adapters for them. Everything goes through the public interface and gguf_write.h.
 */
#ifndef BEZEL_TESTS_MODEL_FIXTURE_H
#define BEZEL_TESTS_MODEL_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bezel.h"
#include "check.h"
#include "io/gguf.h"
#include "io/gguf_write.h"
#include "quant/quant.h"

/* The shapes of the golden models: e2b and e4b share keys and have per-layer embeddings, kv has
 * layers without V, moe has experts. Their windows have 12 to 20 tokens. */
#define N_GOLDEN 4
static const char *const golden[N_GOLDEN] = {
    "tests/golden/model_e2b.gguf",
    "tests/golden/model_e4b.gguf",
    "tests/golden/model_kv.gguf",
    "tests/golden/model_moe.gguf",
};
#define E2B golden[0]
#define E4B golden[1]
#define KV  golden[2]
#define MOE golden[3]

/* A path below build/tmp that no other process uses. */
struct tmp_path {
    char z[96];
};

static inline struct tmp_path tmp_path(const char *name)
{
    struct tmp_path p;
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    snprintf(p.z, sizeof p.z, "build/tmp/%ld_%s", (long)getpid(), name);
    return p;
}

static inline bz_engine *open_engine_with(const char *path, enum bz_backend backend,
                                          unsigned n_threads)
{
    struct bz_engine_options o = { .backend = backend, .n_threads = n_threads };
    struct bz_err err = { "" };
    bz_engine *e = NULL;
    enum bz_status st = bz_engine_open(&e, path, &o, &err);
    CHECK_MSG(st == BZ_OK, "%s: %s", path, err.text);
    if (st) exit(1);
    return e;
}

/* One thread: these models are so small that more only wait for each other. */
static inline bz_engine *open_engine(const char *path, enum bz_backend backend)
{
    return open_engine_with(path, backend, 1);
}

static inline bz_session *open_session_of(bz_engine *e, uint32_t n_context, uint32_t n_batch,
                                          enum bz_cache cache)
{
    struct bz_session_options o = { .n_context = n_context, .n_batch = n_batch, .cache = cache };
    struct bz_err err = { "" };
    bz_session *s = NULL;
    enum bz_status st = bz_session_open(&s, e, &o, &err);
    CHECK_MSG(st == BZ_OK, "%s", err.text);
    if (st) exit(1);
    return s;
}

static inline bz_session *open_session(bz_engine *e, uint32_t n_context, uint32_t n_batch)
{
    return open_session_of(e, n_context, n_batch, BZ_CACHE_F32);
}

/* n random tokens of the engine's vocabulary, to be freed. */
static inline int32_t *random_ids(const bz_engine *e, size_t n, uint64_t seed)
{
    struct rng rng = { seed };
    int32_t *ids = malloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)rng_below(&rng, bz_engine_info(e).n_vocab);
    return ids;
}

/* Feed in pieces of `piece`, keeping the last logits. */
static inline void feed_pieces(bz_session *s, const int32_t *ids, size_t n, size_t piece)
{
    struct bz_err err = { "" };
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < piece ? n - at : piece;
        CHECK_MSG(!bz_session_feed(s, ids + at, k, 1, NULL, NULL, &err), "%s", err.text);
    }
}

/* A copy of the last logits, to be freed. */
static inline float *keep_logits(const bz_session *s, uint32_t n_vocab)
{
    const float *z = bz_session_logits(s);
    float *copy = malloc(n_vocab * sizeof *copy);
    CHECK(z != NULL);
    for (uint32_t i = 0; i < n_vocab; i++) copy[i] = z ? z[i] : NAN;
    return copy;
}

static inline double largest_difference(const float *a, const float *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= most)) most = d; /* NaN stays */
    }
    return most;
}

static inline bool same_floats(const float *a, const float *b, size_t n)
{
    return a && b && memcmp(a, b, n * sizeof *a) == 0;
}

/* ---- changed copies ---- */

struct model_edit {
    uint32_t n_context; /* 0: as it is */
    const char *key;    /* of a number that becomes `number`, in its own type; NULL: none */
    double number;
    const int32_t *suppress;
    size_t n_suppress;
    /* Sees every tensor as floats. True: the copy has them, changed, as F32. */
    bool (*change)(void *ctx, struct str name, const uint64_t ne[4], float *v);
    void *ctx;
};

/* The tensor's floats when the edit changes them, else NULL. */
static inline float *changed_tensor(const struct model_edit *edit, const struct gguf *g,
                                    const struct gguf_tensor *t)
{
    const struct quant_format *f = quant_find(t->type);
    size_t n = (size_t)(t->ne[0] * t->ne[1] * t->ne[2]);
    if (!edit->change) return NULL;
    uint8_t *bytes = malloc(t->n_bytes);
    float *v = malloc(n * sizeof *v);
    CHECK(source_read(&g->sources[0], t->offset, bytes, t->n_bytes, NULL) == BZ_OK);
    f->decode(bytes, v, n);
    free(bytes);
    if (edit->change(edit->ctx, t->name, t->ne, v)) return v;
    free(v);
    return NULL;
}

static inline void copy_model(const char *from, const char *to, const struct model_edit *edit)
{
    struct gguf g = { 0 };
    struct gguf_writer *w = NULL;
    struct bz_err err = { "" };
    CHECK(gguf_open_file(&g, from, &err) == BZ_OK && gguf_writer_open(&w, to, &err) == BZ_OK);
    if (!w) exit(1);
    for (uint64_t i = 0; i < g.n_kv; i++) {
        bool is_context = str_is(g.kvs[i].key, "gemma4.context_length") && edit->n_context;
        bool is_key = edit->key && str_is(g.kvs[i].key, edit->key);
        if (is_context) gguf_put_u32(w, "gemma4.context_length", edit->n_context);
        else if (is_key && g.kvs[i].type == GGUF_F32)
            gguf_put_f32(w, edit->key, (float)edit->number);
        else if (is_key) gguf_put_u32(w, edit->key, (uint32_t)edit->number);
        else gguf_put_kv(w, &g.kvs[i]);
    }
    if (edit->n_suppress)
        gguf_put_array(w, "tokenizer.ggml.suppress_tokens", GGUF_I32, edit->suppress,
                       edit->n_suppress);
    float **changed = calloc(g.n_tensors, sizeof *changed);
    for (uint64_t i = 0; i < g.n_tensors; i++) {
        const struct gguf_tensor *t = &g.tensors[i];
        char name[128];
        snprintf(name, sizeof name, "%.*s", STR_ARG(t->name));
        changed[i] = changed_tensor(edit, &g, t);
        gguf_put_tensor(w, name, changed[i] ? QUANT_F32 : t->type, t->n_dims, t->ne);
    }
    for (uint64_t i = 0; i < g.n_tensors; i++) {
        const struct gguf_tensor *t = &g.tensors[i];
        size_t n = changed[i] ? (size_t)(t->ne[0] * t->ne[1] * t->ne[2]) * 4 : (size_t)t->n_bytes;
        uint8_t *bytes = malloc(n);
        if (changed[i]) memcpy(bytes, changed[i], n);
        else CHECK(source_read(&g.sources[0], t->offset, bytes, n, NULL) == BZ_OK);
        gguf_put_data(w, bytes, n);
        free(bytes);
        free(changed[i]);
    }
    free(changed);
    CHECK_MSG(gguf_writer_finish(w, &err) == BZ_OK, "%s", err.text);
    gguf_close(&g);
}

/* ---- adapters ---- */

/* One target. Its numbers follow from the seed, so that a test can compute with them too. */
struct lora_spec {
    const char *name;
    uint32_t n_in, n_out, n_expert, rank;
    uint64_t seed;
    float b_size; /* of the numbers of B; 0: B is zero and the adapter does nothing */
};

static inline size_t lora_a_size(const struct lora_spec *l)
{
    return (size_t)l->n_expert * l->rank * l->n_in;
}

static inline size_t lora_b_size(const struct lora_spec *l)
{
    return (size_t)l->n_expert * l->n_out * l->rank;
}

/* a: n_expert x rank x n_in, then b: n_expert x n_out x rank, in one block to be freed. */
static inline float *lora_values(const struct lora_spec *l)
{
    struct rng rng = { l->seed };
    size_t n_a = lora_a_size(l), n_b = lora_b_size(l);
    float *v = malloc((n_a + n_b) * sizeof *v);
    for (size_t i = 0; i < n_a + n_b; i++) {
        float u = 2 * rng_unit(rng_next(&rng)) - 1;
        v[i] = i < n_a ? u / sqrtf((float)l->n_in) : u * l->b_size;
    }
    return v;
}

static inline void write_adapter_for(const char *path, const char *arch, float alpha,
                                     const struct lora_spec *list, size_t n)
{
    struct gguf_writer *w = NULL;
    struct bz_err err = { "" };
    char name[128];
    CHECK(gguf_writer_open(&w, path, &err) == BZ_OK);
    if (!w) exit(1);
    gguf_put_str(w, "general.architecture", str_of(arch));
    gguf_put_str(w, "general.type", str_of("adapter"));
    gguf_put_str(w, "adapter.type", str_of("lora"));
    gguf_put_f32(w, "adapter.lora.alpha", alpha);
    for (size_t i = 0; i < n; i++) {
        const struct lora_spec *l = &list[i];
        uint32_t n_dims = l->n_expert > 1 ? 3 : 2;
        snprintf(name, sizeof name, "%s.lora_a", l->name);
        gguf_put_tensor(w, name, QUANT_F32, n_dims, (uint64_t[]) { l->n_in, l->rank, l->n_expert });
        snprintf(name, sizeof name, "%s.lora_b", l->name);
        gguf_put_tensor(w, name, QUANT_F32, n_dims,
                        (uint64_t[]) { l->rank, l->n_out, l->n_expert });
    }
    for (size_t i = 0; i < n; i++) {
        float *v = lora_values(&list[i]);
        gguf_put_data(w, v, lora_a_size(&list[i]) * sizeof *v);
        gguf_put_data(w, v + lora_a_size(&list[i]), lora_b_size(&list[i]) * sizeof *v);
        free(v);
    }
    CHECK_MSG(gguf_writer_finish(w, &err) == BZ_OK, "%s", err.text);
}

static inline void write_adapter(const char *path, float alpha, const struct lora_spec *list,
                                 size_t n)
{
    write_adapter_for(path, "gemma4", alpha, list, n);
}

#endif
