#include "model/weights.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sha256.h"

enum need { ALWAYS, MAYBE, OWNER, OWNER_V, PLE, MOE, CANVAS, CANVAS_MAYBE };

/* One line of weights.def with its shape worked out. */
struct entry {
    const char *name;
    size_t field; /* offset of its struct weight in struct model or struct layer */
    uint32_t in, out, n_mat;
    enum need need;
    bool adapt;
};

static uint32_t q_width(const struct config *c, const struct layer_config *l)
{
    return c->n_head * l->head_dim;
}

static uint32_t kv_width(const struct layer_config *l)
{
    return l->n_kv_head * l->head_dim;
}

/* Head size of the global layers; a model without any has no use for it. */
static uint32_t global_head_dim(const struct config *c)
{
    for (uint32_t il = c->n_layer; il-- > 0;)
        if (!c->layers[il].swa) return c->layers[il].head_dim;
    return 2;
}

enum {
#define GLOBAL(...) +1
#define LAYER(...)
    N_GLOBAL = 0
#include "model/weights.def"
#undef GLOBAL
#undef LAYER
    ,
#define GLOBAL(...)
#define LAYER(...) +1
    N_LAYER = 0
#include "model/weights.def"
#undef GLOBAL
#undef LAYER
};

static void list_globals(struct entry e[N_GLOBAL], const struct config *c)
{
#define GLOBAL(field, name, in, out, n, need, adapt)                                               \
    *e++ = (struct entry) { name, offsetof(struct model, field), in, out, n, need, adapt };
#define LAYER(...)
#include "model/weights.def"
#undef GLOBAL
#undef LAYER
}

static void list_layer(struct entry e[N_LAYER], const struct config *c,
                       const struct layer_config *l)
{
#define GLOBAL(...)
#define LAYER(field, name, in, out, n, need, adapt)                                                \
    *e++ = (struct entry) { name, offsetof(struct layer, field), in, out, n, need, adapt };
#include "model/weights.def"
#undef GLOBAL
#undef LAYER
}

static struct weight *field_of(void *owner, const struct entry *e)
{
    return (struct weight *)(void *)((char *)owner + e->field);
}

/* ---- binding one tensor ---- */

struct binder {
    struct model *m;
    const struct gguf *g;
    const struct backend *be;
    struct sha256 hash;
    struct bz_err *err;
};

static enum bz_status check_shape(const struct binder *b, const struct gguf_tensor *t,
                                  const struct entry *e)
{
    uint64_t rows = e->out, mats = e->n_mat;
    /* A vector may come as [n] or [n, 1]; experts' matrices have a third dimension. */
    if (t->ne[0] == e->in && t->ne[1] == rows && t->ne[2] == mats && t->ne[3] == 1) return BZ_OK;
    return fail(b->err, BZ_ERR_FORMAT,
                "%s: tensor %.*s is %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                "; this model's metadata asks for %u x %" PRIu64 " x %" PRIu64 " x 1",
                b->g->sources[t->shard].name, STR_ARG(t->name), t->ne[0], t->ne[1], t->ne[2],
                t->ne[3], e->in, rows, mats);
}

/* What the snapshot's fingerprint covers of a tensor: where it is and how it looks. */
static enum bz_status hash_tensor(struct binder *b, const struct gguf_tensor *t,
                                  const struct weight *w)
{
    uint64_t facts[] = { t->type, t->ne[0], t->ne[1], t->ne[2], t->shard, t->offset, t->n_bytes };
    sha256_feed(&b->hash, t->name.p, t->name.n);
    sha256_feed(&b->hash, facts, sizeof facts);
    uint8_t sample[64];
    size_t n = t->n_bytes < sizeof sample ? (size_t)t->n_bytes : sizeof sample;
    enum bz_status st = source_read(w->src, w->offset, sample, n, b->err);
    if (st == BZ_OK) sha256_feed(&b->hash, sample, n);
    return st;
}

