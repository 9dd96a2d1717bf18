/* ops.h - the contract between the model and whatever computes it.
 *
 * The model (src/model/text.c) is a tape, and running it calls the op_* functions below. ops.c
 * checks shapes once for all backends and then hands the op to a backend: the CPU executes it, a
 * GPU records it. Errors are sticky: after the first one every op of the run does nothing, and the
 * caller looks at run.status at the end.
 *
 * Rows are positions, columns are features; everything is row-major f32 unless it says i32. An op
 * never reads and writes the same tensor, except the one argument that its comment marks "in
 * place".
 */
#ifndef BEZEL_OPS_OPS_H
#define BEZEL_OPS_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "io/source.h"
#include "quant/quant.h"

/* An activation: `rows` rows of `cols` numbers, in memory for `size` numbers. */
struct tensor {
    uint32_t rows, cols;
    uint64_t size;
    void *mem;      /* the backend's own */
    uint32_t first; /* numbers in it before the tensor's own, where a backend says so: view */
    bool half;      /* 16-bit floats: a cache of keys or values, and nothing else */
    /* Other forms of the same rows, for a backend whose products read those; or NULL. They have no
     * rows until an op has written them. */
    struct tensor *ready, *halves;
};

/* Bytes of a number. */
static inline uint32_t tensor_width(const struct tensor *t)
{
    return t->half ? 2 : 4;
}

/* How many rows there is room for. */
static inline uint32_t tensor_cap(const struct tensor *t)
{
    return (uint32_t)(t->size / t->cols);
}

/* The same memory with rows of another length: layers differ in head size and width. */
static inline struct tensor tensor_shape(const struct tensor *t, uint32_t cols)
{
    return (struct tensor) { .cols = cols, .size = t->size, .mem = t->mem, .first = t->first };
}

/* Numbers between the beginnings of tensors in one memory: what every device can bind. */
enum { TENSOR_ALIGN = 64 };

/* A frozen matrix (rows x cols: y = W x has `rows` outputs), or n_mat of them (experts), or a
 * vector (rows == 1). Its bytes stay where they are; a backend decides in `load` what it keeps. */
struct weight {
    const struct quant_format *fmt; /* NULL: this model has no such tensor */
    uint32_t cols, rows, n_mat;
    const struct source *src;
    uint64_t offset;         /* of the first byte in src */
    void *mem;               /* the backend's own; NULL until loaded, or when nothing is kept */
    const struct lora *lora; /* adapters on this linear: y += scale * B (A x), for each */
};

/* In which runs an adapter acts: a canvas's steps use the weights of the text before it. */
enum lora_pass { LORA_ALWAYS, LORA_TEXT, LORA_CANVAS };

struct lora {
    struct weight a; /* rank x cols, n_mat of them */
    struct weight b; /* rows x rank */
    float scale;
    enum lora_pass pass;
    struct lora_grad *grad;     /* NULL: not trained */
    const struct dropout *drop; /* NULL, or share 0: A sees all of x */
    uint32_t salt;              /* of its dropout: another one for every adapter */
    const struct lora *next;
};

/* Dropout, used by training only: A sees x with a share of its numbers set to 0 at random, and the
 * others scaled up in turn. Which numbers are dropped follows from the key, the adapter, the row
 * and the column. So a second pass over the same sequence, forward or back, drops the same ones.
 * For experts the row is row * n_used + place. */
struct dropout {
    float share;
    uint32_t key;
    uint32_t row; /* number of the first row */
};

/* The scale of an adapter in a run; 0: it acts in others. */
static inline float lora_scale(const struct lora *l, bool canvas)
{
    bool acts = l->pass == LORA_ALWAYS || (l->pass == LORA_CANVAS) == canvas;
    return acts ? l->scale : 0;
}

static inline bool lora_drops(const struct lora *l)
{
    return l->drop && l->drop->share > 0;
}

/* The part of the numbers' hash that a row shares. */
static inline uint32_t dropout_row(const struct lora *l, uint32_t row)
{
    return rng_mix32(l->drop->key ^ rng_mix32(l->salt + 0x9e3779b9u * (l->drop->row + row)));
}

