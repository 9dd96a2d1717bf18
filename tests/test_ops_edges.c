/* test_ops_edges.c - what the table of test_ops.c cannot say: ties, masks, drift, and what happens
 * when a read or an allocation fails in the middle of an op.
 */
#include "ops/ops_optional.h"
#include "ops_fixture.h"

enum { N_BACKENDS = 3 };

static struct backend backends[N_BACKENDS]; /* the reference, 1 thread, 3 threads */
static struct bench bench;

#define FOR_EACH_BACKEND for (int be_ = 0; be_ < N_BACKENDS; be_++)

static void begin(int backend, bool mapped)
{
    bench_open(&bench, &backends[backend], mapped, 77);
}

/* ---- ties ---- */

static void check_ties(int backend)
{
    enum { ROWS = 3, EXPERTS = 9, USED = 4 };
    begin(backend, true);
    struct act *scores = bench_blank(&bench, ROWS, EXPERTS);
    for (int i = 0; i < ROWS * EXPERTS; i++) { /* experts 2, 5, 7 and 8 are the same and the best */
        int e = i % EXPERTS;
        scores->v[i] = e == 2 || e == 5 || e > 6 ? 4 : (float)e * 0.25f;
    }
    op_write(&bench.run, &scores->t, 0, scores->v, ROWS);
    struct act *ids = bench_blank(&bench, ROWS, USED), *weights = bench_blank(&bench, ROWS, USED);
    struct routing out = { ids->t, weights->t };
    op_route(&bench.run, &out, &scores->t);
    bench_result(&bench, &out.ids, true);
    bench_result(&bench, &out.weights, false);
    const float want[USED] = { 2, 5, 7, 8 };
    for (int i = 0; i < ROWS * USED; i++) {
        CHECK(bench.got[i] == want[i % USED]);
        CHECK(bench.got[ROWS * USED + i] == 0.25f);
    }
    bench_close(&bench);
}

/* ---- routing beside the definition ---- */

/* A score of one of six kinds: any, few values with both zeros, those with NaN, only NaN, with
 * infinities below, with infinite best ones. */
static float any_score(uint32_t kind)
{
    float z = bench_normal(&bench), few = copysignf(roundf(fabsf(z)), z);
    uint32_t dice = rng_below(&bench.rng, 4);
    switch (kind % 6) {
    case 0: return 100 * z;
    case 1: return few;
    case 2: return dice ? few : NAN;
    case 3: return dice ? NAN : -NAN;
    case 4: return dice ? few : -INFINITY;
    default: return dice ? few : INFINITY;
    }
}

/* Is expert a before b? */
static bool is_better(const float *z, uint32_t a, uint32_t b)
{
    if (isnan(z[a]) || isnan(z[b])) return isnan(z[a]) && isnan(z[b]) ? a < b : isnan(z[b]);
    return z[a] > z[b] || (z[a] == z[b] && a < b);
}

/* The expert in place j has j better ones, so no two places have the same. Its weight is its part
 * of what the chosen ones have of the softmax, to 4 roundings of f32 (to 1e-40, below which f32 has
 * fewer bits); of no softmax it is NaN. */
static bool is_routed(const float *z, uint32_t n, const float *ids, const float *weights,
                      uint32_t n_used)
{
    double total = 0, top = (double)z[(uint32_t)ids[0]];
    bool ok = true, numbers = isfinite(top);
    for (uint32_t e = 0; e < n; e++) numbers = numbers && !isnan(z[e]);
    for (uint32_t j = 0; j < n_used; j++) total += exp((double)z[(uint32_t)ids[j]] - top);
    for (uint32_t j = 0; j < n_used; j++) {
        uint32_t id = (uint32_t)ids[j], before = 0;
        for (uint32_t e = 0; e < n; e++) before += is_better(z, e, id);
        double want = exp((double)z[id] - top) / total;
        bool right =
            numbers ? fabs((double)weights[j] - want) <= want * 0x1p-22 + 1e-40 : isnan(weights[j]);
        ok = ok && before == j && right;
    }
    return ok;
}

