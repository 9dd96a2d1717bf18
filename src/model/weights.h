/* weights.h - a model's tensors, bound to their places in the file.
 *
 * The fields come from weights.def. Binding checks names, shapes and formats; it reads no tensor
 * data beyond the small vectors that the backend keeps.
 */
#ifndef BEZEL_MODEL_WEIGHTS_H
#define BEZEL_MODEL_WEIGHTS_H

#include "io/gguf.h"
#include "model/config.h"
#include "ops/ops.h"

struct layer {
#define GLOBAL(...)
#define LAYER(field, name, in, out, n, need, adapt) struct weight field;
#include "model/weights.def"
#undef GLOBAL
#undef LAYER
};

struct model {
    struct config config;
#define GLOBAL(field, name, in, out, n, need, adapt) struct weight field;
#define LAYER(...)
#include "model/weights.def"
#undef GLOBAL
#undef LAYER
    struct layer *layers;    /* config.n_layer */
    struct rope rope_global; /* its div points into rope_div */
    struct rope rope_swa;
    float *rope_div;
    const struct source *sources; /* of its weights: the file's */
    uint32_t n_sources;
    uint64_t n_params;      /* of the text model, dead tensors not counted */
    uint64_t n_bytes;       /* of the same */
    uint64_t bytes_a_token; /* weights that one decoded token reads */
    char fingerprint
        [65]; /* hex SHA-256: shapes, types and offsets, some bytes of each tensor, the config */
};

/* Read the configuration and bind every tensor; g and its sources must outlive the model. */
enum bz_status model_load(struct model *out, const struct gguf *g, const struct backend *be,
                          struct bz_err *err);
void model_free(struct model *m, const struct backend *be);

/* Fail the run if weights that it may have used were lost: the file was changed or became shorter,
 * or its drive went away. Call it before the results are used. */
void model_check(struct run *r, const struct model *m);

/* The weight that an adapter calls e.g. "blk.3.attn_q.weight". BZ_OK with *out NULL: a key or value
 * projection of a layer that reads its donor's cache, where an adapter has no effect. */
enum bz_status model_find_adaptable(struct model *m, struct str name, struct weight **out,
                                    struct bz_err *err);

typedef void (*model_weight_fn)(void *ctx, const char *name, struct weight *w);

/* Call fn for every tensor of a layer that an adapter can change, in the order of the layers. */
void model_each_adaptable(struct model *m, void *ctx, model_weight_fn fn);

/* The same for every tensor that the model has, those outside of layers first. */
void model_each_weight(struct model *m, void *ctx, model_weight_fn fn);

/* The head: output.weight where the file has one, else the embedding table. */
static inline const struct weight *model_head(const struct model *m)
{
    return weight_exists(&m->output) ? &m->output : &m->token_embd;
}

#endif
