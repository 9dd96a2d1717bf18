/* test_members.c - two toy members of the family: a tower, which sees a picture, and a canvas,
 * whose rows see one another. HACKING says how a real one is added; these show what it looks like.
 *
 * A tower's numbers are compared with loops over doubles; a canvas with the causal steps that it
 * must be equal to.
 */
#include "gpu/null_host.h"
#include "gpu/ops_gpu.h"
#include "gpu/profile.h"
#include "tape_fixture.h"

enum { HEAD = 16, N_HEAD = 2, D = N_HEAD * HEAD };

/* ---- a tower: a picture of 12 x 8 points becomes 3 x 2 rows ---- */

enum { WIDTH = 12, HEIGHT = 8, RGB = 3, PATCH = 2, POOL = 2, OUT = 20 };
enum {
    NX = WIDTH / PATCH,
    NY = HEIGHT / PATCH,
    N_PATCH = NX * NY,
    PATCH_SIZE = PATCH * PATCH * RGB
};
enum { POOLED_X = NX / POOL, POOLED = N_PATCH / (POOL * POOL) };

#define LN_EPS 1e-5f
#define SCALE  0.25f /* 1 / sqrt(HEAD) */
#define LOW    -0.5f
#define HIGH   0.75f

struct tower {
    const struct weight *patch, *patch_bias, *norm, *norm_bias, *q, *k, *v, *o, *out;
    struct rope rope; /* of half a head */
};

/* y = clamp(W clamp(x)) */
static struct value *clamped_linear(struct tape *t, struct value *x, const struct weight *w)
{
    x = tape_clamp(t, x, LOW, HIGH);
    x = tape_linear(t, x, w);
    return tape_clamp(t, x, LOW, HIGH);
}

/* x = P patches + b
 * x += clamp(O clamp(softmax(q k / 4) v))   with q, k, v of layer_norm(x), q and k turned by place
 * y = W mean(each 2 x 2 of x)
 */
static struct value *tower_forward(struct tape *t, const struct tower *m, struct value *picture,
                                   struct value *xy)
{
    const struct conv patches = { WIDTH, { PATCH, PATCH, 0 }, { PATCH, PATCH, 0 } };
    struct value *angles = tape_angles_2d(t, &m->rope, xy);
    struct value *x = tape_unfold(t, picture, &patches);
    x = tape_linear(t, x, m->patch);
    x = tape_add_bias(t, x, m->patch_bias);
    struct value *h = tape_layer_norm(t, x, m->norm, m->norm_bias, LN_EPS);
    struct value *q = tape_linear(t, h, m->q);
    struct value *k = tape_linear(t, h, m->k);
    struct value *v = tape_linear(t, h, m->v);
    q = tape_rope_2d(t, q, angles, HEAD);
    k = tape_rope_2d(t, k, angles, HEAD);
    const struct attend all = {
        .k = k, .v = v, .mask = { MASK_FULL, 0 }, .n_head = N_HEAD, .scale = SCALE
    };
    h = tape_attend(t, q, &all);
    h = clamped_linear(t, h, m->o);
    x = tape_add(t, x, h);
    x = tape_pool(t, x, NX, POOL);
    return tape_linear(t, x, m->out);
}

static const struct weight *vector(struct bench *b, uint32_t n)
{
    return &bench_weight(b, QUANT_F32, n, 1, 1)->w;
}

static const struct weight *matrix(struct bench *b, uint32_t cols, uint32_t rows)
{
    return &bench_weight(b, QUANT_F16, cols, rows, 1)->w;
}

static struct tower tower_weights(struct bench *b)
{
    return (struct tower) { .patch = matrix(b, PATCH_SIZE, D),
                            .patch_bias = vector(b, D),
                            .norm = vector(b, D),
                            .norm_bias = vector(b, D),
                            .q = matrix(b, D, D),
                            .k = matrix(b, D, D),
                            .v = matrix(b, D, D),
                            .o = matrix(b, D, D),
                            .out = matrix(b, D, OUT),
                            .rope = { 100, HEAD / 2, HEAD / 4, NULL } };
}

/* Where each patch is: column, line. */
static struct act *bench_places(struct bench *b)
{
    struct act *a = bench_blank(b, N_PATCH, 2);
    int32_t *xy = (int32_t *)(void *)a->v;
    for (int32_t i = 0; i < N_PATCH; i++) xy[2 * i] = i % NX, xy[2 * i + 1] = i / NX;
    op_write(&b->run, &a->t, 0, xy, N_PATCH);
    return a;
}