static void check_routing(int backend, uint32_t rows, uint32_t n, uint32_t n_used)
{
    begin(backend, true);
    bench.rng.state += 3 * rows + 5 * n + 7 * n_used;
    struct act *scores = bench_blank(&bench, rows, n);
    for (uint32_t t = 0; t < rows; t++)
        for (uint32_t e = 0; e < n; e++) scores->v[(size_t)t * n + e] = any_score(t + n);
    op_write(&bench.run, &scores->t, 0, scores->v, rows);
    struct act *ids = bench_blank(&bench, rows, n_used), *by = bench_blank(&bench, rows, n_used);
    struct routing out = { ids->t, by->t };
    for (uint32_t i = 0; i < rows * n_used; i++) by->v[i] = 7; /* NaN is a result */
    op_write(&bench.run, &by->t, 0, by->v, rows);
    op_route(&bench.run, &out, &scores->t);
    bench_result(&bench, &out.ids, true);
    bench_result(&bench, &out.weights, false);
    const float *weights = bench.got + (size_t)rows * n_used;
    uint32_t wrong = 0;
    for (uint32_t t = 0; t < rows; t++)
        wrong += !is_routed(scores->v + (size_t)t * n, n, bench.got + (size_t)t * n_used,
                            weights + (size_t)t * n_used, n_used);
    CHECK_MSG(!wrong, "%u of %u rows, %u of %u experts", wrong, rows, n_used, n);
    bench_close(&bench);
}

/* Of every number of rows and of experts; 1,024 and 32 are the most that a model may have. */
static void check_routings(int backend)
{
    for (uint32_t rows = 1; rows <= 512; rows++)
        check_routing(backend, rows, 1 + rows % 40, 1 + rows % 40 / 2);
    for (uint32_t n = 1; n <= 1024; n++) {
        uint32_t n_used = 1 + n * 7 % 32;
        check_routing(backend, 6, n, n_used < n ? n_used : n);
    }
    check_routing(backend, 512, 1024, 32);
}

/* ---- rotation ---- */

/* The angle is stepped by f32 multiplications: i roundings of the product and i times the error of
 * the step (powf: 1 ulp). So it may be off by its own size times (3 i + 2) 2^-24, and no more. */
static void check_drift(int backend, uint32_t head_dim, uint32_t n_pair, uint32_t pos, bool divided)
{
    begin(backend, true);
    float div[256];
    for (uint32_t i = 0; i < n_pair; i++) div[i] = divided ? 1 + (float)(i % 5) : 1;
    struct rope rope = { 1e6f, head_dim, n_pair, divided ? div : NULL };
    struct act *table = bench_blank(&bench, 3, 2 * n_pair);
    op_rope_table(&bench.run, &table->t, &rope, pos);
    bench_result(&bench, &table->t, false);
    for (uint32_t t = 0; t < 3; t++)
        for (uint32_t i = 0; i < n_pair; i++) {
            double turn = (pos + t) * pow(1e6, -2.0 * i / head_dim) / (double)div[i];
            double most = turn * (3 * i + 2) * 0x1p-24 + 1e-7;
            const float *row = bench.got + (size_t)t * 2 * n_pair;
            CHECK_MSG(fabs((double)row[i] - cos(turn)) <= most &&
                          fabs((double)row[n_pair + i] - sin(turn)) <= most,
                      "position %u pair %u: off by %g, allowed %g", pos + t, i,
                      fabs((double)row[i] - cos(turn)), most);
        }
    bench_close(&bench);
}

