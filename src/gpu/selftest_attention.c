/* selftest_attention.c - the self-test's cases of keys, values and attention. */
#include "gpu/ops_gpu_impl.h"
#include "gpu/selftest_impl.h"

enum { RING = 80 };

static struct kv make_cache(struct stage *s, const struct test_case *c)
{
    enum stage_kind kind = c->half ? STAGE_F16 : STAGE_F32;
    struct tensor *k = stage_tensor(s, RING, c->n_kv * c->cols, kind, 0);
    struct tensor *v = stage_tensor(s, RING, c->n_kv * c->cols, kind, 0);
    return (struct kv) { .k = *k, .v = *v, .n_kv_head = c->n_kv, .head_dim = c->cols };
}

static void run_kv_write(struct stage *s, const struct test_case *c)
{
    struct kv kv = make_cache(s, c);
    struct tensor *k = stage_rows(s, c, kv.k.cols), *v = stage_rows(s, c, kv.k.cols);
    op_kv_write(&s->run, &kv, k, v, SELFTEST_POS);
    stage_result(s, &kv.k, c->half ? STAGE_F16 : STAGE_F32);
    stage_result(s, &kv.v, c->half ? STAGE_F16 : STAGE_F32);
}

static void run_attention(struct stage *s, const struct test_case *c)
{
    struct kv kv = make_cache(s, c);
    struct tensor *q = stage_rows(s, c, c->n_head * c->cols);
    struct tensor *y = stage_rows(s, c, c->n_head * c->cols);
    op_attention(&s->run, y, q, &kv, c->n_head, 17, SELFTEST_POS);
    stage_result(s, y, STAGE_F32);
}

/* rope(head_norm(x)) of heads of the case's size. */
static struct value *rotated(struct stage *s, const struct test_case *c, struct value *x,
                             struct value *angles)
{
    x = tape_head_norm(s->tape, x, stage_vector(s, c->cols, 1), c->cols);
    return tape_rope(s->tape, x, angles, c->cols);
}

/* New keys, unless plain, and the attention of new queries. */
static struct value *attend(struct stage *s, const struct test_case *c, struct kv *kv,
                            uint32_t window)
{
    struct tape *t = stage_tape(s, c);
    struct value *angles = stage_input(s, c, c->cols);
    struct value *q = stage_donated(s, c, c->n_head * c->cols);
    q = rotated(s, c, q, angles);
    if (!c->plain) {
        struct value *k = stage_donated(s, c, kv->k.cols), *v = stage_donated(s, c, kv->k.cols);
        k = rotated(s, c, k, angles);
        v = tape_head_norm(t, v, stage_absent(s), c->cols);
        tape_kv_write(t, kv, k, v);
    }
    const struct attend of = {
        .kv = kv, .mask = { MASK_CAUSAL, window }, .n_head = c->n_head, .scale = 1
    };
    return tape_attend(t, q, &of);
}

static void run_heads_write(struct stage *s, const struct test_case *c)
{
    struct kv kv = make_cache(s, c);
    struct value *o = attend(s, c, &kv, 17);
    stage_keep(s, o, STAGE_F32);
    stage_run(s, RULE_ATTEND_HEADS, SELFTEST_POS);
    stage_result(s, &kv.k, c->half ? STAGE_F16 : STAGE_F32);
    stage_result(s, &kv.v, c->half ? STAGE_F16 : STAGE_F32);
}

/* One row; out: a product with its attention; split: in a dispatch of its own. */
void selftest_attend(struct stage *s, const struct test_case *c)
{
    struct kv kv = make_cache(s, c);
    uint32_t width = c->n_head * c->cols;
    struct weight *w = c->out ? stage_matrix(s, c, width, c->out, 1) : NULL;
    struct value *o = attend(s, c, &kv, c->far ? 0 : SELFTEST_LATER);
    if (w && !c->split) {
        o = tape_linear(s->tape, o, w);
        stage_keep(s, o, STAGE_F32);
        stage_run(s, RULE_ATTEND_LINEAR, SELFTEST_LATER);
        return;
    }
    struct tensor attention = *stage_keep_ready(s, o);
    stage_set_tiling(s, w ? c->attend_tiling : c->tiling);
    stage_run(s, RULE_ATTEND_HEADS, SELFTEST_LATER);
    if (w) {
        struct tensor *y = stage_rows(s, c, c->out);
        stage_set_tiling(s, c->tiling);
        attention.ready = o->at.ready;
        op_linear(&s->run, y, &attention, w);
        stage_result(s, y, STAGE_F32);
    }
}

/* Few rows and many; heads of one size for every number of columns that a lane can have, and of one
 * that no kernel is compiled for; query heads that share a key head. */
bool selftest_pick_attention(struct selftest *t, bool half)
{
    static const uint32_t dims[] = { 32, 48, 64, 128, 256, 512 }, groups[] = { 1, 2, 4, 8 };
    static const uint32_t rows[] = { 1, 9 };
    struct test_case write = { run_kv_write, .rows = 2, .cols = 32, .n_kv = 2, .half = half };
    struct test_case heads = { run_heads_write, .rows = 2, .cols = 64,
                               .n_head = 4,     .n_kv = 2, .half = half };
    bool ok = selftest_pick(t, &write);
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                struct test_case c = { run_attention, .rows = rows[r], .cols = dims[d], .n_kv = 2,
                                       .half = half };
                c.n_head = 2 * groups[g];
                c.tiling = 1 + (uint32_t)g; /* all heads of a group together */
                ok = ok && selftest_pick(t, &c);
                c.run = run_heads_write;
                if (c.rows > 1) ok = ok && selftest_pick(t, &c);
                if (c.rows > 1) continue;
                c.run = selftest_attend;
                for (uint32_t k = 0; k < 4; k++) {
                    c.plain = k & 1;
                    c.far = k > 1;
                    ok = ok && selftest_pick(t, &c);
                }
            }
    return ok && selftest_pick(t, &heads);
}