/* Pair i of a half is a complex number; its place turns it by e^(i angle). */
static void formula_turn(double *u, const int32_t place[2])
{
    enum { HALF = HEAD / 2, PAIRS = HALF / 2 };
    for (int h = 0; h < N_HEAD; h++)
        for (int axis = 0; axis < 2; axis++)
            for (int i = 0; i < PAIRS; i++) {
                double *re = u + h * HEAD + axis * HALF + i, *im = re + PAIRS, was = *re;
                double angle = place[axis] * pow(100, -2.0 * i / (double)HALF);
                *re = was * cos(angle) - *im * sin(angle);
                *im = was * sin(angle) + *im * cos(angle);
            }
}

static void formula_layer_norm(double *y, const double *x, const float *w, const float *b)
{
    double mean = 0, var = 0;
    for (int i = 0; i < D; i++) mean += x[i] / (double)D;
    for (int i = 0; i < D; i++) var += (x[i] - mean) * (x[i] - mean) / (double)D;
    for (int i = 0; i < D; i++)
        y[i] = (x[i] - mean) / sqrt(var + (double)LN_EPS) * (double)w[i] + (double)b[i];
}

/* One row's attention over all keys. */
static void formula_attention(double *y, const double *q, double (*k)[D], double (*v)[D])
{
    for (int h = 0; h < N_HEAD; h++) {
        double p[N_PATCH], total = 0;
        for (int s = 0; s < N_PATCH; s++) {
            double score = 0;
            for (int i = h * HEAD; i < (h + 1) * HEAD; i++) score += q[i] * k[s][i];
            total += p[s] = exp(score / 4);
        }
        for (int i = h * HEAD; i < (h + 1) * HEAD; i++) {
            y[i] = 0;
            for (int s = 0; s < N_PATCH; s++) y[i] += p[s] / total * v[s][i];
        }
    }
}

static void formula_clamp(double x[D])
{
    for (int i = 0; i < D; i++) x[i] = fmin(fmax(x[i], (double)LOW), (double)HIGH);
}

/* The whole tower, patch by patch. */
static void tower_formula(double y[POOLED][OUT], const struct tower *m, const float *picture)
{
    static double x[N_PATCH][D], q[N_PATCH][D], k[N_PATCH][D], v[N_PATCH][D];
    double h[D], o[D], pooled[POOLED][D] = { 0 };
    for (int p = 0; p < N_PATCH; p++) {
        const int32_t place[2] = { p % NX, p / NX };
        double patch[PATCH_SIZE];
        for (int i = 0; i < PATCH_SIZE; i++) { /* channel, line, point */
            int px = place[0] * PATCH + i % PATCH, py = place[1] * PATCH + i / PATCH % PATCH;
            patch[i] = (double)picture[(py * WIDTH + px) * RGB + i / (PATCH * PATCH)];
        }
        formula_matvec(x[p], patch, m->patch, 0);
        for (int i = 0; i < D; i++) x[p][i] += (double)decoded(m->patch_bias)[i];
        formula_layer_norm(h, x[p], decoded(m->norm), decoded(m->norm_bias));
        formula_matvec(q[p], h, m->q, 0);
        formula_matvec(k[p], h, m->k, 0);
        formula_matvec(v[p], h, m->v, 0);
        formula_turn(q[p], place);
        formula_turn(k[p], place);
    }
    for (int p = 0; p < N_PATCH; p++) {
        formula_attention(h, q[p], k, v);
        formula_clamp(h);
        formula_matvec(o, h, m->o, 0);
        formula_clamp(o);
        int cell = p / NX / POOL * POOLED_X + p % NX / POOL;
        for (int i = 0; i < D; i++) pooled[cell][i] += (x[p][i] + o[i]) / (POOL * POOL);
    }
    for (int p = 0; p < POOLED; p++) formula_matvec(y[p], pooled[p], m->out, 0);
}

/* Runs a tower; its numbers go to b->got. */
static void run_tower(struct bench *b, const struct backend *be, struct tower *m,
                      struct act **picture)
{
    struct tape t = { 0 };
    struct tape_memory memory = { 0 };
    bench_open(b, be, true, 1);
    *m = tower_weights(b);
    *picture = bench_random(b, WIDTH * HEIGHT, RGB);
    struct act *xy = bench_places(b), *y = bench_blank(b, POOLED, OUT);
    begin(&t, N_PATCH, N_PATCH);
    struct value *points = tape_input(&t, &(*picture)->t, WIDTH * HEIGHT);
    struct value *places = tape_input(&t, &xy->t, N_PATCH);
    tape_result(&t, tower_forward(&t, m, points, places), &y->t);
    CHECK(make_ready(&t, &memory, be));
    tape_run(&t, &b->run, 0);
    if (b->run.status == BZ_OK) bench_result(b, &y->t, false);
    tape_free(&t);
    tape_memory_close(&memory, be);
}