/* What multiplies column `col` of that row: 0, or 1 / (1 - share). */
static inline float dropout_factor(const struct lora *l, uint32_t row_hash, uint32_t col)
{
    float unit = (float)(rng_mix32(row_hash + col) >> 8) * 0x1p-24f;
    return unit < l->drop->share ? 0 : 1 / (1 - l->drop->share);
}

/* Columns of an adapter in z: its rank and zeros up to a multiple of 8. */
static inline uint32_t lora_rank(const struct lora *l)
{
    return (l->a.rows + 7) / 8 * 8;
}

/* Columns of z: all adapters side by side, in the order of the list. */
static inline uint32_t lora_width(const struct weight *w)
{
    uint32_t n = 0;
    for (const struct lora *l = w->lora; l; l = l->next) n += lora_rank(l);
    return n;
}

/* Is one of its adapters trained? */
static inline bool weight_learns(const struct weight *w)
{
    const struct lora *l = w->lora;
    while (l && !l->grad) l = l->next;
    return l != NULL;
}

/* Where a trained adapter's gradients are summed: shapes of a and b. */
struct lora_grad {
    struct tensor a, b;
};

/* One layer's keys and values: position p is row p % rows of both. Both are f32, or both are
 * halves, which are rounded to nearest (ties to even) when they are written. */
struct kv {
    struct tensor k, v; /* rows x (n_kv_head * head_dim); of halves, a multiple of 8 */
    uint32_t n_kv_head, head_dim;
    /* Training alone: i32, the first position that each position may see. NULL: no such limit. */
    const struct tensor *starts;
};

/* The first position that position p sees through a window (0: none). Host memory only. */
static inline uint32_t kv_first(const struct kv *kv, uint32_t p, uint32_t window)
{
    uint32_t first = window && p >= window ? p - window + 1 : 0;
    uint32_t start = kv->starts ? ((const uint32_t *)kv->starts->mem)[p] : 0;
    return start > first ? start : first;
}

/* Rotary embedding of one layer type: pair i of n_pair is rotated by the angle
 * pos * base^(-2i/head_dim) / div[i]. Pairs past n_pair stay as they are. */
struct rope {
    float base;
    uint32_t head_dim, n_pair;
    const float *div; /* n_pair, or NULL for all ones */
};

/* Which experts each row uses. */
struct routing {
    struct tensor ids;     /* i32, rows x n_used, best first */
    struct tensor weights; /* rows x n_used, sum 1 */
};

/* The feed-forward experts of a layer: gate and up in one tensor (gate rows first), or apart. */
struct experts {
    const struct weight *gate_up, *gate, *up, *down;
    const struct weight *scale; /* n_mat, or absent: multiplies an expert's output */
};

/* Is an adapter of theirs trained? */
static inline bool experts_learn(const struct experts *e)
{
    return weight_learns(e->gate_up) || weight_learns(e->gate) || weight_learns(e->up) ||
           weight_learns(e->down);
}

struct run;
struct tape; /* tape/tape.h */
struct group;
struct backward_ops; /* ops_bwd.h */
struct optional_ops; /* ops_optional.h */

/* What a backend implements: one function an op. The comments are with the op_* functions. */
struct backend {
    const char *name;
    void *ctx;
    void (*close)(struct backend *be); /* frees ctx and zeroes *be */

