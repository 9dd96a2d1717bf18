/* selftest_draw.c - the self-test's cases of drawing a token. */
#include "base/mem.h"
#include "gpu/selftest_impl.h"

enum { DRAW_COLS = 3000 };

/* The best token from `first` on, of every `step`-th one. */
static void draw_by_hand(struct stage *s, struct tensor *ids, const struct tensor *logits,
                         uint32_t first, uint32_t step)
{
    float *v = mem_alloc(logits->cols, sizeof *v);
    int32_t best = (int32_t)first;
    if (!v) {
        run_fail(&s->run, BZ_ERR_MEMORY, "not enough memory to test the kernels");
        return;
    }
    op_read(&s->run, logits, 0, v, 1);
    for (uint32_t i = first; i < logits->cols; i += step)
        if (v[i] > v[best]) best = (int32_t)i;
    op_write(&s->run, ids, 0, &best, 1);
    mem_free(v);
}

static void draw_by_kernels(struct stage *s, const struct test_case *c, struct tensor *ids,
                            struct tensor *logits)
{
    struct bz_err err;
    enum bz_status st = BZ_OK;
    int32_t forbidden[16]; /* the first tokens */
    uint32_t mask[DRAW_COLS / 32 + 1] = { 0 };
    for (uint32_t i = 0; i < c->out; i++) forbidden[i] = (int32_t)i;
    for (uint32_t i = 0; i < c->cols && c->step; i += c->step) mask[i / 32] |= 1u << i % 32;
    struct bz_sampling sampling = {
        .temperature = c->temperature, .top_k = c->top_k, .top_p = 1, .repeat_penalty = 1
    };
    const struct gpu_draw_options how = { &sampling, forbidden, c->out, 64, c->cols, c->step > 0 };
    if (s->place == STAGE_GPU) st = gpu_draw_open(&s->draw, &how, &err);
    else s->draw = (struct gpu_draw) { .sampling = sampling, .n_suppress = c->out };
    if (st) {
        run_fail(&s->run, st, "%s", err.text);
        return;
    }
    if (s->draw.mask) gpu_draw_mask(&s->draw, mask);
    gpu_draw_record(&s->run, &s->draw, c->step > 0, ids, logits);
}

/* It is so cold that the best token is drawn, whatever the seed. */
static void run_draw(struct stage *s, const struct test_case *c)
{
    struct tensor *logits = stage_rows(s, c, c->cols);
    struct tensor *ids = stage_tensor(s, 1, 1, STAGE_I32, 1);
    if (s->place == STAGE_CPU) draw_by_hand(s, ids, logits, c->out, c->step ? c->step : 1);
    else draw_by_kernels(s, c, ids, logits);
    stage_result(s, ids, STAGE_I32);
}

/* With some tokens forbidden, for models that have such, and without; from a mask. */
static const struct test_case draws[] = {
    { run_draw, .rows = 1, .cols = DRAW_COLS },
    { run_draw, .rows = 1, .cols = DRAW_COLS, .out = 16 },
    { run_draw, .rows = 1, .cols = DRAW_COLS, .step = 7 },
    { run_draw, .rows = 1, .cols = DRAW_COLS, .top_k = 40, .temperature = 1e-4f },
    { run_draw, .rows = 1, .cols = DRAW_COLS, .top_k = 40, .temperature = 1e-4f, .out = 16 },
    { run_draw, .rows = 1, .cols = DRAW_COLS, .temperature = 1e-4f },
    { run_draw, .rows = 1, .cols = DRAW_COLS, .temperature = 1e-4f, .out = 16 },
};

bool selftest_pick_draws(struct selftest *t)
{
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof draws / sizeof *draws; i++)
        ok = selftest_pick(t, &draws[i]);
    return ok;
}