static void check_tower(const struct backend *be)
{
    struct bench b;
    struct tower m;
    struct act *picture;
    double want[POOLED][OUT];
    run_tower(&b, be, &m, &picture);
    CHECK_MSG(b.run.status == BZ_OK, "%s", b.run.err.text);
    tower_formula(want, &m, picture->v);
    for (int i = 0; i < POOLED * OUT; i++)
        CHECK(fabs((double)b.got[i] - want[i / OUT][i % OUT]) < 1e-5);
    bench_close(&b);
}

static void check_lacking(const struct backend *be, const char *want)
{
    struct bench b;
    struct tower m;
    struct act *picture;
    run_tower(&b, be, &m, &picture);
    CHECK(b.run.status == BZ_ERR_UNSUPPORTED);
    CHECK_STR(b.run.err.text, want);
    bench_close(&b);
}

/* A GPU without a device, which has no kernel of a tower. */
static void check_lacking_gpu(void)
{
    struct backend gpu;
    struct bz_err err;
    null_host_open(gpu_profile_find("nvidia"));
    CHECK(gpu_ops_open(&gpu, TIER_SUBGROUP, &err) == BZ_OK);
    check_lacking(&gpu, "the gpu has no kernel for angles_2d yet");
    gpu.close(&gpu);
    null_host_close();
}

/* ---- a canvas: words that see one another, after a text ---- */

enum { V = 40, RING = 24, WINDOW = 5, MOST = 16 };

struct words {
    const struct weight *table, *q, *k, *v;
    struct rope rope;
};

/* y = softmax(q k) v   with x = table[id], and q, k, v of it, q and k turned by position
 *
 * Causal rows and spans write the cache and read it. A canvas reads it and writes nothing.
 */
static struct value *words_forward(struct tape *t, const struct words *m, struct kv *kv,
                                   struct value *ids, struct value *later, struct mask mask)
{
    struct value *angles = tape_angles(t, &m->rope, 0, ids->at.rows);
    struct value *x = tape_embed(t, m->table, ids, 1);
    struct value *q = tape_linear(t, x, m->q);
    struct value *k = tape_linear(t, x, m->k);
    struct value *v = tape_linear(t, x, m->v);
    q = tape_rope(t, q, angles, HEAD);
    k = tape_rope(t, k, angles, HEAD);
    struct attend a = { .kv = kv, .mask = mask, .n_head = N_HEAD, .scale = 1 };
    if (mask.kind == MASK_PREFIX || mask.kind == MASK_FULL) a.k = k, a.v = v;
    else tape_kv_write(t, kv, k, v);
    if (mask.kind == MASK_FULL) a.kv = NULL;
    if (mask.kind == MASK_SPANS) a.later = later;
    return tape_attend(t, q, &a);
}

/* A text's words, its cache, and which rows of it see later ones. */
struct text {
    struct bench b;
    struct words m;
    struct act *ids, *later;
    struct kv kv;
};

static void text_open(struct text *x, const struct backend *be)
{
    struct bench *b = &x->b;
    bench_open(b, be, true, 3);
    x->m = (struct words) { .table = matrix(b, D, V),
                            .q = matrix(b, D, D),
                            .k = matrix(b, D, HEAD),
                            .v = matrix(b, D, HEAD),
                            .rope = { 100, HEAD, HEAD / 2, NULL } };
    x->ids = bench_ids(b, MOST, 1, V);
    x->later = bench_blank(b, MOST, 1);
    x->kv = (struct kv) { .k = bench_blank(b, RING, HEAD)->t,
                          .v = bench_blank(b, RING, HEAD)->t,
                          .n_kv_head = 1,
                          .head_dim = HEAD };
}

/* The step of the words [pos, pos + rows): its result. */
static void step(struct text *x, uint32_t pos, uint32_t rows, struct mask mask, float y[][D])
{
    const struct backend *be = x->b.be;
    struct tape t = { 0 };
    struct tape_memory memory = { 0 };
    struct tensor ids, later, out;
    CHECK(tensor_alloc(be, &ids, rows, 1) && tensor_alloc(be, &later, rows, 1));
    CHECK(tensor_alloc(be, &out, rows, D));
    op_write(&x->b.run, &ids, 0, x->ids->v + pos, rows);
    op_write(&x->b.run, &later, 0, x->later->v + pos, rows);
    ids.rows = later.rows = out.rows = rows;
    begin(&t, rows, rows);
    struct value *in = tape_input(&t, &ids, rows), *spans = tape_input(&t, &later, rows);
    tape_result(&t, words_forward(&t, &x->m, &x->kv, in, spans, mask), &out);
    CHECK(make_ready(&t, &memory, be));
    tape_run(&t, &x->b.run, pos);
    CHECK_MSG(x->b.run.status == BZ_OK, "%s", x->b.run.err.text);
    op_read(&x->b.run, &out, 0, y, rows);
    tape_free(&t);
    tape_memory_close(&memory, be);
    tensor_free(be, &ids);
    tensor_free(be, &later);
    tensor_free(be, &out);
}

