/* ops_optional.h - ops that Gemma's text does not use: those of towers and of a canvas.
 *
 * A backend may lack any of them. tape/run.c looks before it calls one, so a tape that needs what
 * the backend lacks ends with a sentence. The CPU's loops are in ops_cpu_optional.c; a program that
 * runs such members gives them to its backend (be.optional = &cpu_optional), and a module that runs
 * text alone does not carry them.
 *
 * A picture is a tensor too: its rows are the points, line after line, and its columns the
 * channels. A signal is a picture of one line.
 */
#ifndef BEZEL_OPS_OPS_OPTIONAL_H
#define BEZEL_OPS_OPS_OPTIONAL_H

#include "ops/canvas.h"

/* What a row sees. p is the row's position in the cache, and `window` counts positions (0: no
 * limit). */
enum mask_kind {
    MASK_CAUSAL, /* cache: the positions s <= p with p - s < window */
    MASK_SPANS,  /* cache: the same, and the later rows of its span: s <= p + later */
    MASK_PREFIX, /* cache: the last window - 1 positions before the step; all rows of k and v */
    MASK_FULL,   /* all rows of k and v */
};

struct mask {
    enum mask_kind kind;
    uint32_t window;
};

/* What attention reads beside its queries: a cache, rows of the step itself, or both. */
struct attention {
    const struct kv *kv;        /* NULL with MASK_FULL */
    const struct tensor *k, *v; /* n x (n_kv_head * head_dim); with MASK_PREFIX and MASK_FULL */
    const struct tensor *later; /* i32, rows x 1: later rows of the row's span; with MASK_SPANS */
    struct mask mask;
    uint32_t n_head;
    float scale; /* of the scores */
};

/* One axis of a convolution: windows of k points, `stride` apart, over the line and `pad` zeros at
 * each end. */
struct conv_axis {
    uint32_t k, stride, pad;
};

/* The windows that a convolution puts over a picture. */
struct conv {
    uint32_t width; /* of the picture: it has rows / width lines */
    struct conv_axis x, y;
};

/* How many windows fit on an axis of n points. */
static inline uint32_t conv_count(const struct conv_axis *a, uint32_t n)
{
    return n + 2 * a->pad < a->k ? 0 : (n + 2 * a->pad - a->k) / a->stride + 1;
}

struct optional_ops {
    void (*attend_masked)(struct run *r, struct tensor *y, const struct tensor *q,
                          const struct attention *a, uint32_t pos);
    void (*add_bias)(struct run *r, struct tensor *x, const struct weight *b);
    void (*clamp)(struct run *r, struct tensor *x, float low, float high);
    void (*layer_norm)(struct run *r, struct tensor *y, const struct tensor *x,
                       const struct weight *w, const struct weight *b, float eps);
    void (*angles_2d)(struct run *r, struct tensor *table, const struct rope *rope,
                      const struct tensor *xy);
    void (*rope_2d)(struct run *r, struct tensor *x, const struct tensor *table, uint32_t n_head);
    void (*unfold)(struct run *r, struct tensor *y, const struct tensor *x, const struct conv *c);
    void (*conv_depthwise)(struct run *r, struct tensor *y, const struct tensor *x,
                           const struct weight *w);
    void (*pool)(struct run *r, struct tensor *y, const struct tensor *x, uint32_t width,
                 uint32_t k);
    void (*canvas_head)(struct run *r, struct tensor *soft, struct tensor *entropy,
                        struct tensor *picks, const struct tensor *x, const struct canvas_head *h);
    void (*canvas_step)(struct run *r, struct canvas *c, const struct tensor *entropy,
                        const struct tensor *picks, uint32_t n_vocab);
};

/* The CPU's, one loop each: all of them, and those of a canvas alone; and the latter with threads
 * and SIMD where time goes. */
extern const struct optional_ops cpu_optional, cpu_canvas, cpu_canvas_fast;

/* y = sum softmax(scale q . k_s) v_s over what the mask lets a row see; query head h reads kv head
 * h / (n_head / n_kv_head). pos: the position of q's first row; with MASK_PREFIX how many positions
 * the cache holds. Sets y.rows. */
