/* wasm_train_gpu.c - exports: training on the GPU, whose pieces are recorded programs.
 *
 * A step is bz_wasm_train_begin, then programs that the host submits in this order: TRAIN_CLEAR
 * where a step was left half-way, TRAIN_GRADIENTS for every pass, TRAIN_UPDATE, and, once the host
 * has asked for the bytes of control, TRAIN_CLEAR. Then bz_wasm_train_gpu_end gets those bytes. The
 * inputs of a program are queued for writing by the call that names it, right before the submit.
 */
#include <string.h>

#include "base/mem.h"
#include "gpu/ops_gpu.h"
#include "wasm/wasm_train.h"

EXPORT(uint32_t, bz_wasm_train_gpu_part, struct training *t, enum gpu_train_part part, uint32_t i)
{
    struct trainer *r = &t->trainer;
    struct run run = { .be = r->be };
    enum bz_status st = BZ_OK;
    uint32_t rows = 0;
    if (part >= N_TRAIN_PARTS || (part == TRAIN_LOSSES && i >= t->held.n))
        st = fail(&wasm_err, BZ_ERR_ARGUMENT, "there is no piece %u of number %u", part, i);
    if (st == BZ_OK && part == TRAIN_GRADIENTS) rows = trainer_put(&run, r, trainer_example(r, i));
    if (st == BZ_OK && part == TRAIN_LOSSES) {
        const struct example *e = &t->held.examples[i];
        st = trainer_begin_losses(r, e, &wasm_err);
        if (st == BZ_OK) rows = trainer_put(&run, r, e);
    }
    if (wasm_failed(st)) return 0;
    if (rows)
        gpu_write_step(r->be, 0, rows, part == TRAIN_GRADIENTS ? trainer_dropout_key(r, i) : 0);
    gpu_program made = gpu_train_program(&t->programs, r, part, rows, &wasm_err);
    if (!made) wasm_failed(BZ_ERR_MEMORY);
    return made;
}

EXPORT(gpu_buffer, bz_wasm_train_gpu_control, const struct training *t)
{
    return gpu_of(&t->trainer.control);
}

EXPORT(int32_t, bz_wasm_train_gpu_end, struct training *t, const float *control)
{
    struct train_report r;
    return wasm_failed(trainer_end(&t->trainer, control, &r, &wasm_err)) ? -1
                                                                         : wasm_give_report(&r);
}

/* ---- numbers that come back ---- */

static void list_one(void *ctx, struct tensor *x)
{
    const uint32_t number = sizeof(float);
    struct host_range place = { gpu_of(x), x->first * number, x->rows * x->cols * number };
    buf_put(ctx, &place, sizeof place);
}

EXPORT(float *, bz_wasm_train_gpu_mirror, struct training *t)
{
    struct buf list = { 0 };
    uint64_t n = trainer_each(&t->trainer, &list, list_one);
    if (!t->trainer.mirror && n <= SIZE_MAX / sizeof(float))
        t->trainer.mirror = mem_alloc((size_t)n, sizeof(float));
    if (!t->trainer.mirror) {
        buf_free(&list);
        wasm_failed(fail_memory(&wasm_err, n * sizeof(float)));
        return NULL;
    }
    return wasm_give_text(&list) ? NULL : t->trainer.mirror;
}

EXPORT(void, bz_wasm_train_gpu_forget, struct training *t)
{
    mem_free(t->trainer.mirror);
    t->trainer.mirror = NULL;
}
