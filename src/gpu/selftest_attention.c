/* selftest_attention.c - the self-test's cases of keys, values and attention. */
#include "gpu/ops_gpu_impl.h"
#include "gpu/selftest_impl.h"

#define EPS SELFTEST_EPS

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

static void run_heads_write(struct stage *s, const struct test_case *c)
{
    struct kv kv = make_cache(s, c);
    struct tensor *k = stage_rows(s, c, kv.k.cols), *v = stage_rows(s, c, kv.k.cols);
    struct heads h = { .q = stage_rows(s, c, c->n_head * c->cols),
                       .k = k,
                       .v = v,
                       .q_norm = stage_vector(s, c->cols, 1),
                       .k_norm = stage_vector(s, c->cols, 1),
                       .table = stage_rows(s, c, c->cols),
                       .n_head = c->n_head };
    op_heads_write(&s->run, &kv, &h, SELFTEST_POS, EPS);
    stage_result(s, h.q, STAGE_F32);
    stage_result(s, &kv.k, c->half ? STAGE_F16 : STAGE_F32);
}

/* One row with new keys (plain: with another layer's). */
static struct heads make_heads(struct stage *s, const struct test_case *c, const struct kv *kv)
{
    struct heads h = { .q = stage_rows(s, c, c->n_head * c->cols),
                       .q_norm = stage_vector(s, c->cols, 1),
                       .k_norm = stage_vector(s, c->cols, 1),
                       .table = stage_rows(s, c, c->cols),
                       .n_head = c->n_head };
    if (!c->plain) {
        h.k = stage_rows(s, c, kv->k.cols);
        h.v = stage_rows(s, c, kv->k.cols);
    }
    return h;
}

/* Such a row and the answer; out: a product with it instead; split: after it. */
void selftest_attend(struct stage *s, const struct test_case *c)
{
    struct kv kv = make_cache(s, c);
    struct tensor *o = stage_rows(s, c, c->n_head * c->cols);
    struct heads h = make_heads(s, c, &kv);
    uint32_t window = c->far ? 0 : SELFTEST_LATER, pos = SELFTEST_LATER;
    if (c->out) {
        struct tensor *y = stage_rows(s, c, c->out);
        struct weight *w = stage_matrix(s, c, o->cols, c->out, 1);
        if (c->split) {
            stage_recut(s, c->attend_cut);
            op_attend(&s->run, o, &kv, &h, window, pos, EPS);
            stage_recut(s, c->cut);
            op_linear(&s->run, y, o, w);
        } else {
            op_attend_linear(&s->run, y, o, &kv, &h, window, pos, EPS, w);
        }
        stage_result(s, y, STAGE_F32);
        return;
    }
    op_attend(&s->run, o, &kv, &h, window, pos, EPS);
    stage_result(s, o, STAGE_F32);
    stage_settled(s, o);
}

/* Such a row where a head is one share. */
static void run_attend_alone(struct stage *s, const struct test_case *c)
{
    struct kv kv = make_cache(s, c);
    struct tensor *o = stage_rows(s, c, c->n_head * c->cols);
    struct heads h = make_heads(s, c, &kv);
    const uint32_t seen = SELFTEST_LATER;
    if (s->place == STAGE_CPU) op_attend(&s->run, o, &kv, &h, seen, seen, EPS);
    else gpu_attend_alone(&s->run, o, &kv, &h, seen, seen, EPS);
    stage_settled(s, o);
}

/* Few rows and many; heads of one size for every number of columns that a lane can have, and of one
 * that no kernel is compiled for; query heads that share a key head. */
bool selftest_pick_attention(struct selftest *t, bool half)
{
    static const uint32_t dims[] = { 32, 48, 64, 128, 256, 512 }, groups[] = { 1, 2, 4, 8 };
    static const uint32_t rows[] = { 1, 9 };
    struct test_case write = { run_kv_write, .rows = 2, .cols = 32, .n_kv = 2, .half = half };
    struct test_case heads = { run_heads_write, .rows = 2, .cols = 64,
                               .n_head = 3,     .n_kv = 2, .half = half };
    bool ok = selftest_pick(t, &write) && selftest_pick(t, &heads);
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                struct test_case c = { run_attention, .rows = rows[r], .cols = dims[d], .n_kv = 2,
                                       .half = half };
                c.n_head = 2 * groups[g];
                c.cut = 1 + (uint32_t)g; /* all heads of a group together */
                ok = ok && selftest_pick(t, &c);
                if (c.rows > 1) continue;
                c.run = run_attend_alone;
                if (c.cols % 16 == 0) ok = ok && selftest_pick(t, &c);
                c.run = selftest_attend;
                for (uint32_t k = 0; k < 4; k++) {
                    c.plain = k & 1;
                    c.far = k > 1;
                    ok = ok && selftest_pick(t, &c);
                }
            }
    return ok;
}
