/* Lines to learn from, and checkpoints: whatever the bytes, an answer or a sentence. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "train/trainer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bz_engine *engine;
static struct dataset lesson;
static struct trainer trainer;

static void open_all(void)
{
    struct bz_err err;
    struct train_options o = train_defaults();
    o.n_steps = 1;
    o.adapter.rank = 1;
    if (bz_engine_open(&engine, "tests/golden/model_e2b.gguf", NULL, &err)) abort();
    struct dataset_options d = { engine->tokenizer, CHAT_SMALL, 64 };
    if (dataset_read(&lesson, str_of("{\"prompt\":\"a\",\"completion\":\"b\"}"), "x", &d, &err))
        abort();
    if (trainer_open(&trainer, &engine->model, &engine->backend, &lesson, &o, &err)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!engine) open_all();
    struct dataset d = { 0 };
    struct bz_err err;
    struct dataset_options o = { engine->tokenizer, size % 2 ? CHAT_LARGE : CHAT_SMALL, 64 };
    struct str text = { (const char *)data, size };
    if (dataset_read(&d, text, "fuzz", &o, &err) == BZ_OK) {
        for (size_t i = 0; i < d.n; i++)
            if (!d.examples[i].n_learned || d.examples[i].n > 64) abort();
        dataset_free(&d);
    }
    if (trainer_load(&trainer, text, &err) == BZ_OK && trainer.step > 1000000) abort();
    return 0;
}