/* The metadata that changes the numbers. The context that a model was trained for only limits them,
 * so it is not part of a cache's origin. */
static void hash_config(struct sha256 *h, const struct model *m)
{
    const struct config *c = &m->config;
    const uint32_t counts[] = {
        c->n_layer, c->n_own,    c->n_embd,        c->n_head,      c->n_vocab,           c->n_swa,
        c->n_ple,   c->n_expert, c->n_expert_used, c->n_ff_expert, m->rope_global.n_pair
    };
    const float numbers[] = { c->eps, c->softcap, c->rope_base, c->rope_base_swa };
    sha256_feed(h, counts, sizeof counts);
    sha256_feed(h, numbers, sizeof numbers);
    for (uint32_t il = 0; il < c->n_layer; il++) {
        const struct layer_config *l = &c->layers[il];
        const uint32_t layer[] = { l->swa, l->n_ff, l->n_kv_head, l->head_dim, (uint32_t)l->donor };
        sha256_feed(h, layer, sizeof layer);
    }
    sha256_feed(h, m->rope_div, m->rope_global.n_pair * sizeof *m->rope_div);
}

static enum bz_status bind(struct binder *b, struct weight *w, const struct entry *e,
                           const struct gguf_tensor *t)
{
    enum bz_status st = check_shape(b, t, e);
    if (st) return st;
    const struct quant_format *f = quant_find(t->type);
    if (!f)
        return fail(b->err, BZ_ERR_UNSUPPORTED,
                    "%s: tensor %.*s is %s, which this build does not read",
                    b->g->sources[t->shard].name, STR_ARG(t->name), quant_type_name(t->type));
    *w = (struct weight) { .fmt = f,
                           .cols = e->in,
                           .rows = e->out,
                           .n_mat = e->n_mat,
                           .src = &b->g->sources[t->shard],
                           .offset = t->offset };
    st = b->be->load(b->be->ctx, w, b->err);
    if (st) {
        *w = (struct weight) { 0 };
        return st;
    }
    b->m->n_params += (uint64_t)e->in * e->out * e->n_mat;
    b->m->n_bytes += t->n_bytes;
    return hash_tensor(b, t, w);
}

/* ---- binding all ---- */

/* Other converters' names. */
static const char *const aliases[][2] = {
    { "ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale" },
    { "self_cond_pre_norm.weight", "self_cond_norm.weight" },
};

static const struct gguf_tensor *find_tensor(const struct gguf *g, const char *prefix,
                                             const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const struct gguf_tensor *t = gguf_tensor_find(g, full);
    for (size_t i = 0; !t && i < sizeof aliases / sizeof *aliases; i++) {
        if (strcmp(name, aliases[i][0]) != 0) continue;
        snprintf(full, sizeof full, "%s%s", prefix, aliases[i][1]);
        t = gguf_tensor_find(g, full);
    }
    return t;
}

/* Must, may or must not this tensor be used? */
static bool is_required(const struct entry *e, const struct config *c, bool owns_kv, bool is_moe)
{
    switch (e->need) {
    case ALWAYS: return true;
    case OWNER: return owns_kv;
    case PLE: return c->n_ple > 0;
    case MOE: return is_moe;
    case CANVAS: return c->canvas.n_canvas > 0;
    case OWNER_V:
    case CANVAS_MAYBE:
    case MAYBE: return false;
    }
    return false;
}

static bool is_ignored(const struct entry *e, const struct config *c, bool owns_kv, bool is_moe)
{
    return ((e->need == OWNER || e->need == OWNER_V) && !owns_kv) ||
           (e->need == PLE && c->n_ple == 0) || (e->need == MOE && !is_moe) ||
           ((e->need == CANVAS || e->need == CANVAS_MAYBE) && c->canvas.n_canvas == 0);
}

