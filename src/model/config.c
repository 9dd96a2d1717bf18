#include "model/config.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"

enum { KEY_MAX = 96 };

/* The metadata whose keys begin with `prefix`. */
struct keys {
    const struct gguf *g;
    const char *prefix;
    struct bz_err *err;
};

static const char *file_of(const struct keys *k)
{
    return k->g->sources[0].name;
}

/* prefix + "." + name */
static const char *full_key(char out[KEY_MAX], const struct keys *k, const char *name)
{
    snprintf(out, KEY_MAX, "%s.%s", k->prefix, name);
    return out;
}

/* A key that is there with a text, a negative number or a list of texts is not taken for absent. */
static enum bz_status fail_number(const struct keys *k, const char *key, const char *kind)
{
    return fail(k->err, BZ_ERR_FORMAT, "%s: %s is not %s", file_of(k), key, kind);
}

/* An integer in [min, max]; absent: `absent`, or an error when absent is UINT64_MAX. */
static enum bz_status read_int(const struct keys *k, const char *name, uint64_t absent,
                               uint64_t min, uint64_t max, uint32_t *out)
{
    char key[KEY_MAX];
    uint64_t v = absent;
    bool found = gguf_get_u64(k->g, full_key(key, k, name), &v);
    if (!found && gguf_find(k->g, key)) return fail_number(k, key, "a whole number from 0");
    if (!found && absent == UINT64_MAX)
        return fail(k->err, BZ_ERR_FORMAT, "%s: the metadata has no number %s", file_of(k), key);
    if (found && (v < min || v > max))
        return fail(k->err, BZ_ERR_FORMAT,
                    "%s: %s is %" PRIu64 "; it must be between %" PRIu64 " and %" PRIu64,
                    file_of(k), key, v, min, max);
    *out = (uint32_t)v;
    return BZ_OK;
}

static enum bz_status read_float(const struct keys *k, const char *name, double absent, double min,
                                 double max, float *out)
{
    char key[KEY_MAX];
    double v = absent;
    if (!gguf_get_f64(k->g, full_key(key, k, name), &v) && gguf_find(k->g, key))
        return fail_number(k, key, "a number");
    if (!(v >= min && v <= max)) /* also NaN */
        return fail(k->err, BZ_ERR_FORMAT, "%s: %s is %g; it must be between %g and %g", file_of(k),
                    key, v, min, max);
    *out = (float)v;
    return BZ_OK;
}

/* A yes or no that must not be yes; absent: no. */
static enum bz_status refuse_flag(const struct keys *k, const char *name, const char *why)
{
    char key[KEY_MAX];
    bool v = false;
    if (!gguf_get_bool(k->g, full_key(key, k, name), &v) && gguf_find(k->g, key))
        return fail_number(k, key, "true or false");
    if (v) return fail(k->err, BZ_ERR_UNSUPPORTED, "%s: %s is true; %s", file_of(k), key, why);
    return BZ_OK;
}

/* Element il of a per-layer key that may also be one number for all layers. */
static enum bz_status read_layer_int(const struct keys *k, const char *name, uint32_t il,
                                     uint32_t absent, uint32_t *out)
{
    char key[KEY_MAX];
    const struct gguf_kv *kv = gguf_find(k->g, full_key(key, k, name));
    int64_t v = absent;
    if (kv && !gguf_at_i64(kv, kv->type == GGUF_ARRAY ? il : 0, &v))
        return fail(k->err, BZ_ERR_FORMAT, "%s: %s has no number for layer %u", file_of(k), key,
                    il);
    if (v < 1 || v > MAX_WIDTH)
        return fail(k->err, BZ_ERR_FORMAT,
                    "%s: %s of layer %u is %" PRId64 "; it must be between 1 and %d", file_of(k),
                    key, il, v, MAX_WIDTH);
    *out = (uint32_t)v;
    return BZ_OK;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum bz_status st_ = (call);                                                               \
        if (st_) return st_;                                                                       \
    } while (0)

