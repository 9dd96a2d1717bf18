/* sampler.h - from logits to one token. Knows numbers only: no vocabulary, no model. */
#ifndef BEZEL_TEXT_SAMPLER_H
#define BEZEL_TEXT_SAMPLER_H

#include "base/err.h"

struct sampler_candidate {
    int32_t id;
    float logit;
};

/* Working memory for a vocabulary; kept between draws so that a draw does not allocate. */
struct sampler {
    struct sampler_candidate *candidates; /* n_vocab */
    float *logits;                        /* n_vocab: the penalised copy */
    uint32_t *counts;                     /* n_vocab: occurrences in the penalty window */
    uint32_t n_vocab;
};

enum bz_status sampler_open(struct sampler *out, uint32_t n_vocab, struct bz_err *err);
void sampler_close(struct sampler *s);

/* Draw number `draw` of the seed's stream. `history` has the n_history tokens so far, newest last;
 * `suppress` are ids never drawn. Ties go to the lower id. It is an error if everything is
 * forbidden. */
enum bz_status sampler_draw(struct sampler *s, const struct bz_sampling *p, const float *logits,
                            const int32_t *history, size_t n_history, const int32_t *suppress,
                            size_t n_suppress, uint64_t draw, int32_t *id, struct bz_err *err);

#endif
