/* trainer.h - the training loop: the order of examples, gradients, steps of the optimiser, and
 * checkpoints. A training resumed from a checkpoint continues as if it had never stopped.
 *
 * Everything random (the start of A, the order of the examples) follows from the seed and the
 * step's number, so a checkpoint is the adapter, its moments and that number.
 */
#ifndef BEZEL_TRAIN_TRAINER_H
#define BEZEL_TRAIN_TRAINER_H

#include "train/data.h"
#include "train/pass.h"
#include "train/trainee.h"

enum schedule { SCHEDULE_CONSTANT, SCHEDULE_LINEAR, SCHEDULE_COSINE };

struct train_options {
    struct trainee_options adapter;
    float lr;
    enum schedule
        schedule;      /* after the warm-up: as it is, or down to 0 in a line or half a cosine */
    uint32_t n_warmup; /* steps in which the rate climbs to lr */
    uint32_t n_steps;
    uint32_t n_batch; /* sequences a step */
    uint32_t
        n_max; /* tokens that a sequence may have, one to evaluate too; 0: as many as the data's */
    float beta1, beta2, eps, decay;
    float clip;    /* the longest gradient; 0: no limit */
    float dropout; /* share of an adapter's inputs that is left out at random, 0 to below 1 */
    bool keep_all; /* no gradient checkpointing: faster, more memory */
    uint64_t worn; /* names the adapters that the model has beside the learned one; 0: none */
};

/* By name; an error names those that there are. */
enum bz_status schedule_find(enum schedule *out, struct str name, struct bz_err *err);

/* Steps of n_batch sequences that go through n of them `epochs` times; 0: that makes no sense. */
uint32_t train_steps(double epochs, size_t n, uint32_t n_batch);

/* Rank 16, alpha 32, rate 2e-4 along a cosine, AdamW's usual betas, clip 1; n_steps is left 0. */
struct train_options train_defaults(void);

struct train_report {
    uint32_t step; /* done so far */
    double loss;   /* mean over the step's learned tokens, before the step */
    double lr, grad_norm;
    double epoch;      /* times through the data so far */
    uint64_t n_tokens; /* of the step's examples */
};

struct trainer {
    struct train_options options;
    struct model *m;
    const struct backend *be;
    const struct dataset *data;
    struct trainee trainee;
    struct pass pass;
    struct tensor control; /* of the step: enum control */
    int32_t *padded;       /* 3 x pass.n_max: an example as the backend takes it */
    float *mirror;   /* what trainer_each names, brought here by a host; NULL: tensors are read */
    uint32_t *order; /* data->n: this epoch's */
    uint64_t epoch;  /* whose order that is; UINT64_MAX: none yet */
    uint32_t step;
    struct train_report now; /* the step under way */
    uint64_t n_learned;      /* tokens that it learns */
};

/* Can such a model learn? */
enum bz_status trainer_check_model(const struct model *m, struct bz_err *err);

/* The model and the data must outlive it; the model is changed (the adapter hangs on it) until
 * trainer_close. On failure *out is untouched. */
enum bz_status trainer_open(struct trainer *out, struct model *m, const struct backend *be,
                            const struct dataset *data, const struct train_options *options,
                            struct bz_err *err);
void trainer_close(struct trainer *t);

/* Bytes beyond the model's weights; UINT64_MAX: memory is too short to find out. */
uint64_t trainer_bytes(struct model *m, const struct backend *be, uint32_t n_max,
                       const struct train_options *options);

/* One step. A loss that is NaN or infinite ends the training: the error names the step, and the
 * adapter is as it was before. */
enum bz_status trainer_step(struct trainer *t, struct train_report *report, struct bz_err *err);

/* trainer_step in parts, for a host that must not block for long: begin, options.n_batch passes,
 * each over one sequence, and the end. A step that is begun again is as if it had never begun. */
enum bz_status trainer_begin(struct trainer *t, struct bz_err *err);
enum bz_status trainer_pass(struct trainer *t, uint32_t i, struct bz_err *err);
enum bz_status trainer_finish(struct trainer *t, struct train_report *report, struct bz_err *err);

/* trainer_step in the pieces that a backend records, each a program for the host to run: begin
 * (which does not clear); clear, where a step was left half-way; for each of the n_batch examples
 * put, which returns how many rows its pass has, and gradients, one program for each number of
 * rows; update; clear. The host passes the contents of control to end. Losses go the same way:
 * begin_losses, put, only_losses. */
void trainer_clear(struct run *r, struct trainer *t);
const struct example *trainer_example(struct trainer *t, uint32_t i);
uint32_t trainer_dropout_key(const struct trainer *t, uint32_t i); /* of the pass over it */
uint32_t trainer_put(struct run *r, struct trainer *t, const struct example *e);
void trainer_gradients(struct run *r, struct trainer *t, uint32_t rows);
void trainer_update(struct run *r, struct trainer *t);
enum bz_status trainer_end(struct trainer *t, const float control[N_CONTROL],
                           struct train_report *report, struct bz_err *err);
enum bz_status trainer_begin_losses(struct trainer *t, const struct example *e, struct bz_err *err);
void trainer_only_losses(struct run *r, struct trainer *t, uint32_t rows);

/* The losses of other examples, summed over their learned tokens; and the mean over all of them. */
enum bz_status trainer_losses(struct trainer *t, const struct example *e, double *sum,
                              struct bz_err *err);
enum bz_status trainer_evaluate(struct trainer *t, const struct dataset *data, double *loss,
                                struct bz_err *err);

/* All that learns and its moments, in the order of a checkpoint; the number of floats. */
uint64_t trainer_each(struct trainer *t, void *ctx, void (*fn)(void *ctx, struct tensor *x));

/* A checkpoint, and back. It fits the same model, the same adapter's shape and the same data. On a
 * failed load the trainer is as it was opened. */
enum bz_status trainer_save(struct trainer *t, struct buf *out, struct bz_err *err);
enum bz_status trainer_load(struct trainer *t, struct str checkpoint, struct bz_err *err);

/* The adapter as it is now, in the neutral form that the writers take. It is an error if a number
 * of it is NaN or infinite: such an adapter makes every answer of a model noise. */
enum bz_status trainer_adapter(struct trainer *t, struct adapter *out, struct bz_err *err);

#endif