void op_attend_masked(struct run *r, struct tensor *y, const struct tensor *q,
                      const struct attention *a, uint32_t pos);

/* In place on x: x += b, each row. */
void op_add_bias(struct run *r, struct tensor *x, const struct weight *b);

/* In place on x: x = min(max(x, low), high). */
void op_clamp(struct run *r, struct tensor *x, float low, float high);

/* y = (x - mean(x)) / sqrt(var(x) + eps) * w + b, each row; var is the mean of the squares of what
 * is above it. w absent: 1; b absent: 0. Sets y.rows. */
void op_layer_norm(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w,
                   const struct weight *b, float eps);

/* xy: i32, rows x 2. table[t] = cos then sin of the n_pair angles of x, then the same of y; the
 * angle of pair i is x * base^(-2i/head_dim) / div[i], where head_dim is the size of half a head.
 * Sets table.rows; table.cols = 4 * n_pair. */
void op_angles_2d(struct run *r, struct tensor *table, const struct rope *rope,
                  const struct tensor *xy);

/* In place on x (rows x n_head * head_dim): as op_rope on each half of a head, the first by the
 * angles of x, the second by those of y. */
void op_rope_2d(struct run *r, struct tensor *x, const struct tensor *table, uint32_t n_head);

/* y's rows are the windows of c over the picture x, line by line. A window's numbers are those of
 * channel 0, line after line, then those of channel 1; outside of the picture they are 0. y.rows is
 * set by the caller. A convolution is op_linear of this. */
void op_unfold(struct run *r, struct tensor *y, const struct tensor *x, const struct conv *c);

/* w: cols x k. y[t][c] = sum_j w[c][j] x[t - k + 1 + j][c], where rows before the first are 0. Sets
 * y.rows. */
void op_conv_depthwise(struct run *r, struct tensor *y, const struct tensor *x,
                       const struct weight *w);

/* y's rows are the means of squares of k x k points, line by line; `width` is that of the picture
 * x. y.rows is set by the caller. */
void op_pool(struct run *r, struct tensor *y, const struct tensor *x, uint32_t width, uint32_t k);

/* The shape of a canvas of n tokens. Then its memory; false: memory is short. canvas_free accepts a
 * zeroed one. */
void canvas_shape(struct canvas *c, uint32_t n);
void canvas_views(const struct backend *be, struct canvas *c); /* c->all has memory */
bool canvas_alloc(const struct backend *be, struct canvas *c);
void canvas_free(const struct backend *be, struct canvas *c);

/* Of each row, with z = cap tanh(head x / cap) / T and p = softmax(z), where T is
 * canvas_temperature:
 *
 *     soft     n x table.cols   scale * sum over v of p_v table[v]
 *     entropy  n x 1            -sum p log p
 *     picks    i32, n x 2       the token with the largest z, and with the largest z + gumbel
 *
 * Ties go to the lower token. Sets the rows. The logits need not exist as a whole. Where the canvas
 * has stopped, soft, entropy and picks may be anything. */
void op_canvas_head(struct run *r, struct tensor *soft, struct tensor *entropy,
                    struct tensor *picks, const struct tensor *x, const struct canvas_head *h);

/* The sampler's decisions, into the canvas. Nothing if it has stopped; else, with H the entropy, A
 * and D the picks of a row (a fixed row has H = 0 and A = D = its token; draws may replace D):
 *
 *     accept  in the order of H, ties to the lower row, as long as the sum of the H before is <=
 *             entropy_bound; the sum is f32, taken in that order
 *     ids     D where accepted, else a random token (or that of `fresh`)
 *     stable  + 1 if all A are the `best` of the step before, else 0; best = A
 *     stopped CANVAS_STABLE if stable >= n_stable and the mean H < confidence, else CANVAS_STEPS if
 *             this was the last step
 */
void op_canvas_step(struct run *r, struct canvas *c, const struct tensor *entropy,
                    const struct tensor *picks, uint32_t n_vocab);

#endif
