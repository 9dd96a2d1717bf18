/* text.h - the text network, written onto a tape. */
#ifndef BEZEL_MODEL_TEXT_H
#define BEZEL_MODEL_TEXT_H

#include "model/kv.h"
#include "model/weights.h"
#include "tape/tape.h"

/* A step of the network. The caller sets the first four. */
struct text_step {
    const struct model *m;
    const struct kv_cache *kv;
    bool canvas;             /* the rows are a canvas: they see the cache and one another */
    uint32_t n_out;          /* rows, the last ones, whose logits are wanted */
    struct value *ple_rows;  /* rows of the per-layer embedding table, scaled; NULL without */
    struct value *ple;       /* per-layer inputs of all layers; NULL without */
    struct value *angles[2]; /* of the rows: for global layers, for sliding ones */
};

/* What rows of the per-layer embedding table are multiplied by. */
float text_ple_scale(const struct model *m);

/* From the tokens `ids` to the final norm of the last n_out rows. Writes keys and values. */
struct value *text_forward(struct tape *t, struct text_step *s, struct value *ids);

/* The layers and the final norm, from the input x on: what text and canvas share. */
struct value *text_layers(struct tape *t, struct text_step *s, struct value *x);

/* Soft-capped logits of rows of that. */
struct value *text_logits(struct tape *t, const struct model *m, struct value *x);

#endif