static enum bz_status read_globals(struct config *c, const struct keys *k, uint32_t *n_shared)
{
    const uint64_t required = UINT64_MAX;
    TRY(read_int(k, "block_count", required, 1, MAX_LAYERS, &c->n_layer));
    TRY(read_int(k, "embedding_length", required, 1, MAX_WIDTH, &c->n_embd));
    TRY(read_int(k, "context_length", required, 1, INT32_MAX, &c->n_ctx));
    TRY(read_int(k, "attention.head_count", required, 1, 4096, &c->n_head));
    TRY(read_int(k, "attention.sliding_window", required, 1, INT32_MAX, &c->n_swa));
    TRY(read_int(k, "attention.shared_kv_layers", 0, 0, MAX_LAYERS, n_shared));
    TRY(read_int(k, "embedding_length_per_layer_input", 0, 0, MAX_WIDTH, &c->n_ple));
    TRY(read_int(k, "expert_count", 0, 0, MAX_EXPERTS, &c->n_expert));
    TRY(read_int(k, "expert_used_count", 0, 0, MAX_EXPERTS_USED, &c->n_expert_used));
    TRY(read_int(k, "expert_feed_forward_length", 0, 0, MAX_WIDTH, &c->n_ff_expert));
    TRY(read_float(k, "attention.layer_norm_rms_epsilon", -1, 0, 1, &c->eps));
    TRY(read_float(k, "final_logit_softcapping", 0, 0, 1e6, &c->softcap));
    TRY(read_float(k, "rope.freq_base", 10000, 1, 1e12, &c->rope_base));
    TRY(read_float(k, "rope.freq_base_swa", 10000, 1, 1e12, &c->rope_base_swa));
    const char *name = file_of(k);
    if (c->n_expert && (!c->n_expert_used || c->n_expert_used > c->n_expert || !c->n_ff_expert))
        return fail(k->err, BZ_ERR_FORMAT, "%s: %u experts with %u used, %u wide make no sense",
                    name, c->n_expert, c->n_expert_used, c->n_ff_expert);
    if (*n_shared && *n_shared + 2 > c->n_layer)
        return fail(k->err, BZ_ERR_FORMAT, "%s: %u of %u layers share keys; two must own them",
                    name, *n_shared, c->n_layer);

    const struct gguf_kv *tokens = gguf_find(k->g, "tokenizer.ggml.tokens");
    if (!tokens || tokens->type != GGUF_ARRAY || tokens->n < 1 || tokens->n > INT32_MAX)
        return fail(k->err, BZ_ERR_FORMAT, "%s: the metadata has no vocabulary", name);
    c->n_vocab = (uint32_t)tokens->n;
    return BZ_OK;
}

static enum bz_status read_layer(struct config *c, const struct keys *k, uint32_t il)
{
    struct layer_config *l = &c->layers[il];
    const char *name = file_of(k);
    char key[KEY_MAX];
    int64_t swa = 0;
    const struct gguf_kv *pattern =
        gguf_find(k->g, full_key(key, k, "attention.sliding_window_pattern"));
    if (!pattern || pattern->type != GGUF_ARRAY || !gguf_at_i64(pattern, il, &swa))
        return fail(k->err, BZ_ERR_FORMAT, "%s: %s has no entry for layer %u", name, key, il);
    l->swa = swa != 0;
    TRY(read_layer_int(k, "feed_forward_length", il, 0, &l->n_ff));
    TRY(read_layer_int(k, "attention.head_count_kv", il, c->n_head, &l->n_kv_head));
    uint32_t global_default = c->n_embd / c->n_head, value_dim;
    const char *length = l->swa ? "attention.key_length_swa" : "attention.key_length";
    TRY(read_int(k, length, l->swa ? UINT64_MAX : global_default, 2, 65536, &l->head_dim));
    length = l->swa ? "attention.value_length_swa" : "attention.value_length";
    TRY(read_int(k, length, l->head_dim, 2, 65536, &value_dim));
    if (value_dim != l->head_dim || l->head_dim % 2)
        return fail(k->err, BZ_ERR_FORMAT,
                    "%s: layer %u has keys of %u and values of %u; Gemma 4 has one even size", name,
                    il, l->head_dim, value_dim);
    if (c->n_head % l->n_kv_head)
        return fail(k->err, BZ_ERR_FORMAT,
                    "%s: layer %u has %u heads for %u key heads; that does not divide", name, il,
                    c->n_head, l->n_kv_head);

