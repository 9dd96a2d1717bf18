/* Any bytes as a whole model: opened or refused. An opened one runs for four tokens on both
 * backends of the CPU, and is trained for a step. Run from the repository root. */
#include "engine.h"
#include "gguf_mutate.h"
#include "train/trainer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return gguf_mutate(data, size, max, seed);
}

static bz_engine *open_engine(const uint8_t *data, size_t size, enum bz_backend backend)
{
    const struct bz_engine_options o = { .backend = backend, .n_threads = 1 };
    struct located file = { 0 };
    struct bz_err err = { "" };
    struct source src;
    bz_engine *e = NULL;
    if (source_open_memory(&src, "fuzz", data, size, NULL)) abort();
    if (gguf_open(&file.gguf, &src, 1, &err) == BZ_OK)
        engine_open(&e, &file, "fuzz", &o, false, &err);
    if (!e && !err.text[0]) abort();
    return e;
}

/* Two tokens at once, so that a batch is seen as well, and four that the model chooses, or as many
 * as fit of a canvas. */
static void run(bz_engine *e)
{
    const struct bz_session_options o = { .n_context = 8, .n_batch = 2 };
    struct bz_err err = { "" };
    bz_session *s = NULL;
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    const int32_t ids[2] = { 0, (int32_t)(n_vocab - 1) };
    if (bz_session_open(&s, e, &o, &err)) {
        if (!err.text[0]) abort();
        return;
    }
    size_t n_logits = bz_engine_info(e).n_canvas ? 0 : 1; /* a canvas is denoised as a whole */
    enum bz_status st = bz_session_feed(s, ids, 2, n_logits, NULL, NULL, &err);
    struct bz_generate_options g = bz_generate_defaults(e);
    g.n_max = 4;
    g.ignore_end = true;
    if (st == BZ_OK) st = bz_generate(s, &g, NULL, &err);
    if (st && !err.text[0]) abort();
    size_t n;
    const int32_t *held = bz_session_tokens(s, &n);
    for (size_t i = 0; i < n; i++)
        if (held[i] < 0 || (uint32_t)held[i] >= n_vocab) abort();
    bz_session_close(s);
}

/* Train every adaptable tensor on three tokens. A loss that is NaN ends it with a sentence. */
static void learn(bz_engine *e)
{
    int32_t ids[3] = { 0, 1, 0 }, targets[3] = { 1, 0, -1 };
    struct example lesson = { .ids = ids, .targets = targets, .n = 3, .n_learned = 2 };
    const struct dataset data = { .examples = &lesson, .n = 1, .n_tokens = 3, .n_learned = 2 };
    static const char *const all[] = { "blk." };
    struct train_options o = train_defaults();
    struct trainer t;
    struct train_report report;
    struct bz_err err = { "" };
    o.n_steps = 2;
    o.adapter.rank = 1;
    o.adapter.targets = all;
    o.adapter.n_targets = 1;
    enum bz_status st = trainer_open(&t, &e->model, &e->backend, &data, &o, &err);
    if (st == BZ_OK) {
        st = trainer_step(&t, &report, &err);
        if (st == BZ_OK) st = trainer_step(&t, &report, &err);
        if (st == BZ_OK && !isfinite(report.loss)) abort();
        trainer_close(&t);
    }
    if (st && !err.text[0]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = mem_live();
    bz_engine *e = open_engine(data, size, BZ_BACKEND_CPU);
    if (e) {
        run(e);
        if (bz_engine_info(e).n_vocab > 1) learn(e);
        bz_engine_close(e);
        e = open_engine(data, size, BZ_BACKEND_REFERENCE);
        if (!e) abort();
        run(e);
        bz_engine_close(e);
    }
    if (mem_live() != live) abort();
    return 0;
}
