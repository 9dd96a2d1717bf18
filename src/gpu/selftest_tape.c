/* selftest_tape.c - cases of the self-test that are tapes: what a rule of fusion computes. */
#include <assert.h>

#include "gpu/ops_gpu_impl.h"
#include "gpu/selftest_impl.h"

struct tape *stage_tape(struct stage *s, const struct test_case *c)
{
    tape_begin(s->tape, SELFTEST_EPS, c->rows, c->rows);
    s->tape->max_rows = s->tape->max_out = c->rows;
    return s->tape;
}

struct value *stage_input(struct stage *s, const struct test_case *c, uint32_t cols)
{
    return tape_input(s->tape, stage_rows(s, c, cols), c->rows);
}

struct value *stage_donated(struct stage *s, const struct test_case *c, uint32_t cols)
{
    return tape_donated(s->tape, stage_rows(s, c, cols), c->rows);
}

struct tensor *stage_keep(struct stage *s, struct value *x, enum stage_kind kind)
{
    struct tensor *own = stage_tensor(s, x->at.rows, x->at.cols, kind, 1);
    tape_result(s->tape, x, own);
    stage_result(s, own, kind);
    return own;
}

struct tensor *stage_keep_ready(struct stage *s, struct value *x)
{
    struct tensor *own = stage_keep(s, x, STAGE_F32);
    s->ready = x;
    if (s->place == STAGE_CPU) return own;
    x->ready = tape_room(s->tape, x, x->at.cols);
    x->ready->own = stage_tensor(s, x->at.rows, x->at.cols, STAGE_F32, 0);
    return own;
}

/* Its ready form, where that was written, is a result of the case too. */
static void take_ready(struct stage *s, struct value *x)
{
    const struct tensor *ready = gpu_ready(&x->at);
    bool int8 = ready && ((const struct gpu_ops *)s->run.be->ctx)->int8;
    if (ready) stage_result(s, ready, int8 ? STAGE_INT8_PLANES : STAGE_F32_PLANES);
    else stage_result(s, x->own ? x->own : &x->at, STAGE_F32);
}

/* Its values' memory. The stage frees it. */
static bool place_tape(struct stage *s)
{
    struct tape *t = s->tape;
    struct tape_memory m = { 0 };
    bool ok = tape_place(t, &m);
    for (uint32_t i = 0; i < m.n && s->place == STAGE_PROBE; i++)
        m.slots[i].at.size = m.slots[i].size;
    if (ok && s->place != STAGE_PROBE) ok = tape_memory_open(&m, s->run.be);
    assert(s->n_tensors + m.n <= sizeof s->tensors / sizeof *s->tensors);
    for (uint32_t i = 0; i < m.n; i++) s->tensors[s->n_tensors++] = m.slots[i].at;
    ok = ok && tape_bind(t, &m, s->run.be);
    mem_free(m.slots);
    return ok;
}

void stage_run(struct stage *s, enum gpu_rule last, uint32_t pos)
{
    struct tape *t = s->tape;
    if (!t->failed) tape_finish(t);
    if (!t->failed) tape_groups(t);
    if (!t->failed && s->place != STAGE_CPU) {
        uint32_t found = gpu_fuse_up_to(s->run.be->ctx, t, last);
        if (!t->failed && !(found >> last & 1))
            run_fail(&s->run, BZ_ERR_UNSUPPORTED, "a case of the self-test has no group of rule %u",
                     (unsigned)last);
    }
    if (t->failed || !place_tape(s))
        run_fail(&s->run, BZ_ERR_MEMORY, "not enough memory to test the kernels");
    tape_run(t, &s->run, pos);
    if (s->ready) take_ready(s, s->ready);
}