/* f32 results of the same sums in another order: 1e-6 of numbers near 1. */
static bool near(float (*a)[D], float (*b)[D], uint32_t rows)
{
    for (uint32_t i = 0; i < rows * D; i++)
        if (!(fabsf(a[i / D][i % D] - b[i / D][i % D]) < 1e-6f)) return false;
    return true;
}

static const struct mask causal = { MASK_CAUSAL, 0 }, causal_window = { MASK_CAUSAL, WINDOW };
static const struct mask prefix = { MASK_PREFIX, 0 }, prefix_window = { MASK_PREFIX, WINDOW };
static const struct mask full = { MASK_FULL, 0 }, spans = { MASK_SPANS, 0 };

/* A canvas before which there is nothing is full attention; with a text before it, it is not. */
static void check_empty_prefix(const struct backend *be)
{
    struct text x;
    float a[MOST][D], b[MOST][D], y[MOST][D];
    text_open(&x, be);
    step(&x, 0, 6, full, a);
    step(&x, 0, 6, prefix_window, b);
    CHECK(near(a, b, 6));
    step(&x, 0, 6, causal, y);
    step(&x, 6, 6, prefix, b);
    step(&x, 6, 6, full, a);
    CHECK(!near(a, b, 6));
    bench_close(&x.b);
}

/* A canvas of one row sees what that row sees as the text's next word, through a window too. Only
 * the text's step writes the cache. */
static void check_one_row(const struct backend *be)
{
    struct text x;
    float want[MOST][D], got[MOST][D], y[MOST][D], before[RING][HEAD], after[RING][HEAD];
    text_open(&x, be);
    step(&x, 0, MOST - 1, causal, y);
    op_read(&x.b.run, &x.kv.k, 0, before, RING);
    step(&x, MOST - 1, 1, prefix, got);
    step(&x, MOST - 1, 1, prefix_window, y);
    op_read(&x.b.run, &x.kv.k, 0, after, RING);
    CHECK(memcmp(before, after, sizeof before) == 0);
    step(&x, MOST - 1, 1, causal, want);
    CHECK(near(want, got, 1));
    step(&x, MOST - 1, 1, causal_window, want);
    CHECK(near(want, y, 1) && !near(got, y, 1));
    bench_close(&x.b);
}

/* Rows 4 to 7 are a span. Rows outside of it see what they always see, and so does its last row;
 * the others see the later rows of the span, as a canvas after rows 0 to 3 does. */
static void check_spans(const struct backend *be)
{
    enum { FROM = 4, TO = 8 };
    struct text x;
    float plain[MOST][D], got[MOST][D], canvas[MOST][D];
    text_open(&x, be);
    int32_t *later = (int32_t *)(void *)x.later->v;
    for (int i = 0; i < MOST; i++) later[i] = 0;
    step(&x, 0, MOST, causal, plain);
    step(&x, 0, MOST, spans, got);
    CHECK(near(plain, got, MOST));
    for (int i = FROM; i < TO; i++) later[i] = TO - 1 - i;
    step(&x, 0, MOST, spans, got);
    step(&x, FROM, TO - FROM, prefix, canvas);
    CHECK(near(plain, got, FROM) && near(plain + TO - 1, got + TO - 1, MOST - TO + 1));
    for (int i = FROM; i < TO - 1; i++) CHECK(!near(plain + i, got + i, 1));
    CHECK(near(canvas, got + FROM, TO - FROM));
    bench_close(&x.b);
}

int main(void)
{
    struct backend cpu, fast;
    struct bz_err err;
    int64_t live = mem_live();
    CHECK(cpu_open(&cpu, false, 1, &err) == BZ_OK && cpu_open(&fast, true, 2, &err) == BZ_OK);
    TEST("a backend that lacks an op says which")
    {
        check_lacking(&cpu, "the cpu-reference has no kernel for angles_2d yet");
        check_lacking_gpu();
    }
    cpu.optional = fast.optional = &cpu_optional;
    const struct backend *both[] = { &cpu, &fast };
    TEST("a tower gives the numbers of its formula")
    for (int i = 0; i < 2; i++) check_tower(both[i]);
    TEST("a canvas after nothing is full attention")
    for (int i = 0; i < 2; i++) check_empty_prefix(both[i]);
    TEST("a canvas of one row is the text's next word, and writes no cache")
    for (int i = 0; i < 2; i++) check_one_row(both[i]);
    TEST("the rows of a span see one another, and all others what they always see")
    for (int i = 0; i < 2; i++) check_spans(both[i]);
    cpu.close(&cpu);
    fast.close(&fast);
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