/* Turning changes no length, and pairs past n_pair do not turn. */
static void check_turn(int backend)
{
    enum { ROWS = 4, HEAD = 32, N_HEAD = 2, PAIRS = 5 };
    begin(backend, true);
    struct rope rope = { 10000, HEAD, PAIRS, NULL };
    struct act *table = bench_blank(&bench, ROWS, 2 * PAIRS);
    struct act *turned = bench_random(&bench, ROWS, HEAD * N_HEAD);
    struct act *still = bench_blank(&bench, ROWS, HEAD * N_HEAD);
    op_write(&bench.run, &still->t, 0, turned->v, ROWS);
    struct mat *w = bench_weight(&bench, QUANT_F32, HEAD, 1, 1);
    op_rope_table(&bench.run, &table->t, &rope, 0);
    op_head_norm(&bench.run, &turned->t, &w->w, N_HEAD, EPS);
    op_rope(&bench.run, &turned->t, &table->t, N_HEAD);
    op_head_norm(&bench.run, &still->t, &w->w, N_HEAD, EPS);
    bench_result(&bench, &turned->t, false);
    bench_result(&bench, &still->t, false);
    const float *a = bench.got, *b = a + bench.n_got / 2;
    CHECK(memcmp(a, b, HEAD * N_HEAD * sizeof *a) == 0); /* position 0 */
    for (int at = 0; at < ROWS * N_HEAD * HEAD; at += HEAD)
        for (int i = 0; i < HEAD / 2; i++) {
            const float *p = a + at + i, *q = b + at + i;
            if (i < PAIRS) {
                float before = hypotf(q[0], q[HEAD / 2]), after = hypotf(p[0], p[HEAD / 2]);
                CHECK(fabsf(after - before) <= 4 * 0x1p-23f * before);
                if (at >= HEAD * N_HEAD) CHECK(p[0] != q[0]);
            } else {
                CHECK(p[0] == q[0] && p[HEAD / 2] == q[HEAD / 2]);
            }
        }
    bench_close(&bench);
}

/* ---- the cache ---- */

static void check_slots(int backend)
{
    enum { RING = 5, COLS = 6, LAST = 23 };
    begin(backend, true);
    struct act *k_ring = bench_blank(&bench, RING, COLS), *v_ring = bench_blank(&bench, RING, COLS);
    struct act *k = bench_random(&bench, LAST, COLS), *v = bench_random(&bench, LAST, COLS);
    struct kv kv = { .k = k_ring->t, .v = v_ring->t, .n_kv_head = 2, .head_dim = 3 };
    for (uint32_t at = 0, n; at < LAST; at += n) {
        n = 1 + at % RING < LAST - at ? 1 + at % RING : LAST - at;
        struct tensor k_part = { .rows = n, .cols = COLS, .mem = row_f32(&k->t, at) };
        struct tensor v_part = { .rows = n, .cols = COLS, .mem = row_f32(&v->t, at) };
        op_kv_write(&bench.run, &kv, &k_part, &v_part, at);
    }
    for (uint32_t p = LAST - RING; p < LAST; p++) {
        float row[COLS];
        op_read(&bench.run, &kv.k, p % RING, row, 1);
        CHECK(memcmp(row, k->v + (size_t)p * COLS, sizeof row) == 0);
        op_read(&bench.run, &kv.v, p % RING, row, 1);
        CHECK(memcmp(row, v->v + (size_t)p * COLS, sizeof row) == 0);
    }
    bench_close(&bench);
}

/* Only positions inside the mask are read: every other slot, later or older, is NaN. */
static void check_mask(int backend)
{
    enum { RING = 12, COLS = 16, WINDOW = 4, POS = 30, ROWS = 3 };
    begin(backend, true);
    struct act *k = bench_blank(&bench, RING, COLS), *v = bench_blank(&bench, RING, COLS);
    struct act *q = bench_random(&bench, ROWS, COLS), *y = bench_blank(&bench, ROWS, COLS);
    struct act *one = bench_random(&bench, 1, COLS);
    struct kv kv = { .k = k->t, .v = v->t, .n_kv_head = 1, .head_dim = COLS };
    for (uint32_t p = POS - WINDOW + 1; p < POS + ROWS; p++)
        op_kv_write(&bench.run, &kv, &one->t, &one->t, p);
    op_attention(&bench.run, &y->t, &q->t, &kv, 1, WINDOW, POS);
    bench_result(&bench, &y->t, false);
    for (int i = 0; i < ROWS * COLS; i++) /* all visible values are the same vector */
        CHECK(fabsf(bench.got[i] - one->v[i % COLS]) <= 1e-6f * fabsf(one->v[i % COLS]));
    bench_close(&bench);
}