    l->donor = il < c->n_own ? (int32_t)il : (int32_t)(l->swa ? c->n_own - 2 : c->n_own - 1);
    const struct layer_config *d = &c->layers[l->donor];
    if (il >= c->n_own &&
        (d->swa != l->swa || d->head_dim != l->head_dim || d->n_kv_head != l->n_kv_head))
        return fail(k->err, BZ_ERR_FORMAT,
                    "%s: layer %u cannot share the keys of layer %d: they differ in shape", name,
                    il, l->donor);
    return BZ_OK;
}

/* The canvas of a diffusion model; its keys begin with "diffusion". The self-conditioning's width
 * is in no key. */
static enum bz_status read_canvas(struct config *c, const struct keys *arch)
{
    const struct keys diffusion = { arch->g, "diffusion", arch->err }, *k = &diffusion;
    const struct gguf_tensor *gate = gguf_tensor_find(arch->g, "self_cond_gate.weight");
    struct bz_err *err = arch->err;
    struct canvas_config *v = &c->canvas;
    TRY(read_int(k, "canvas_length", 256, 1, MAX_CANVAS, &v->n_canvas));
    TRY(read_int(k, "eb_max_steps", 48, 1, MAX_CANVAS_STEPS, &v->n_steps));
    TRY(read_int(k, "eb_stability_threshold", 1, 0, MAX_CANVAS_STEPS, &v->n_stable));
    TRY(read_float(k, "eb_t_min", 0.4, MIN_TEMPERATURE, MAX_TEMPERATURE, &v->t_min));
    TRY(read_float(k, "eb_t_max", 0.8, MIN_TEMPERATURE, MAX_TEMPERATURE, &v->t_max));
    TRY(read_float(k, "eb_entropy_bound", 0.1, 0, MAX_ENTROPY, &v->entropy_bound));
    TRY(read_float(k, "eb_confidence_threshold", 0.005, 0, MAX_ENTROPY, &v->confidence));
    TRY(refuse_flag(k, "shift_logits", "this build runs canvases whose row i is the token at i"));
    TRY(refuse_flag(arch, "attention.causal", "the tokens of a canvas see those after them too"));
    if (c->n_own != c->n_layer || c->n_ple)
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s: a canvas with shared keys or per-layer embeddings; this build runs "
                    "neither",
                    file_of(k));
    if (v->n_canvas > c->n_ctx)
        return fail(err, BZ_ERR_FORMAT, "%s: a canvas of %u tokens in a context of %u", file_of(k),
                    v->n_canvas, c->n_ctx);
    if (!gate)
        return fail(err, BZ_ERR_FORMAT, "%s: tensor self_cond_gate.weight is missing", file_of(k));
    if (gate->ne[1] < 1 || gate->ne[1] > MAX_WIDTH)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: self_cond_gate.weight has %" PRIu64 " rows; it must have 1 to %d",
                    file_of(k), gate->ne[1], MAX_WIDTH);
    v->n_ff = (uint32_t)gate->ne[1];
    return BZ_OK;
}

enum bz_status config_read(struct config *out, const struct gguf *g, struct bz_err *err)
{
    struct str arch = { 0 };
    if (!gguf_get_str(g, "general.architecture", &arch))
        return fail(err, BZ_ERR_FORMAT, "%s: the metadata names no architecture",
                    g->sources[0].name);
    bool canvas = str_is(arch, "diffusion-gemma");
    if (!canvas && !str_is(arch, "gemma4"))
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s: architecture \"%.*s\"; this build runs gemma4 and diffusion-gemma",
                    g->sources[0].name, STR_ARG(arch));
    const struct keys k = { g, canvas ? "diffusion-gemma" : "gemma4", err };
    struct config c = { 0 };
    uint32_t n_shared = 0;
    enum bz_status st = read_globals(&c, &k, &n_shared);
    if (st) return st;
    c.n_own = c.n_layer - n_shared;
    c.layers = mem_alloc(c.n_layer, sizeof *c.layers);
    if (!c.layers) return fail_memory(err, c.n_layer * sizeof *c.layers);
    for (uint32_t il = 0; il < c.n_layer && st == BZ_OK; il++) st = read_layer(&c, &k, il);
    if (st == BZ_OK && canvas) st = read_canvas(&c, &k);
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
