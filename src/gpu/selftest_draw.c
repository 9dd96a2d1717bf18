/* selftest_draw.c - the self-test's cases of drawing a token. */
#include "base/mem.h"
#include "gpu/selftest_impl.h"

/* The best token from `first` on. */
static void draw_by_hand(struct stage *s, struct tensor *ids, const struct tensor *logits,
                         uint32_t first)
{
    float *v = mem_alloc(logits->cols, sizeof *v);
    int32_t best = (int32_t)first;
    if (!v) {
        run_fail(&s->run, BZ_ERR_MEMORY, "not enough memory to test the kernels");
        return;
    }
    op_read(&s->run, logits, 0, v, 1);
    for (uint32_t i = first; i < logits->cols; i++)
        if (v[i] > v[best]) best = (int32_t)i;
    op_write(&s->run, ids, 0, &best, 1);
    mem_free(v);
}

/* It is so cold that the best token is drawn, whatever the seed. */
static void run_draw(struct stage *s, const struct test_case *c)
{
    struct tensor *logits = stage_rows(s, c, c->cols);
    struct tensor *ids = stage_tensor(s, 1, 1, STAGE_I32, 1);
    int32_t forbidden[16]; /* the first tokens */
    for (uint32_t i = 0; i < c->out; i++) forbidden[i] = (int32_t)i;
    struct bz_sampling sampling = {
        .temperature = c->temperature, .top_k = c->top_k, .top_p = 1, .repeat_penalty = 1
    };
    if (s->place == STAGE_CPU) {
        draw_by_hand(s, ids, logits, c->out);
    } else {
        struct bz_err err;
        enum bz_status st = BZ_OK;
        if (s->place == STAGE_GPU)
            st = gpu_draw_open(&s->draw, &sampling, forbidden, c->out, 64, c->cols, &err);
        else s->draw = (struct gpu_draw) { .sampling = sampling, .n_suppress = c->out };
        if (st) run_fail(&s->run, st, "%s", err.text);
        else gpu_draw_record(&s->run, &s->draw, ids, logits);
    }
    stage_result(s, ids, STAGE_I32);
}

/* With some tokens forbidden, for models that have such, and without. */
static const struct test_case draws[] = {
    { run_draw, .rows = 1, .cols = 3000 },
    { run_draw, .rows = 1, .cols = 3000, .out = 16 },
    { run_draw, .rows = 1, .cols = 3000, .top_k = 40, .temperature = 1e-4f },
    { run_draw, .rows = 1, .cols = 3000, .top_k = 40, .temperature = 1e-4f, .out = 16 },
    { run_draw, .rows = 1, .cols = 3000, .temperature = 1e-4f },
    { run_draw, .rows = 1, .cols = 3000, .temperature = 1e-4f, .out = 16 },
};

bool selftest_pick_draws(struct selftest *t)
{
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof draws / sizeof *draws; i++)
        ok = selftest_pick(t, &draws[i]);
    return ok;
}
