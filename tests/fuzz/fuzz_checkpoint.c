/* Any bytes as the checkpoint of a training: the training goes on from there, or is as it was
 * before.
 *
 * Two checksums would stop nearly every input. So the bytes are tried as they are, with the last
 * checksum corrected, with the checksum of the setup corrected as well, and laid over a true
 * checkpoint. Run from the repository root. */
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "engine.h"
#include "train/trainer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    STEP_AT = 8,     /* after the magic */
    SETTING_AT = 12, /* a checksum of what must be the same */
    NUMBERS_AT = 44, /* what learns, and its moments */
    CHECKSUM_BYTES = 32,
    N_STEPS = 4,
};

static bz_engine *engine;
static struct dataset lessons;
static struct trainer trainer;
static struct buf fresh; /* the checkpoint of a training that has just begun */

static void open_all(void)
{
    const struct bz_engine_options eo = { .n_threads = 1 };
    static const char *const targets[] = { "attn_q", "exps" };
    struct train_options o = train_defaults();
    struct bz_err err;
    o.n_steps = N_STEPS;
    o.adapter.rank = 1;
    o.adapter.targets = targets;
    o.adapter.n_targets = 2;
    if (bz_engine_open(&engine, "./tests/fuzz/seeds/model/experts", &eo, &err)) abort();
    static int32_t ids[2][3] = { { 2, 7, 8 }, { 2, 8, 7 } },
                   next[2][3] = { { 7, 8, -1 }, { 8, 7, -1 } };
    static struct example list[2];
    for (int i = 0; i < 2; i++)
        list[i] = (struct example) { .ids = ids[i], .targets = next[i], .n = 3, .n_learned = 2 };
    lessons = (struct dataset) { .examples = list, .n = 2, .n_tokens = 6, .n_learned = 4 };
    if (trainer_open(&trainer, &engine->model, &engine->backend, &lessons, &o, &err)) abort();
    if (trainer_save(&trainer, &fresh, &err)) abort();
}

static void sign(uint8_t *p, size_t n)
{
    struct sha256 h;
    if (n < CHECKSUM_BYTES) return;
    sha256_init(&h);
    sha256_feed(&h, p, n - CHECKSUM_BYTES);
    sha256_end(&h, p + n - CHECKSUM_BYTES);
}

/* Does the trainer stand where this checkpoint says? */
static bool stands_at(const void *p, size_t n)
{
    struct buf now = { 0 };
    if (trainer_save(&trainer, &now, NULL)) abort();
    bool same = now.n == n && memcmp(now.data, p, n) == 0;
    buf_free(&now);
    return same;
}

static void check(const uint8_t *p, size_t n)
{
    struct bz_err err = { "" };
    struct train_report report;
    struct adapter a;
    if (trainer_load(&trainer, (struct str) { (const char *)p, n }, &err)) {
        if (!err.text[0] || !stands_at(fresh.data, fresh.n)) abort();
        return;
    }
    if (trainer.step > N_STEPS || !stands_at(p, n)) abort();
    while (trainer.step < N_STEPS && trainer_step(&trainer, &report, &err) == BZ_OK)
        if (report.step != trainer.step || report.step > N_STEPS) abort();
    err.text[0] = 0;
    if (trainer_adapter(&trainer, &a, &err) == BZ_OK) adapter_close(&a);
    else if (!err.text[0]) abort();
    if (trainer_load(&trainer, buf_str(&fresh), &err)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!engine) open_all();
    check(data, size);
    uint8_t *copy = malloc(size + 1), *over = malloc(fresh.n);
    if (!copy || !over) abort();
    if (size) memcpy(copy, data, size);
    sign(copy, size);
    check(copy, size);
    if (size >= NUMBERS_AT + CHECKSUM_BYTES) {
        memcpy(copy + SETTING_AT, fresh.data + SETTING_AT, NUMBERS_AT - SETTING_AT);
        sign(copy, size);
        check(copy, size);
    }
    memcpy(over, fresh.data, fresh.n);
    for (size_t i = 0; i < size && STEP_AT + i < fresh.n; i++)
        if (STEP_AT + i < SETTING_AT || STEP_AT + i >= NUMBERS_AT) over[STEP_AT + i] ^= data[i];
    sign(over, fresh.n);
    check(over, fresh.n);
    free(copy);
    free(over);
    return 0;
}
