#include "model/config.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"

enum { KEY_MAX = 96 };

/* "gemma4." + name */
static const char *full_key(char out[KEY_MAX], const char *name)
{
    snprintf(out, KEY_MAX, "gemma4.%s", name);
    return out;
}

/* An integer in [min, max]; absent: `absent`, or an error when absent is UINT64_MAX. */
static enum bz_status read_int(const struct gguf *g, const char *name, uint64_t absent,
                               uint64_t min, uint64_t max, uint32_t *out, struct bz_err *err)
{
    char key[KEY_MAX];
    uint64_t v = absent;
    bool found = gguf_get_u64(g, full_key(key, name), &v);
    if (!found && absent == UINT64_MAX)
        return fail(err, BZ_ERR_FORMAT, "%s: the metadata has no number %s", g->sources[0].name,
                    key);
    if (found && (v < min || v > max))
        return fail(err, BZ_ERR_FORMAT,
                    "%s: %s is %" PRIu64 "; it must be between %" PRIu64 " and %" PRIu64,
                    g->sources[0].name, key, v, min, max);
    *out = (uint32_t)v;
    return BZ_OK;
}

static enum bz_status read_float(const struct gguf *g, const char *name, double absent, double min,
                                 double max, float *out, struct bz_err *err)
{
    char key[KEY_MAX];
    double v = absent;
    gguf_get_f64(g, full_key(key, name), &v);
    if (!(v >= min && v <= max)) /* also NaN */
        return fail(err, BZ_ERR_FORMAT, "%s: %s is %g; it must be between %g and %g",
                    g->sources[0].name, key, v, min, max);
    *out = (float)v;
    return BZ_OK;
}

/* Element il of a per-layer key that may also be one number for all layers. */
static enum bz_status read_layer_int(const struct gguf *g, const char *name, uint32_t il,
                                     uint32_t absent, uint32_t *out, struct bz_err *err)
{
    char key[KEY_MAX];
    const struct gguf_kv *kv = gguf_find(g, full_key(key, name));
    int64_t v = absent;
    if (kv && !gguf_at_i64(kv, kv->type == GGUF_ARRAY ? il : 0, &v))
        return fail(err, BZ_ERR_FORMAT, "%s: %s has no number for layer %u", g->sources[0].name,
                    key, il);
    if (v < 1 || v > MAX_WIDTH)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: %s of layer %u is %" PRId64 "; it must be between 1 and %d",
                    g->sources[0].name, key, il, v, MAX_WIDTH);
    *out = (uint32_t)v;
    return BZ_OK;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum bz_status st_ = (call);                                                               \
        if (st_) return st_;                                                                       \
    } while (0)

static enum bz_status read_globals(struct config *c, const struct gguf *g, uint32_t *n_shared,
                                   struct bz_err *err)
{
    const uint64_t required = UINT64_MAX;
    TRY(read_int(g, "block_count", required, 1, MAX_LAYERS, &c->n_layer, err));
    TRY(read_int(g, "embedding_length", required, 1, MAX_WIDTH, &c->n_embd, err));
    TRY(read_int(g, "context_length", required, 1, INT32_MAX, &c->n_ctx, err));
    TRY(read_int(g, "attention.head_count", required, 1, 4096, &c->n_head, err));
    TRY(read_int(g, "attention.sliding_window", required, 1, INT32_MAX, &c->n_swa, err));
    TRY(read_int(g, "attention.shared_kv_layers", 0, 0, MAX_LAYERS, n_shared, err));
    TRY(read_int(g, "embedding_length_per_layer_input", 0, 0, MAX_WIDTH, &c->n_ple, err));
    TRY(read_int(g, "expert_count", 0, 0, MAX_EXPERTS, &c->n_expert, err));
    TRY(read_int(g, "expert_used_count", 0, 0, MAX_EXPERTS_USED, &c->n_expert_used, err));
    TRY(read_int(g, "expert_feed_forward_length", 0, 0, MAX_WIDTH, &c->n_ff_expert, err));
    TRY(read_float(g, "attention.layer_norm_rms_epsilon", -1, 0, 1, &c->eps, err));
    TRY(read_float(g, "final_logit_softcapping", 0, 0, 1e6, &c->softcap, err));
    TRY(read_float(g, "rope.freq_base", 10000, 1, 1e12, &c->rope_base, err));
    TRY(read_float(g, "rope.freq_base_swa", 10000, 1, 1e12, &c->rope_base_swa, err));
    const char *name = g->sources[0].name;
    if (c->n_expert && (!c->n_expert_used || c->n_expert_used > c->n_expert || !c->n_ff_expert))
        return fail(err, BZ_ERR_FORMAT, "%s: %u experts with %u used, %u wide make no sense", name,
                    c->n_expert, c->n_expert_used, c->n_ff_expert);
    if (*n_shared && *n_shared + 2 > c->n_layer)
        return fail(err, BZ_ERR_FORMAT, "%s: %u of %u layers share keys; two must own them", name,
                    *n_shared, c->n_layer);