static enum bz_status bind_list(struct binder *b, void *owner, const char *prefix,
                                const struct entry *list, size_t n, bool owns_kv, bool is_moe)
{
    const struct config *c = &b->m->config;
    for (size_t i = 0; i < n; i++) {
        const struct entry *e = &list[i];
        if (is_ignored(e, c, owns_kv, is_moe)) continue;
        const struct gguf_tensor *t = find_tensor(b->g, prefix, e->name);
        enum bz_status st = BZ_OK;
        if (t) st = bind(b, field_of(owner, e), e, t);
        else if (is_required(e, c, owns_kv, is_moe))
            st = fail(b->err, BZ_ERR_FORMAT, "%s: tensor %s%s is missing", b->g->sources[0].name,
                      prefix, e->name);
        if (st) return st;
    }
    return BZ_OK;
}

static bool has_router(const struct binder *b, const char *prefix)
{
    return find_tensor(b->g, prefix, "ffn_gate_inp.weight") != NULL;
}

static enum bz_status bind_layer(struct binder *b, uint32_t il)
{
    struct config *c = &b->m->config;
    struct layer *l = &b->m->layers[il];
    char prefix[24];
    snprintf(prefix, sizeof prefix, "blk.%u.", il);
    bool is_moe = has_router(b, prefix);
    const char *file = b->g->sources[0].name;
    if (is_moe && !c->n_expert)
        return fail(b->err, BZ_ERR_FORMAT,
                    "%s: layer %u has a router but the metadata names no experts", file, il);
    struct entry list[N_LAYER];
    list_layer(list, c, &c->layers[il]);
    enum bz_status st = bind_list(b, l, prefix, list, N_LAYER, il < c->n_own, is_moe);
    if (st) return st;
    if (is_moe && !weight_exists(&l->exp_gate_up) &&
        !(weight_exists(&l->exp_gate) && weight_exists(&l->exp_up)))
        return fail(b->err, BZ_ERR_FORMAT, "%s: layer %u has experts without gate and up tensors",
                    file, il);
    return BZ_OK;
}

/* ---- what follows from the tensors ---- */

/* Global layers rotate only the first pairs. The file marks the other pairs by dividing their
 * frequencies by 1e30; without that tensor, a quarter of the pairs rotate. Pairs at the end that do
 * not rotate are dropped from the table. */
static enum bz_status set_ropes(struct model *m, struct bz_err *err)
{
    const struct config *c = &m->config;
    const struct weight *freqs = &m->rope_freqs;
    uint32_t n_pair = global_head_dim(c) / 2;
    m->rope_div = mem_alloc(n_pair, sizeof *m->rope_div);
    if (!m->rope_div) return fail_memory(err, n_pair * sizeof *m->rope_div);
    for (uint32_t i = 0; i < n_pair; i++) m->rope_div[i] = i < n_pair / 4 ? 1.0f : 1e30f;
    if (weight_exists(freqs)) {
        if (freqs->fmt->id != QUANT_F32)
            return fail(err, BZ_ERR_UNSUPPORTED, "rope_freqs.weight is %s; it must be F32",
                        freqs->fmt->name);
        size_t n_bytes = n_pair * sizeof *m->rope_div;
        enum bz_status st = source_read(freqs->src, freqs->offset, m->rope_div, n_bytes, err);
        if (st) return st;
    }
    while (n_pair > 1 && m->rope_div[n_pair - 1] >= 1e29f) n_pair--;
    m->rope_global = (struct rope) { c->rope_base, global_head_dim(c), n_pair, m->rope_div };

    for (uint32_t il = 0; il < c->n_layer; il++)
        if (c->layers[il].swa)
            m->rope_swa = (struct rope) { c->rope_base_swa, c->layers[il].head_dim,
                                          c->layers[il].head_dim / 2, NULL };
    return BZ_OK;
}

