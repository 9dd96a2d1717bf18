/* canvas.h - a canvas of tokens in a backend's memory, and the random numbers that denoise it.
 *
 * A canvas is denoised in steps. Two ops compute a step from the network's last rows: canvas_head
 * (what the model thinks of each position) and canvas_step (what becomes of the canvas). Everything
 * that changes from step to step is in the backend's memory, so a recorded step can be run again
 * and again without the host, and steps can be queued ahead: once a canvas has stopped, further
 * steps change nothing.
 *
 * All of it is one block of 4-byte words, in parts that begin at multiples of 64 words:
 *
 *     state      struct canvas_state, CANVAS_STATE words
 *     ids        i32, n     the tokens; the next step reads them
 *     best       i32, n     the most likely tokens of the last step; the result, once it stopped
 *     entropy    f32, n     of the last step, in nats
 *     accepted   bits       bit i % 32 of word i / 32: the last step accepted position i
 *     fixed      i32, n     -1, or the token that stays at this position whatever the model thinks
 *     draws      i32, n     -1, or the token to use instead of a draw (scripts)
 *     fresh      i32, n     -1, or the token to use instead of a random one (scripts)
 *
 * The host writes the state, ids, fixed, draws and fresh; what it shows of a step is all parts
 * before `fixed`, 3.5 KiB of a canvas of 256.
 */
#ifndef BEZEL_OPS_CANVAS_H
#define BEZEL_OPS_CANVAS_H

#include <math.h>

#include "ops/ops.h"

enum canvas_stop {
    CANVAS_GOES_ON,
    CANVAS_STABLE, /* the canvas did not change, and the model is sure of it */
    CANVAS_STEPS,  /* all steps are done */
};

enum { CANVAS_STATE = 64 }; /* words; those that the struct does not name are 0 */

struct canvas_state {
    /* The device counts; the host begins with zeros. */
    uint32_t step;       /* steps done */
    uint32_t stopped;    /* enum canvas_stop */
    uint32_t stable;     /* steps in a row, the last one included, with the `best` before them */
    uint32_t n_accepted; /* of the last step */
    float mean_entropy;  /* of the last step, over the positions that are not fixed */
    /* The host's wishes. */
    uint32_t key;     /* of the random numbers of this canvas */
    uint32_t n_steps; /* at most */
    uint32_t n_stable;
    float t_min, t_max, entropy_bound, confidence;
};

struct canvas {
    uint32_t n;
    uint32_t n_shown;  /* words before the part `fixed` */
    struct tensor all; /* words x 1; the others are views of it */
    struct tensor state, ids, best, entropy, accepted, fixed, draws, fresh;
};

/* What the last rows of the network become. */
struct canvas_head {
    struct canvas *canvas;
    const struct weight *head, *table; /* the same weight where the head is tied */
    float cap;                         /* of the logits; 0: none */
    float scale;                       /* of soft */
};

/* The temperature of the coming step. */
static inline float canvas_temperature(const struct canvas_state *s)
{
    return s->t_min + (s->t_max - s->t_min) * ((float)(s->n_steps - s->step) / (float)s->n_steps);
}

/* ---- random numbers: they follow from key, step, row and token, in this way on every device ----
 *
 * `step` is the number of steps that are done when the step begins, plus 1; the first canvas has
 * step 0.
 */
static inline uint32_t canvas_row_key(uint32_t key, uint32_t step, uint32_t row)
{
    return rng_mix32(rng_mix32(key + 0x9e3779b9u * step) + 0x9e3779b9u * row);
}

static inline uint32_t canvas_bits(uint32_t row_key, uint32_t token)
{
    return rng_mix32(row_key ^ rng_mix32(token + 0x9e3779b9u));
}

/* A uniform token. */
static inline uint32_t canvas_fresh(uint32_t row_key, uint32_t n_vocab)
{
    return canvas_bits(row_key, UINT32_MAX) % n_vocab;
}

/* -log(-log(1 - w)) with w in (0, 1) from the bits: the token with the largest z + gumbel is a draw
 * from softmax(z).
 *
 * Tokens win by large numbers, which small w give. So those are exact, down to 2^-33: 1 - w would
 * round them to multiples of 2^-24, and -log(1 - w) has lost its digits. The series is off by less
 * than w^5 / 6 of itself, 2e-7. */
static inline float canvas_gumbel(uint32_t bits)
{
    bool small = bits < 0x800000u;
    float w = small ? (float)(2 * bits + 1) * 0x1p-33f : (float)(bits >> 9 << 1 | 1) * 0x1p-24f;
    float series = w * (1 + w * (0.5f + w * (1.0f / 3 + w * (0.25f + w * 0.2f))));
    return -logf(w < 0.0625f ? series : -logf(1 - w));
}

#endif