    const struct gguf_kv *tokens = gguf_find(g, "tokenizer.ggml.tokens");
    if (!tokens || tokens->type != GGUF_ARRAY || tokens->n < 1 || tokens->n > INT32_MAX)
        return fail(err, BZ_ERR_FORMAT, "%s: the metadata has no vocabulary", name);
    c->n_vocab = (uint32_t)tokens->n;
    return BZ_OK;
}

static enum bz_status read_layer(struct config *c, const struct gguf *g, uint32_t il,
                                 struct bz_err *err)
{
    struct layer_config *l = &c->layers[il];
    const char *name = g->sources[0].name;
    char key[KEY_MAX];
    int64_t swa = 0;
    const struct gguf_kv *pattern = gguf_find(g, full_key(key, "attention.sliding_window_pattern"));
    if (!pattern || pattern->type != GGUF_ARRAY || !gguf_at_i64(pattern, il, &swa))
        return fail(err, BZ_ERR_FORMAT, "%s: %s has no entry for layer %u", name, key, il);
    l->swa = swa != 0;
    TRY(read_layer_int(g, "feed_forward_length", il, 0, &l->n_ff, err));
    TRY(read_layer_int(g, "attention.head_count_kv", il, c->n_head, &l->n_kv_head, err));
    uint32_t global_default = c->n_embd / c->n_head, value_dim;
    const char *length = l->swa ? "attention.key_length_swa" : "attention.key_length";
    TRY(read_int(g, length, l->swa ? UINT64_MAX : global_default, 2, 65536, &l->head_dim, err));
    length = l->swa ? "attention.value_length_swa" : "attention.value_length";
    TRY(read_int(g, length, l->head_dim, 2, 65536, &value_dim, err));
    if (value_dim != l->head_dim || l->head_dim % 2)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: layer %u has keys of %u and values of %u; Gemma 4 has one even size", name,
                    il, l->head_dim, value_dim);
    if (c->n_head % l->n_kv_head)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: layer %u has %u heads for %u key heads; that does not divide", name, il,
                    c->n_head, l->n_kv_head);

    l->donor = il < c->n_own ? (int32_t)il : (int32_t)(l->swa ? c->n_own - 2 : c->n_own - 1);
    const struct layer_config *d = &c->layers[l->donor];
    if (il >= c->n_own &&
        (d->swa != l->swa || d->head_dim != l->head_dim || d->n_kv_head != l->n_kv_head))
        return fail(err, BZ_ERR_FORMAT,
                    "%s: layer %u cannot share the keys of layer %d: they differ in shape", name,
                    il, l->donor);
    return BZ_OK;
}

enum bz_status config_read(struct config *out, const struct gguf *g, struct bz_err *err)
{
    struct str arch = { 0 };
    if (!gguf_get_str(g, "general.architecture", &arch))
        return fail(err, BZ_ERR_FORMAT, "%s: the metadata names no architecture",
                    g->sources[0].name);
    if (!str_is(arch, "gemma4"))
        return fail(err, BZ_ERR_UNSUPPORTED, "%s: architecture \"%.*s\"; this build runs gemma4",
                    g->sources[0].name, STR_ARG(arch));
    struct config c = { 0 };
    uint32_t n_shared = 0;
    enum bz_status st = read_globals(&c, g, &n_shared, err);
    if (st) return st;
    c.n_own = c.n_layer - n_shared;
    c.layers = mem_alloc(c.n_layer, sizeof *c.layers);
    if (!c.layers) return fail_memory(err, c.n_layer * sizeof *c.layers);
    for (uint32_t il = 0; il < c.n_layer && st == BZ_OK; il++) st = read_layer(&c, g, il, err);
    if (st) {
        config_free(&c);
        return st;
    }
    *out = c;
    return BZ_OK;
}

void config_free(struct config *c)
{
    mem_free(c->layers);
    *c = (struct config) { 0 };
}
