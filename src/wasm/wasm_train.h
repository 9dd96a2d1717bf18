/* wasm_train.h - shared by the files that export training. */
#ifndef BEZEL_WASM_WASM_TRAIN_H
#define BEZEL_WASM_WASM_TRAIN_H

#include "train/trainer.h"
#include "wasm/wasm.h"
#include "wasm/wasm_train_programs.h"

struct training {
    bz_engine *engine;
    struct dataset data, held;
    struct trainer trainer;
    struct gpu_train_programs programs; /* of a GPU */
    size_t n_examples;
    uint64_t n_bytes; /* beyond the model */
};

/* {"step", "epoch", "loss", "lr", "grad_norm", "tokens"} */
int32_t wasm_give_report(const struct train_report *r);

#endif