/* The same with the masks of a canvas and of spans; the span begins before the step's last rows. */
static void check_masked(int backend, enum mask_kind kind)
{
    enum { RING = 16, COLS = 16, WINDOW = 4, POS = 30, ROWS = 3 };
    begin(backend, true);
    struct act *k = bench_blank(&bench, RING, COLS), *v = bench_blank(&bench, RING, COLS);
    struct act *q = bench_random(&bench, ROWS, COLS), *y = bench_blank(&bench, ROWS, COLS);
    struct act *one = bench_random(&bench, 1, COLS), *own = bench_blank(&bench, ROWS, COLS);
    struct act *later = bench_blank(&bench, ROWS, 1);
    struct kv kv = { .k = k->t, .v = v->t, .n_kv_head = 1, .head_dim = COLS };
    const int32_t to_last[ROWS] = { 2, 1, 0 };
    bool prefix = kind == MASK_PREFIX;
    for (uint32_t p = POS - WINDOW + 1; p < (prefix ? POS : POS + ROWS); p++)
        op_kv_write(&bench.run, &kv, &one->t, &one->t, p);
    for (uint32_t t = 0; t < ROWS; t++) op_write(&bench.run, &own->t, t, one->v, 1);
    op_write(&bench.run, &later->t, 0, to_last, ROWS);
    const struct attention a = { .kv = &kv,
                                 .k = prefix ? &own->t : NULL,
                                 .v = prefix ? &own->t : NULL,
                                 .later = prefix ? NULL : &later->t,
                                 .mask = { kind, WINDOW },
                                 .n_head = 1,
                                 .scale = 0.5f };
    op_attend_masked(&bench.run, &y->t, &q->t, &a, POS);
    bench_result(&bench, &y->t, false);
    for (int i = 0; i < ROWS * COLS; i++)
        CHECK(fabsf(bench.got[i] - one->v[i % COLS]) <= 1e-6f * fabsf(one->v[i % COLS]));
    bench_close(&bench);
}

static void check_flat(int backend)
{
    enum { COLS = 48 };
    const float far[4] = { -INFINITY, INFINITY, NAN, 1e30f };
    float flat[COLS];
    begin(backend, true);
    for (int i = 0; i < COLS; i++) flat[i] = 1e6f;
    struct act *x = bench_blank(&bench, 1, COLS), *y = bench_blank(&bench, 1, COLS);
    struct act *z = bench_blank(&bench, 1, 4);
    struct mat *w = bench_weight(&bench, QUANT_F32, COLS, 1, 1);
    struct mat *b = bench_weight(&bench, QUANT_F32, COLS, 1, 1);
    op_write(&bench.run, &x->t, 0, flat, 1);
    op_write(&bench.run, &z->t, 0, far, 1);
    op_layer_norm(&bench.run, &y->t, &x->t, &w->w, &b->w, 1e-6f);
    op_clamp(&bench.run, &z->t, -2, 3);
    bench_result(&bench, &y->t, false);
    bench_result(&bench, &z->t, false);
    CHECK(memcmp(bench.got, b->v, sizeof flat) == 0);
    const float *end = bench.got + COLS;
    CHECK(end[0] == -2 && end[1] == 3 && isnan(end[2]) && end[3] == 3);
    bench_close(&bench);
}

/* Scores of +-10^5 are far outside exp's range; the best one takes all. */
static void check_large_scores(int backend)
{
    enum { COLS = 16, N = 9 };
    begin(backend, true);
    struct act *k = bench_random(&bench, N, COLS), *v = bench_random(&bench, N, COLS);
    struct act *q = bench_random(&bench, 1, COLS), *y = bench_blank(&bench, 1, COLS);
    struct kv kv = { .k = k->t, .v = v->t, .n_kv_head = 1, .head_dim = COLS };
    double best = -INFINITY;
    int winner = 0;
    for (int i = 0; i < COLS; i++) q->v[i] *= 1e5f;
    op_write(&bench.run, &q->t, 0, q->v, 1);
    for (int s = 0; s < N; s++) {
        double score = 0;
        for (int i = 0; i < COLS; i++) score += (double)q->v[i] * (double)k->v[s * COLS + i];
        if (score > best) {
            best = score;
            winner = s;
        }
    }
    op_attention(&bench.run, &y->t, &q->t, &kv, 1, 0, N - 1);
    bench_result(&bench, &y->t, false);
    CHECK(memcmp(bench.got, v->v + winner * COLS, COLS * sizeof(float)) == 0);
    bench_close(&bench);
}

