/* tape_fixture.h - what every tape goes through before it runs. */
#ifndef BEZEL_TESTS_TAPE_FIXTURE_H
#define BEZEL_TESTS_TAPE_FIXTURE_H

#include "ops_fixture.h"
#include "tape/tape.h"

static inline void begin(struct tape *t, uint32_t rows, uint32_t n_out)
{
    tape_begin(t, EPS, rows, n_out);
    t->max_rows = rows;
    t->max_out = n_out;
}

/* False: memory is short. */
static inline bool make_ready(struct tape *t, struct tape_memory *m, const struct backend *be)
{
    if (!t->failed) tape_finish(t);
    if (!t->failed) tape_groups(t);
    if (be->fuse && !t->failed) be->fuse(be->ctx, t);
    return !t->failed && tape_place(t, m) && tape_memory_open(m, be) && tape_bind(t, m, be);
}

#endif
