/* selftest_experts.c - the self-test's cases of routers and experts. */
#include <math.h>

#include "gpu/selftest_impl.h"

/* Rows of prompts: devices differ in how many are worth a tile. */
static const uint32_t prompts[] = { 9, SELFTEST_ROWS };

enum { EXPERTS = 2, USED = 2 };

static struct experts make_experts(struct stage *s, const struct test_case *c)
{
    uint32_t n_ff = c->n_ff, n = c->n_mat ? c->n_mat : EXPERTS;
    return (struct experts) {
        .gate_up = c->split ? stage_absent(s) : stage_matrix(s, c, c->cols, 2 * n_ff, n),
        .gate = c->split ? stage_matrix(s, c, c->cols, n_ff, n) : stage_absent(s),
        .up = c->split ? stage_matrix(s, c, c->cols, n_ff, n) : stage_absent(s),
        .down = stage_matrix(s, c, n_ff, c->out, n),
        .scale = stage_vector(s, n, 1),
    };
}

static void run_experts(struct stage *s, const struct test_case *c)
{
    struct tensor *x = stage_rows(s, c, c->cols), *y = stage_rows(s, c, c->out);
    struct tensor *ids = stage_tensor(s, c->rows, USED, STAGE_I32, EXPERTS);
    struct routing routing = { *ids, *stage_tensor(s, c->rows, USED, STAGE_F32, 0) };
    struct experts e = make_experts(s, c);
    struct tensor unready = { 0 };
    x->ready = &unready; /* so the kernels for rows that are not ready are used */
    op_experts(&s->run, y, x, &routing, &e);
    stage_result(s, y, STAGE_F32);
}

/* The experts of x by its router, which has the case's format where plain. The scale makes clear
 * winners, so that rounding does not choose. */
static void keep_experts(struct stage *s, const struct test_case *c, struct value *x)
{
    struct tape *t = s->tape;
    struct test_case of = { .format = c->plain ? c->format : QUANT_F32 };
    uint32_t n = c->n_mat ? c->n_mat : EXPERTS;
    struct value *u = tape_rms_norm(t, x, stage_vector(s, c->cols, sqrtf((float)c->cols)));
    u = tape_linear(t, u, stage_matrix(s, &of, c->cols, n, 1));
    u = tape_times(t, u, 1.0f / sqrtf((float)c->cols));
    struct chosen by = tape_route(t, u, c->top_k ? c->top_k : USED);
    u = tape_rms_norm(t, x, stage_vector(s, c->cols, 1));
    stage_keep(s, u, STAGE_F32);
    struct experts e = make_experts(s, c);
    u = tape_experts(t, u, by, &e);
    stage_keep(s, u, STAGE_F32);
}

/* Experts that read what a router writes. */
static void run_routed(struct stage *s, const struct test_case *c)
{
    stage_tape(s, c);
    struct value *x = stage_input(s, c, c->cols);
    keep_experts(s, c, x);
    stage_run(s, RULE_ROUTER_EXPERTS, SELFTEST_POS);
}

/* A router in one dispatch with the product of a row that the block before has left ready. */
void selftest_linear_router(struct stage *s, const struct test_case *c)
{
    uint32_t block = quant_find(c->format)->block;
    struct test_case few = *c;
    few.n_mat = 8;
    few.out = 36;
    few.n_ff = block < 32 ? 32 : block;
    struct tape *t = stage_tape(s, c);
    struct value *x = selftest_residual(s, c, false);
    struct value *h = tape_rms_norm(t, x, stage_vector(s, c->cols, 1));
    h = tape_linear(t, h, stage_matrix(s, c, c->cols, c->out, 1));
    stage_keep(s, h, STAGE_F32);
    keep_experts(s, &few, x);
    stage_run(s, RULE_ROUTER_EXPERTS, SELFTEST_POS);
}

/* The lanes of gate and up follow from the one length, those of down from the other. */
bool selftest_pick_experts(struct selftest *t, uint32_t format)
{
    uint32_t block = quant_find(format)->block;
    struct test_case some = { run_routed, .rows = 3, .cols = 256, .n_ff = 256, .out = 36 };
    bool ok = true;
    if (!selftest_uses(t, "experts")) return true;
    some.format = format;
    some.n_mat = 12;
    some.top_k = 3;
    ok = selftest_pick(t, &some);
    for (uint32_t n = block < 8 ? 8 : block; n <= 8192; n *= 2)
        for (uint32_t k = 0; k < 4; k++) {
            struct test_case c = { run_experts, .rows = 1, .out = 36, .format = format };
            c.cols = k & 1 ? n : 256;
            c.n_ff = k & 1 ? 256 : n;
            c.split = k & 2;
            ok = ok && selftest_pick(t, &c);
            c.run = run_routed;
            for (c.tiling = 1; k < 2 && c.tiling <= 3; c.tiling++) ok = ok && selftest_pick(t, &c);
            c.tiling = 0;
            c.rows = 3; /* too many rows for readers_choose of the profile */
            ok = ok && selftest_pick(t, &c);
        }
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++)
        for (uint32_t split = 0; split < 2; split++) {
            struct test_case c = { run_experts, .cols = 256, .n_ff = 256, .out = 36 };
            c.rows = prompts[i];
            c.format = format;
            c.split = split;
            ok = ok && selftest_pick(t, &c);
            c.run = run_routed;
            ok = ok && selftest_pick(t, &c);
            c.n_mat = some.n_mat;
            c.top_k = some.top_k;
            ok = ok && selftest_pick(t, &c);
        }
    some.plain = true;
    return ok && selftest_pick(t, &some);
}