/* ---- adapters ---- */

static void check_adapters_add(int backend)
{
    enum { ROWS = 5, COLS = 32, OUT = 33 };
    begin(backend, true);
    struct act *x = bench_random(&bench, ROWS, COLS);
    struct act *plain = bench_blank(&bench, ROWS, OUT), *off = bench_blank(&bench, ROWS, OUT);
    struct mat *w = bench_weight(&bench, QUANT_Q8_0, COLS, OUT, 1);
    op_linear(&bench.run, &plain->t, &x->t, &w->w);
    bench_lora(&bench, w, 8);
    bench.loras[0].scale = 0;
    op_linear(&bench.run, &off->t, &x->t, &w->w);
    bench_result(&bench, &plain->t, false);
    bench_result(&bench, &off->t, false);
    for (int i = 0; i < ROWS * OUT; i++) CHECK(bench.got[i] == bench.got[ROWS * OUT + i]);
    bench_close(&bench);
}

/* ---- failures ---- */

static void count_tap(void *ctx, const char *name, int layer, const struct tensor *x)
{
    (void)name;
    (void)layer;
    (void)x;
    ++*(int *)ctx;
}

/* After an error: memory keeps its bits, the first sentence stays, taps are silent. */
static void check_inert(struct run *r)
{
    int n_taps = 0;
    struct bz_err before = r->err;
    enum bz_status st = r->status;
    r->tap = count_tap;
    r->tap_ctx = &n_taps;
    float one[4] = { 1, 2, 3, 4 }, two[4] = { 5, 6, 7, 8 }, was[4];
    struct tensor x = { .rows = 1, .cols = 4, .size = 4, .mem = one };
    struct tensor b = { .rows = 1, .cols = 4, .size = 4, .mem = two };
    memcpy(was, one, sizeof was);
    op_add(r, &x, &b);
    op_gelu_mul(r, &x, &b, 0);
    op_copy_rows(r, &x, &b, 0);
    op_write(r, &x, 0, two, 1);
    op_tap(r, "x", -1, &x);
    CHECK(memcmp(one, was, sizeof was) == 0 && n_taps == 0);
    op_read(r, &b, 0, was, 1);
    CHECK(memcmp(one, was, sizeof was) == 0);
    run_fail(r, BZ_ERR_LIMIT, "a later error");
    CHECK(r->status == st && strcmp(r->err.text, before.text) == 0);
}

enum failing { LINEAR, ADAPTED, EMBED, EXPERTS, SPLIT_EXPERTS, ROUTE, TOWER, N_FAILING };