    bool (*alloc)(void *ctx, struct tensor *t); /* size is set; fills mem */
    void (*free)(void *ctx, struct tensor *t);
    /* Make x, whose shape is set, a view of the part of `of` that begins at number `first`, a
     * multiple of TENSOR_ALIGN. A view is not freed. */
    void (*view)(struct tensor *x, const struct tensor *of, uint32_t first);
    void (*write)(struct run *r, struct tensor *t, uint32_t row, const void *src, uint32_t n_rows);
    void (*read)(struct run *r, const struct tensor *t, uint32_t row, void *dst, uint32_t n_rows);
    /* Called before the first load: a vector of so many numbers will be loaded. May be NULL. */
    void (*expect_vector)(void *ctx, uint32_t cols);
    enum bz_status (*load)(void *ctx, struct weight *w, struct bz_err *err);
    void (*unload)(void *ctx, struct weight *w);
    /* The list w->lora, or a scale in it, has changed. On failure the backend goes on with what it
     * had. NULL: this backend reads the list itself. */
    enum bz_status (*adapt)(void *ctx, struct weight *w, struct bz_err *err);
    /* Fuse groups of a tape's nodes that one call computes. NULL: each node is an op. */
    void (*fuse)(void *ctx, struct tape *t);
    /* The calls that follow compute this group of nodes. May be NULL. */
    void (*label)(void *ctx, const struct group *g);

    void (*embed)(struct run *r, struct tensor *y, const struct weight *table,
                  const struct tensor *ids, float scale);
    void (*rms_norm)(struct run *r, struct tensor *y, const struct tensor *x,
                     const struct weight *w, float eps);
    void (*linear)(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w);
    void (*linear_z)(struct run *r, struct tensor *y, struct tensor *z, const struct tensor *x,
                     const struct weight *w);
    void (*rope_table)(struct run *r, struct tensor *table, const struct rope *rope, uint32_t pos);
    void (*head_norm)(struct run *r, struct tensor *x, const struct weight *w, uint32_t n_head,
                      float eps);
    void (*rope)(struct run *r, struct tensor *x, const struct tensor *table, uint32_t n_head);
    void (*kv_write)(struct run *r, struct kv *kv, const struct tensor *k, const struct tensor *v,
                     uint32_t pos);
    void (*attention)(struct run *r, struct tensor *y, const struct tensor *q, const struct kv *kv,
                      uint32_t n_head, uint32_t window, uint32_t pos);
    void (*gelu_mul)(struct run *r, struct tensor *x, const struct tensor *b, uint32_t col);
    void (*experts)(struct run *r, struct tensor *y, const struct tensor *x,
                    const struct routing *routing, const struct experts *e);
    void (*add)(struct run *r, struct tensor *x, const struct tensor *b);
    void (*scale)(struct run *r, struct tensor *x, const struct weight *w);
    void (*times)(struct run *r, struct tensor *x, float c);
    void (*softcap)(struct run *r, struct tensor *x, float cap);
    void (*route)(struct run *r, struct routing *out, const struct tensor *scores);
    void (*copy_rows)(struct run *r, struct tensor *y, const struct tensor *x, uint32_t first);

    const struct backward_ops *bwd;      /* NULL: this backend cannot train */
    const struct optional_ops *optional; /* NULL: none of them */
};

/* Sees every named intermediate of a run. `layer` is -1 outside of layers. */
typedef void (*tap_fn)(void *ctx, const char *name, int layer, const struct tensor *x);

struct run {
    const struct backend *be;
    enum bz_status status; /* the first error; ops after it do nothing */
    struct bz_err err;
    bool canvas;              /* a step of a canvas: adapters may act there alone, or not there */
    bool (*go_on)(void *ctx); /* may be NULL: see run_goes_on */
    void *go_on_ctx;
    tap_fn tap; /* may be NULL */
    void *tap_ctx;
};

/* Record the first error of a run. */
__attribute__((format(printf, 3, 4))) void run_fail(struct run *r, enum bz_status st,
                                                    const char *fmt, ...);

/* Between parts of a run: is more of it wanted? Else the run has failed with BZ_ERR_CANCELLED. */
bool run_goes_on(struct run *r);

static inline bool weight_exists(const struct weight *w)
{
    return w->fmt != NULL;
}

/* A tensor with room for cap rows. False when memory is short. tensor_free accepts a zeroed one. */
bool tensor_alloc(const struct backend *be, struct tensor *t, uint32_t cap, uint32_t cols);
bool tensor_alloc_half(const struct backend *be, struct tensor *t, uint32_t cap, uint32_t cols);
void tensor_free(const struct backend *be, struct tensor *t);

