/* wasm_train_programs.h - a trainer's pieces as programs, each recorded when it is first wanted.
 *
 * The passes over sequences of the same number of rows are one program, which the host runs again
 * and again with other tokens in it. Programs know buffers, so they are dropped when the adapters
 * of the model change.
 */
#ifndef BEZEL_WASM_WASM_TRAIN_PROGRAMS_H
#define BEZEL_WASM_WASM_TRAIN_PROGRAMS_H

#include "gpu/record.h"
#include "train/trainer.h"

enum gpu_train_part {
    TRAIN_GRADIENTS, /* of a sequence */
    TRAIN_LOSSES,    /* of a sequence */
    TRAIN_UPDATE,
    TRAIN_CLEAR,
    TRAIN_PUBLISH, /* after a checkpoint was loaded */
    N_TRAIN_PARTS
};

struct gpu_train_program {
    enum gpu_train_part part;
    uint32_t rows; /* 0 where there are none */
    struct recorded recorded;
};

/* Zero is none. */
struct gpu_train_programs {
    struct gpu_train_program list[16];
    uint32_t n, next;  /* next: who gives way to a new one when the list is full */
    uint64_t adapters; /* names those that the programs know */
};

/* The program of a piece, 0 with *err set when it cannot be recorded. */
gpu_program gpu_train_program(struct gpu_train_programs *p, struct trainer *t,
                              enum gpu_train_part part, uint32_t rows, struct bz_err *err);
void gpu_train_programs_free(struct gpu_train_programs *p);

/* At most so many bytes on the device beyond trainer_bytes: the scratch of ops, and a copy of the
 * adapters in the order that kernels read. */
uint64_t gpu_train_bytes(const struct backend *be, struct model *m, uint32_t n_max,
                         const struct train_options *o);

#endif