/* What reads weights; the bench says how that ends. */
static void run_reader(enum failing which)
{
    struct bench *b = &bench;
    struct act *x = bench_random(b, 5, 32), *y = bench_blank(b, 5, 40),
               *norm = bench_blank(b, 5, 32);
    struct act *ids = bench_ids(b, 5, 1, 3), *mix = bench_random(b, 5, 1);
    struct routing routing = { ids->t, mix->t };
    if (which == LINEAR || which == ADAPTED) {
        struct mat *w = bench_weight(b, QUANT_Q4_0, 32, 40, 1);
        if (which == ADAPTED) bench_lora(b, w, 3);
        op_linear(&b->run, &y->t, &x->t, &w->w);
    } else if (which == EMBED) {
        struct mat *w = bench_weight(b, QUANT_Q8_0, 32, 40, 1);
        op_embed(&b->run, &x->t, &w->w, &ids->t, 1);
    } else if (which == TOWER) {
        struct mat *w = bench_weight(b, QUANT_F16, 5, 32, 1);
        const struct attention all = {
            .k = &norm->t, .v = &norm->t, .mask = { MASK_FULL, 0 }, .n_head = 2, .scale = 1
        };
        op_conv_depthwise(&b->run, &norm->t, &x->t, &w->w);
        y->t.cols = 32;
        op_attend_masked(&b->run, &y->t, &x->t, &all, 0);
    } else if (which == ROUTE) {
        struct mat *w = bench_weight(b, QUANT_F32, 32, 40, 1);
        op_linear(&b->run, &y->t, &x->t, &w->w);
        op_route(&b->run, &routing, &y->t);
    } else {
        bool split = which == SPLIT_EXPERTS;
        struct mat *none = bench_absent(b);
        struct mat *gate = bench_weight(b, QUANT_Q8_0, 32, split ? 32 : 64, 3);
        struct mat *up = split ? bench_weight(b, QUANT_Q8_0, 32, 32, 3) : none;
        struct mat *down = bench_weight(b, QUANT_Q8_0, 32, 40, 3);
        struct experts e = { split ? &none->w : &gate->w, split ? &gate->w : &none->w, &up->w,
                             &down->w, &none->w };
        op_experts(&b->run, &y->t, &x->t, &routing, &e);
    }
}

/* The k-th read fails, for every k until none does. */
static void check_read_failures(int backend)
{
    for (int which = 0; which < N_FAILING; which++) {
        uint32_t k = 1;
        for (; k < 10000; k++) {
            begin(backend, false);
            bench.fail_at = k;
            run_reader((enum failing)which);
            if (atomic_load(&bench.n_reads) < k) break;
            CHECK(bench.run.status == BZ_ERR_IO);
            CHECK_STR(bench.run.err.text, "the disk went away");
            check_inert(&bench.run);
            bench_close(&bench);
        }
        CHECK(bench.run.status == BZ_OK && k > 1);
        bench_close(&bench);
    }
}

/* The same with memory: a fresh backend has all its scratch still to get. */
static void check_memory_failures(bool fast, unsigned n_threads)
{
    for (int which = 0; which < N_FAILING; which++) {
        int64_t live = mem_live();
        bool done = false;
        for (uint64_t k = 1; !done && k < 1000; k++) {
            struct backend be = { 0 };
            CHECK(cpu_open(&be, fast, n_threads, NULL) == BZ_OK);
            be.optional = &cpu_optional;
            bench_open(&bench, &be, false, 5);
            enum { INPUTS = 5 }; /* tensors of run_reader */
            mem_fail_at(INPUTS + k);
            run_reader((enum failing)which);
            mem_fail_at(0);
            done = bench.run.status == BZ_OK;
            if (!done) {
                CHECK(bench.run.status == BZ_ERR_MEMORY && bench.run.err.text[0]);
                check_inert(&bench.run);
            }
            bench_close(&bench);
            cpu_close(&be);
        }
        CHECK(done && mem_live() == live);
    }
}

static void check_failing_vector(int backend)
{
    begin(backend, false);
    bench.fail_at = 1;
    bench_weight(&bench, QUANT_F32, 16, 1, 1);
    CHECK(bench.run.status == BZ_ERR_IO);
    bench_close(&bench);
    begin(backend, false);
    mem_fail_at(2);
    bench_weight(&bench, QUANT_F32, 16, 1, 1);
    CHECK(bench.run.status == BZ_ERR_MEMORY);
    bench_close(&bench);
}

/* A source that ends too early is an error of the format, not a read past it. */
static void check_short_source(int backend)
{
    for (int mapped = 0; mapped < 2; mapped++) {
        begin(backend, mapped != 0);
        struct act *x = bench_random(&bench, 2, 32), *y = bench_blank(&bench, 2, 40);
        struct mat *w = bench_weight(&bench, QUANT_Q8_0, 32, 40, 1);
        w->src.size -= 1;
        op_linear(&bench.run, &y->t, &x->t, &w->w);
        CHECK(bench.run.status == BZ_ERR_FORMAT && bench.run.err.text[0]);
        bench_close(&bench);
    }
}