/* Rows between the host and a tensor; n_rows * cols numbers of the tensor's width. */
void op_write(struct run *r, struct tensor *t, uint32_t row, const void *src, uint32_t n_rows);
void op_read(struct run *r, const struct tensor *t, uint32_t row, void *dst, uint32_t n_rows);

/* y[i] = table[ids[i]] * scale. Sets y.rows. */
void op_embed(struct run *r, struct tensor *y, const struct weight *table, const struct tensor *ids,
              float scale);

/* y = x / sqrt(mean(x^2) + eps) * w, each row; w absent: no weight. Sets y.rows. */
void op_rms_norm(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w,
                 float eps);

/* y = W x for each row, plus the adapters of w; sets y.rows. */
void op_linear(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w);

/* The same, and z = A x of the adapters, rows x lora_width. Sets z.rows. */
void op_linear_z(struct run *r, struct tensor *y, struct tensor *z, const struct tensor *x,
                 const struct weight *w);
/* What op_linear asks of its arguments; y gets as many rows as x. */
void op_check_linear(struct tensor *y, const struct tensor *x, const struct weight *w);

/* table[t] = cos then sin of the n_pair angles of position pos + t; table.rows is set by the
 * caller, table.cols = 2 * n_pair. */
void op_rope_table(struct run *r, struct tensor *table, const struct rope *rope, uint32_t pos);

/* In place on x (rows x n_head * head_dim): op_rms_norm of each head. */
void op_head_norm(struct run *r, struct tensor *x, const struct weight *w, uint32_t n_head,
                  float eps);

/* In place on x (rows x n_head * head_dim): the pairs (i, i + head_dim/2) of each head are rotated
 * by the row's angles. */
void op_rope(struct run *r, struct tensor *x, const struct tensor *table, uint32_t n_head);

/* Rows of k and v become positions pos, pos + 1, ... of the cache. */
void op_kv_write(struct run *r, struct kv *kv, const struct tensor *k, const struct tensor *v,
                 uint32_t pos);

/* Row t is at position p = pos + t. It sees the positions s with s <= p and p - s < window (window
 * 0: all of them); where kv->starts exists, none before kv->starts[p]. y = sum softmax(q . k_s)
 * v_s, scale 1; query head h reads kv head h / (n_head / n_kv_head). Sets y.rows. */
void op_attention(struct run *r, struct tensor *y, const struct tensor *q, const struct kv *kv,
                  uint32_t n_head, uint32_t window, uint32_t pos);

/* In place on x: x = gelu_tanh(x) * b[:, col ...]. */
void op_gelu_mul(struct run *r, struct tensor *x, const struct tensor *b, uint32_t col);

/* y = sum over a row's experts e of weight_e scale_e down_e(gelu(gate_e x) * up_e x). Sets rows. */
void op_experts(struct run *r, struct tensor *y, const struct tensor *x,
                const struct routing *routing, const struct experts *e);

/* In place on x: x += b. */
void op_add(struct run *r, struct tensor *x, const struct tensor *b);

/* In place on x: x *= w[0]; an absent w changes nothing. */
void op_scale(struct run *r, struct tensor *x, const struct weight *w);

/* In place on x: x *= c. */
void op_times(struct run *r, struct tensor *x, float c);

/* In place on x: x = cap * tanh(x / cap). */
void op_softcap(struct run *r, struct tensor *x, float cap);

/* p = softmax of a row's scores. The out.ids.cols largest are chosen (ties to the lower index), and
 * their p renormalised to sum 1. NaN comes after every number, so that the chosen ones are distinct
 * whatever the scores are; with NaN among them, or an infinite best one, a row has no softmax, and
 * all its weights are NaN. Sets rows. */
void op_route(struct run *r, struct routing *out, const struct tensor *scores);

/* y = rows [first, first + y.rows) of x; y.rows is set by the caller. */
void op_copy_rows(struct run *r, struct tensor *y, const struct tensor *x, uint32_t first);

/* Show x to the run's tap. */
void op_tap(struct run *r, const char *name, int layer, const struct tensor *x);

#endif