/* Matrices read for one token: all but the embedding tables (one row each) and idle experts. */
static void count_token_bytes(struct model *m)
{
    const struct config *c = &m->config;
    struct entry list[N_LAYER];
    const struct weight *once[] = { model_head(m), &m->ple_proj };
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (weight_exists(once[i]))
            m->bytes_a_token += quant_row_bytes(once[i]->fmt, once[i]->cols) * once[i]->rows;
    for (uint32_t il = 0; il < c->n_layer; il++) {
        list_layer(list, c, &c->layers[il]);
        for (size_t i = 0; i < N_LAYER; i++) {
            const struct weight *w = field_of(&m->layers[il], &list[i]);
            if (!weight_exists(w)) continue;
            uint64_t used = w->n_mat > 1 ? c->n_expert_used : 1;
            m->bytes_a_token += quant_row_bytes(w->fmt, w->cols) * w->rows * used;
        }
    }
}

static void expect_vectors(const struct binder *b, const char *prefix, const struct entry *list,
                           size_t n, bool owns_kv, bool is_moe)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].out == 1 && list[i].n_mat == 1 &&
            !is_ignored(&list[i], &b->m->config, owns_kv, is_moe) &&
            find_tensor(b->g, prefix, list[i].name))
            b->be->expect_vector(b->be->ctx, list[i].in);
}

/* Tell the backend of every vector before it is loaded. */
static void announce(const struct binder *b)
{
    const struct config *c = &b->m->config;
    struct entry globals[N_GLOBAL], list[N_LAYER];
    if (!b->be->expect_vector) return;
    list_globals(globals, c);
    expect_vectors(b, "", globals, N_GLOBAL, true, false);
    for (uint32_t il = 0; il < c->n_layer; il++) {
        char prefix[24];
        snprintf(prefix, sizeof prefix, "blk.%u.", il);
        list_layer(list, c, &c->layers[il]);
        expect_vectors(b, prefix, list, N_LAYER, il < c->n_own, has_router(b, prefix));
    }
}

static enum bz_status load(struct binder *b)
{
    struct model *m = b->m;
    struct entry globals[N_GLOBAL];
    announce(b);
    list_globals(globals, &m->config);
    enum bz_status st = bind_list(b, m, "", globals, N_GLOBAL, true, false);
    m->layers = mem_alloc(m->config.n_layer, sizeof *m->layers);
    if (st == BZ_OK && !m->layers) st = fail_memory(b->err, m->config.n_layer * sizeof *m->layers);
    for (uint32_t il = 0; st == BZ_OK && il < m->config.n_layer; il++) st = bind_layer(b, il);
    if (st == BZ_OK) st = set_ropes(m, b->err);
    if (st) return st;
    count_token_bytes(m);
    uint8_t digest[32];
    hash_config(&b->hash, m);
    sha256_end(&b->hash, digest);
    sha256_hex(digest, m->fingerprint);
    return BZ_OK;
}

enum bz_status model_load(struct model *out, const struct gguf *g, const struct backend *be,
                          struct bz_err *err)
{
    struct model m = { .sources = g->sources, .n_sources = g->n_sources };
    struct binder b = { .m = &m, .g = g, .be = be, .err = err };
    sha256_init(&b.hash);
    enum bz_status st = config_read(&m.config, g, err);
    if (st == BZ_OK) st = load(&b);
    if (st) {
        model_free(&m, be);
        return st;
    }
    *out = m;
    return BZ_OK;
}

void model_check(struct run *r, const struct model *m)
{
    struct bz_err err;
    if (!r->status && source_check(m->sources, m->n_sources, &err))
        run_fail(r, BZ_ERR_IO, "%s; load the model again", err.text);
}

static void unload(const struct backend *be, struct weight *w)
{
    if (weight_exists(w)) be->unload(be->ctx, w);
}

