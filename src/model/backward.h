/* backward.h - the network as training sees it: forward with everything kept, then back.
 *
 * A trace holds one sequence. Of every layer it keeps the input, and either everything in between
 * (keep_all) or room for one layer, which is computed again on the way back: that is gradient
 * checkpointing, a third more arithmetic for a fraction of the memory.
 */
#ifndef BEZEL_MODEL_BACKWARD_H
#define BEZEL_MODEL_BACKWARD_H

#include "model/kv.h"
#include "model/weights.h"
#include "ops/ops_bwd.h"

/* The intermediates of one layer, in the order of text.c; n rows each. */
struct kept {
    struct tensor norm;                /* rms(x) */
    struct tensor q_raw, k_raw, v_raw; /* before norm and rotation; V = K layers have no v_raw */
    struct tensor q, attn, branch;     /* attention */
    struct tensor x_mid, ffn_in;       /* after attention; its norm */
    struct tensor gate, up, act, mlp;  /* feed-forward */
    struct routing routing;            /* routed layers: */
    struct tensor exp_in, exp_out, f;  /*   experts; the sum of both halves */
    struct tensor x_ffn;               /* after feed-forward */
    struct tensor ple_gate, ple_act, ple_branch;
};

struct trace {
    const struct model *m;
    const struct backend *be;
    uint32_t n_max; /* positions at most */
    bool keep_all;
    struct tensor ids;                   /* i32, the tokens */
    struct tensor ple, ple_proj;         /* per-layer inputs of all layers; room for half of them */
    struct tensor rope_global, rope_swa; /* cos and sin of the positions */
    struct kv_cache kv;                  /* keys and values of all layers */
    struct kv *dkv;                      /* their gradients: config.n_own */
    struct tensor *inputs;        /* x before layer il; [n_layer] is after the last: n x n_embd */
    struct kept *kept;            /* n_layer of them, or one */
    struct tensor k, v;           /* normed and rotated, on their way to the cache */
    struct tensor normed, scores; /* a normed row, used at once; those of the experts */
    struct tensor dx;             /* the gradient of the stream */
    struct tensor d_embd, d_branch, d_wide, d_up, d_q, d_attn, d_exp, d_weights; /* parts of it */
    struct tensor result, targets, loss;
    struct tensor starts; /* i32: where the example of each position begins */
};

/* On failure *out is untouched. */
enum bz_status trace_open(struct trace *out, const struct model *m, const struct backend *be,
                          uint32_t n_max, bool keep_all, struct bz_err *err);
void trace_close(struct trace *t); /* accepts a zeroed one */

/* Bytes that trace_open would take. */
uint64_t trace_bytes(const struct model *m, uint32_t n_max, bool keep_all);

/* From now on sequences hold several examples that do not see one another: position p belongs to
 * the example that begins at starts[p]. NULL: one example each, as at the start. Rotations depend
 * on distances alone, so an example that begins later gives the same numbers. */
void trace_pack(struct run *r, struct trace *t, const int32_t *starts, uint32_t n);

/* Run n tokens from position 0. targets[t] is the token that should follow position t, or negative
 * where nothing is learned. Afterwards trace->loss has each position's loss, and the trained
 * adapters' gradients (struct lora.grad) have grown by d (weight * sum of losses). */
void model_train_step(struct run *r, struct trace *t, const int32_t *ids, const int32_t *targets,
                      uint32_t n, float weight);

/* The losses alone. */
void model_losses(struct run *r, struct trace *t, const int32_t *ids, const int32_t *targets,
                  uint32_t n);

/* model_train_step in two halves: the inputs of the pass, and the pass. A backend that records
 * writes the inputs anew and repeats the recorded pass. */
void trace_put(struct run *r, struct trace *t, const int32_t *ids, const int32_t *targets,
               uint32_t n);
void trace_losses(struct run *r, struct trace *t, uint32_t n);
void trace_gradients(struct run *r, struct trace *t, uint32_t n, float weight);

#endif