static void check_no_rows(int backend)
{
    begin(backend, true);
    struct act *x = bench_random(&bench, 2, 32), *y = bench_blank(&bench, 2, 32);
    struct mat *w = bench_weight(&bench, QUANT_F32, 32, 32, 1);
    struct mat *v = bench_weight(&bench, QUANT_F32, 32, 1, 1);
    struct kv kv = { .k = x->t, .v = x->t, .n_kv_head = 1, .head_dim = 32 };
    x->t.rows = 0;
    op_linear(&bench.run, &y->t, &x->t, &w->w);
    op_rms_norm(&bench.run, &y->t, &x->t, &v->w, 1e-6f);
    op_attention(&bench.run, &y->t, &x->t, &kv, 1, 0, 0);
    CHECK(y->t.rows == 0 && bench.run.status == BZ_OK);
    y->t.rows = 2;
    bench_result(&bench, &y->t, false);
    for (size_t i = 0; i < bench.n_got; i++)
        CHECK(isnan(bench.got[i])); /* as bench_blank left it */
    bench_close(&bench);
}

int main(void)
{
    struct bz_err err;
    int64_t live = mem_live();
    for (int i = 0; i < N_BACKENDS; i++) {
        CHECK(cpu_open(&backends[i], i > 0, i == 2 ? 3 : 1, &err) == BZ_OK);
        backends[i].optional = &cpu_optional;
    }

    TEST("equal experts are taken in the order of their index, with equal weights")
    FOR_EACH_BACKEND check_ties(be_);
    TEST("a routing is what its definition says, whatever the scores")
    FOR_EACH_BACKEND check_routings(be_);
    TEST("rope angles drift from the formula by no more than f32 explains")
    {
        FOR_EACH_BACKEND
        {
            check_drift(be_, 512, 256, 0, false);
            check_drift(be_, 512, 64, 1000, true);
            check_drift(be_, 256, 128, 131070, false);
        }
    }
    TEST("a rotation keeps lengths, and pairs past the last do not turn")
    FOR_EACH_BACKEND check_turn(be_);
    TEST("position p lives in row p mod rows") FOR_EACH_BACKEND check_slots(be_);
    TEST("attention reads no slot that the mask hides") FOR_EACH_BACKEND check_mask(be_);
    TEST("a canvas sees window - 1 positions before it, a span its own rows, and no other slot")
    {
        FOR_EACH_BACKEND
        {
            check_masked(be_, MASK_PREFIX);
            check_masked(be_, MASK_SPANS);
        }
    }
    TEST("a norm of equal numbers is the bias; far numbers are clamped, NaN stays")
    FOR_EACH_BACKEND check_flat(be_);
    TEST("a window that does not fit is none")
    {
        const struct conv_axis axis = { 5, 2, 1 };
        CHECK(conv_count(&axis, 2) == 0 && conv_count(&axis, 3) == 1 && conv_count(&axis, 6) == 2);
    }
    TEST("scores beyond the range of exp give the best value alone")
    FOR_EACH_BACKEND check_large_scores(be_);
    TEST("an adapter of scale 0 changes nothing") FOR_EACH_BACKEND check_adapters_add(be_);
    TEST("ops on no rows touch nothing") FOR_EACH_BACKEND check_no_rows(be_);
    TEST("any single failed read ends the run with its sentence")
    FOR_EACH_BACKEND check_read_failures(be_);
    TEST("a vector that cannot be read or kept is not loaded")
    FOR_EACH_BACKEND check_failing_vector(be_);
    TEST("a weight past the end of its source is an error")
    FOR_EACH_BACKEND check_short_source(be_);
    TEST("any single failed allocation ends the run")
    {
        check_memory_failures(false, 1);
        check_memory_failures(true, 1);
        check_memory_failures(true, 3);
    }
    for (int i = 0; i < N_BACKENDS; i++) cpu_close(&backends[i]);
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
