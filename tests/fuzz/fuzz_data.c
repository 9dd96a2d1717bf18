/* Lines to learn from: whatever the bytes, examples or a sentence. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "train/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bz_engine *engine;

/* What was read can be divided and packed, and no token is lost. */
static void use(struct dataset *d)
{
    struct dataset held = { 0 };
    uint64_t n_tokens = 0;
    for (size_t i = 0; i < d->n; i++)
        if (!d->examples[i].n_learned || d->examples[i].n > 64) abort();
    uint64_t n_all = d->n_tokens;
    if (d->n > 1 && dataset_hold_back(&held, d, 0.5, NULL)) abort();
    if (dataset_pack(d, 64, 7, NULL)) abort();
    for (size_t i = 0; i < d->n; i++) n_tokens += d->examples[i].n;
    for (size_t i = 0; i < held.n; i++) n_tokens += held.examples[i].n;
    if (n_tokens != n_all || dataset_longest(d) > 64) abort();
    dataset_free(&held);
    dataset_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct bz_engine_options vocabulary = { .vocab_only = true };
    struct dataset d = { 0 };
    struct bz_err err = { "" };
    if (!engine && bz_engine_open(&engine, "tests/golden/model_e2b.gguf", &vocabulary, &err))
        abort();
    struct dataset_options o = { engine->tokenizer, size % 2 ? CHAT_LARGE : CHAT_SMALL, 64 };
    struct str text = { (const char *)data, size };
    if (dataset_read(&d, text, "fuzz", &o, &err) == BZ_OK) {
        use(&d);
    } else if (!err.text[0]) {
        abort();
    }
    return 0;
}