void model_free(struct model *m, const struct backend *be)
{
    const struct config *c = &m->config;
    struct entry globals[N_GLOBAL], list[N_LAYER];
    if (c->layers) {
        list_globals(globals, c);
        for (size_t i = 0; i < N_GLOBAL; i++) unload(be, field_of(m, &globals[i]));
    }
    for (uint32_t il = 0; m->layers && il < c->n_layer; il++) {
        list_layer(list, c, &c->layers[il]);
        for (size_t i = 0; i < N_LAYER; i++) unload(be, field_of(&m->layers[il], &list[i]));
    }
    mem_free(m->layers);
    mem_free(m->rope_div);
    config_free(&m->config);
    *m = (struct model) { 0 };
}

/* The layer number of "blk.N.rest"; rest is what follows. False when there is no such layer. */
static bool split_layer(const struct model *m, struct str name, uint32_t *il, struct str *rest)
{
    size_t i = 4;
    *il = 0;
    for (; i < name.n && name.p[i] >= '0' && name.p[i] <= '9' && *il < MAX_LAYERS; i++)
        *il = *il * 10 + (uint32_t)(name.p[i] - '0');
    bool padded = i > 5 && name.p[4] == '0'; /* a tensor has one name */
    if (i == 4 || padded || i >= name.n || name.p[i] != '.' || *il >= m->config.n_layer)
        return false;
    *rest = (struct str) { name.p + i + 1, name.n - i - 1 };
    return true;
}

enum bz_status model_find_adaptable(struct model *m, struct str name, struct weight **out,
                                    struct bz_err *err)
{
    struct entry list[N_LAYER + N_GLOBAL];
    size_t n = N_GLOBAL;
    void *owner = m;
    uint32_t il = 0;
    struct str rest = name;
    if (str_starts(name, "blk.") && split_layer(m, name, &il, &rest)) {
        list_layer(list, &m->config, &m->config.layers[il]);
        owner = &m->layers[il];
        n = N_LAYER;
    } else {
        list_globals(list, &m->config);
    }
    for (size_t i = 0; i < n; i++) {
        if (!list[i].adapt || !str_is(rest, list[i].name)) continue;
        struct weight *w = field_of(owner, &list[i]);
        bool inert = (list[i].need == OWNER || list[i].need == OWNER_V) && il >= m->config.n_own;
        if (!weight_exists(w) && !inert) break;
        *out = inert ? NULL : w;
        return BZ_OK;
    }
    return fail(err, BZ_ERR_NOT_FOUND, "this model has no adaptable tensor %.*s", STR_ARG(name));
}

/* Call fn for the entries of a layer that `want` asks for. */
static void each_of_layer(struct model *m, uint32_t il,
                          bool (*want)(const struct entry *e, bool owns), void *ctx,
                          model_weight_fn fn)
{
    struct entry list[N_LAYER];
    list_layer(list, &m->config, &m->config.layers[il]);
    for (size_t i = 0; i < N_LAYER; i++) {
        struct weight *w = field_of(&m->layers[il], &list[i]);
        char name[96];
        if (!weight_exists(w) || !want(&list[i], il < m->config.n_own)) continue;
        snprintf(name, sizeof name, "blk.%u.%s", il, list[i].name);
        fn(ctx, name, w);
    }
}

static bool is_adaptable(const struct entry *e, bool owns)
{
    return e->adapt && (owns || (e->need != OWNER && e->need != OWNER_V));
}

static bool is_any(const struct entry *e, bool owns)
{
    (void)e, (void)owns;
    return true;
}

void model_each_adaptable(struct model *m, void *ctx, model_weight_fn fn)
{
    for (uint32_t il = 0; il < m->config.n_layer; il++) each_of_layer(m, il, is_adaptable, ctx, fn);
}

void model_each_weight(struct model *m, void *ctx, model_weight_fn fn)
{
    struct entry list[N_GLOBAL];
    list_globals(list, &m->config);
    for (size_t i = 0; i < N_GLOBAL; i++) {
        struct weight *w = field_of(m, &list[i]);
        if (weight_exists(w)) fn(ctx, list[i].name, w);
    }
    for (uint32_t il = 0; il < m->config.n_layer; il++) each_of_layer(m, il, is_any, ctx, fn);
}
