/* selftest_experts.c - the self-test's cases of routers and experts. */
#include <math.h>

#include "gpu/selftest_impl.h"

#define EPS SELFTEST_EPS

/* Rows of prompts: devices differ in how many are worth a tile. */
static const uint32_t prompts[] = { 9, SELFTEST_ROWS };

/* The scale makes clear winners, so that rounding does not choose. */
static struct router make_router(struct stage *s, uint32_t format, uint32_t cols, uint32_t n)
{
    struct test_case c = { .format = format };
    return (struct router) { .w = stage_matrix(s, &c, cols, n, 1),
                             .scale = stage_vector(s, cols, sqrtf((float)cols)),
                             .norm = stage_vector(s, cols, 1) };
}

static struct routing make_routing(struct stage *s, uint32_t rows, uint32_t n_used, uint32_t n)
{
    struct tensor *ids = stage_tensor(s, rows, n_used, STAGE_I32, n);
    return (struct routing) { *ids, *stage_tensor(s, rows, n_used, STAGE_F32, 0) };
}

void selftest_router(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols), *norm = stage_rows(s, c, c->cols);
    struct routing out = make_routing(s, c->rows, 3, 1);
    struct router by = make_router(s, c->format, c->cols, c->out);
    op_router(&s->run, &out, norm, x, &by, EPS);
    stage_result(s, &out.ids, STAGE_I32);
    stage_result(s, &out.weights, STAGE_F32);
    stage_result(s, norm, STAGE_F32);
    stage_settled(s, norm);
}

/* Beside the product of a row that the join has settled. */
void selftest_linear_router(struct stage *s, const struct test_case *c)
{
    struct join j = selftest_join(s, c, false, true);
    struct tensor *y = stage_rows(s, c, c->out), *norm = stage_rows(s, c, c->cols);
    struct routing out = make_routing(s, c->rows, 2, 1);
    struct weight *w = stage_matrix(s, c, c->cols, c->out, 1);
    struct router by = make_router(s, QUANT_F32, c->cols, 8);
    op_join(&s->run, &j);
    op_linear_router(&s->run, y, j.norm, w, &out, norm, j.to, &by, EPS);
    stage_result(s, y, STAGE_F32);
    stage_result(s, &out.ids, STAGE_I32);
    stage_result(s, &out.weights, STAGE_F32);
    stage_result(s, norm, STAGE_F32);
}

enum { EXPERTS = 2, USED = 2 };

static struct experts make_experts(struct stage *s, const struct test_case *c)
{
    uint32_t n_ff = c->n_ff;
    return (struct experts) {
        .gate_up = c->split ? stage_absent(s) : stage_matrix(s, c, c->cols, 2 * n_ff, EXPERTS),
        .gate = c->split ? stage_matrix(s, c, c->cols, n_ff, EXPERTS) : stage_absent(s),
        .up = c->split ? stage_matrix(s, c, c->cols, n_ff, EXPERTS) : stage_absent(s),
        .down = stage_matrix(s, c, n_ff, c->out, EXPERTS),
        .scale = stage_vector(s, EXPERTS, 1),
    };
}

static void run_experts(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols), *y = stage_rows(s, c, c->out);
    struct routing routing = make_routing(s, c->rows, USED, EXPERTS);
    struct experts e = make_experts(s, c);
    op_experts(&s->run, y, x, &routing, &e);
    stage_result(s, y, STAGE_F32);
}

/* Experts that read what a router leaves; all of them are chosen, in whichever order. */
static void run_routed(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols), *y = stage_rows(s, c, c->out);
    struct tensor *norm = stage_rows(s, c, c->cols);
    struct routing routing = make_routing(s, c->rows, USED, EXPERTS);
    struct router by = make_router(s, QUANT_F32, c->cols, EXPERTS);
    struct experts e = make_experts(s, c);
    op_router_experts(&s->run, y, &routing, norm, x, &by, EPS, &e, NULL);
    stage_result(s, y, STAGE_F32);
}

/* The lanes of gate and up follow from the one length, those of down from the other. */
bool selftest_pick_experts(struct selftest *t, uint32_t format)
{
    uint32_t block = quant_find(format)->block;
    bool ok = true;
    if (!selftest_uses(t, "experts")) return true;
    for (uint32_t n = block < 8 ? 8 : block; n <= 8192; n *= 2)
        for (uint32_t k = 0; k < 4; k++) {
            struct test_case c = { run_experts, .rows = 1, .out = 36, .format = format };
            c.cols = k & 1 ? n : 256;
            c.n_ff = k & 1 ? 256 : n;
            c.split = k & 2;
            ok = ok && selftest_pick(t, &c);
            c.run = run_routed;
            for (c.cut = 1; k < 2 && c.cut <= 3; c.cut++) ok = ok && selftest_pick(t, &c);
            c.cut = 0;
            c.rows = 3; /* too many for readers that choose */
            ok = ok && selftest_pick(t, &c);
        }
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++)
        for (uint32_t split = 0; split < 2; split++) {
            struct test_case c = { run_experts, .cols = 256, .n_ff = 256, .out = 36 };
            c.rows = prompts[i];
            c.format = format;
            c.split = split;
            ok = ok && selftest_pick(t, &c);
        }
    return ok;
}
