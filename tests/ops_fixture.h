/* ops_fixture.h - a bench for one op: random inputs, weights in any format, double-precision sums.
 *
 * The same seed gives the same inputs on every backend. Weights lie in memory behind a source that
 * shows them in place or not, as the test wishes, and that can fail at its k-th read.
 */
#ifndef BEZEL_TESTS_OPS_FIXTURE_H
#define BEZEL_TESTS_OPS_FIXTURE_H

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "gpu/fuse.h"
#include "ops/ops_cpu.h"
#include "ops/ops_optional.h"

#define EPS 1e-6f

enum { BENCH_ACTS = 32, BENCH_MATS = 56, BENCH_LORAS = 16, BENCH_RESULTS = 8 };

/* An activation, and what was put into it. */
struct act {
    struct tensor t;
    float *v;
};

/* A weight, its bytes, and the same decoded. */
struct mat {
    struct weight w;
    struct source src;
    uint8_t *bytes;
    float *v;
    struct bench *bench;
    struct rng after; /* where the random numbers went on */
};

struct bench {
    const struct backend *be;
    struct run run;
    struct rng rng;
    bool mapped;         /* the source shows its bytes in place */
    uint32_t fail_at;    /* this read of a source fails; 0: none */
    atomic_uint n_reads; /* workers read at the same time */
    struct act acts[BENCH_ACTS];
    struct mat mats[BENCH_MATS];
    struct lora loras[BENCH_LORAS];
    uint32_t n_acts, n_mats, n_loras;
    struct canvas canvas; /* of a case that has one; its memory is an act */
    struct tape tape;     /* the same */
    struct tape_memory memory;
    float *got; /* the results read back, one after the other */
    size_t n_got;
    struct {
        size_t at, n; /* in `got` */
        bool is_int;
    } results[BENCH_RESULTS];
    uint32_t n_results;
    /* A backend that only records: told where a result belongs in `got`, it is filled in later. */
    void (*defer)(struct bench *b, const struct tensor *t, size_t at, bool is_int);
    /* A bench that ran this case from this seed. Its weights are copied: encoding is slow. */
    const struct bench *like;
    bool wants_formula; /* then the case also fills `formula` */
    double *formula;
};

static inline void bench_open(struct bench *b, const struct backend *be, bool mapped, uint64_t seed)
{
    *b = (struct bench) { .be = be, .run = { .be = be }, .mapped = mapped };
    b->rng.state = seed;
}

static inline void bench_close(struct bench *b)
{
    for (uint32_t i = 0; i < b->n_acts; i++) {
        tensor_free(b->be, &b->acts[i].t);
        free(b->acts[i].v);
    }
    for (uint32_t i = 0; i < b->n_mats; i++) {
        if (weight_exists(&b->mats[i].w)) b->be->unload(b->be->ctx, &b->mats[i].w);
        free(b->mats[i].bytes);
        free(b->mats[i].v);
    }
    tape_memory_close(&b->memory, b->be);
    tape_free(&b->tape);
    free(b->got);
    free(b->formula);
}

/* Roughly normal, of variance 1: a sum of four uniform numbers. */
static inline float bench_normal(struct bench *b)
{
    float sum = -2;
    for (int i = 0; i < 4; i++) sum += rng_unit(rng_next(&b->rng));
    return sum * 1.7320508f;
}

/* ---- activations ---- */

/* Room for rows x cols, holding NaN: a row that nobody writes shows. */
static inline struct act *bench_blank(struct bench *b, uint32_t rows, uint32_t cols)
{
    struct act *a = &b->acts[b->n_acts++];
    size_t n = (size_t)rows * cols;
    a->v = malloc((n ? n : 1) * sizeof *a->v);
    for (size_t i = 0; i < n; i++) a->v[i] = NAN;
    CHECK(b->n_acts <= BENCH_ACTS && tensor_alloc(b->be, &a->t, rows, cols));
    op_write(&b->run, &a->t, 0, a->v, rows);
    a->t.rows = rows;
    return a;
}

/* A cache of halves, holding NaN as well. */
static inline struct act *bench_halves(struct bench *b, uint32_t rows, uint32_t cols)
{
    struct act *a = &b->acts[b->n_acts++];
    size_t n = (size_t)rows * cols;
    a->v = malloc(n * sizeof *a->v);
    memset(a->v, 0xff, n * sizeof *a->v);
    CHECK(b->n_acts <= BENCH_ACTS && tensor_alloc_half(b->be, &a->t, rows, cols));
    op_write(&b->run, &a->t, 0, a->v, rows);
    a->t.rows = rows;
    return a;
}

static inline struct act *bench_random(struct bench *b, uint32_t rows, uint32_t cols)
{
    struct act *a = bench_blank(b, rows, cols);
    for (size_t i = 0; i < (size_t)rows * cols; i++) a->v[i] = bench_normal(b);
    op_write(&b->run, &a->t, 0, a->v, rows);
    return a;
}

static inline struct act *bench_ids(struct bench *b, uint32_t rows, uint32_t cols, uint32_t below)
{
    struct act *a = bench_blank(b, rows, cols);
    int32_t *ids = (int32_t *)(void *)a->v;
    for (size_t i = 0; i < (size_t)rows * cols; i++) ids[i] = (int32_t)rng_below(&b->rng, below);
    op_write(&b->run, &a->t, 0, ids, rows);
    return a;
}

static inline int32_t act_id(const struct act *a, size_t i)
{
    return ((const int32_t *)(const void *)a->v)[i];
}

/* i32 to float, in place. */
static inline void bench_ints(float *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t id;
        memcpy(&id, at + i, sizeof id);
        at[i] = (float)id;
    }
}

/* Append a tensor to the results; `is_int`: it holds i32. */
static inline void bench_result(struct bench *b, const struct tensor *t, bool is_int)
{
    size_t n = (size_t)t->rows * t->cols;
    b->got = realloc(b->got, (b->n_got + n + 1) * sizeof *b->got);
    float *at = b->got + b->n_got;
    CHECK(b->n_results < BENCH_RESULTS);
    b->results[b->n_results].at = b->n_got;
    b->results[b->n_results].n = n;
    b->results[b->n_results++].is_int = is_int;
    b->n_got += n;
    if (b->defer) {
        b->defer(b, t, b->n_got - n, is_int);
        return;
    }
    op_read(&b->run, t, 0, at, t->rows);
    if (is_int) bench_ints(at, n);
}

/* Where the formula's numbers go: as many as there are results. NULL when nobody wants them. */
static inline double *bench_formula(struct bench *b)
{
    if (b->wants_formula) b->formula = malloc((b->n_got + 1) * sizeof *b->formula);
    return b->formula;
}

/* ---- weights ---- */

static inline enum bz_status bench_read(void *ctx, uint64_t offset, void *dst, size_t n,
                                        struct bz_err *err)
{
    struct mat *m = ctx;
    if (atomic_fetch_add(&m->bench->n_reads, 1) + 1 == m->bench->fail_at)
        return fail(err, BZ_ERR_IO, "the disk went away");
    memcpy(dst, m->bytes + offset, n);
    return BZ_OK;
}

static inline const void *bench_map(void *ctx, uint64_t offset, size_t n)
{
    (void)n;
    return ((const struct mat *)ctx)->bytes + offset;
}

/* Set the half-precision scales of a block in a format that has no encoder; the rest may be any
 * bytes. MXFP4 has an exponent instead. */
static inline void bench_set_scales(struct bench *b, const struct quant_format *f, uint8_t *block)
{
    static const struct {
        enum quant_id id;
        int at[2];
        float size;
    } known[] = {
        { QUANT_Q4_1, { 0, 2 }, 0.01f },    { QUANT_Q5_1, { 0, 2 }, 0.005f },
        { QUANT_Q2_K, { 80, 82 }, 0.003f }, { QUANT_Q3_K, { 108, 108 }, 0.001f },
        { QUANT_IQ4_NL, { 0, 0 }, 0.001f }, { QUANT_IQ4_XS, { 0, 0 }, 0.00005f },
    };
    if (f->id == QUANT_MXFP4) block[0] = (uint8_t)(120 + rng_below(&b->rng, 3));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int k = 0; f->id == known[i].id && k < 2; k++) {
            float d = known[i].size * (0.5f + rng_unit(rng_next(&b->rng)));
            uint16_t half = f32_to_f16(k ? -d : d);
            memcpy(block + known[i].at[k], &half, 2);
        }
}

static inline void bench_fill(struct bench *b, struct mat *m, float size)
{
    const struct quant_format *f = m->w.fmt;
    size_t n = (size_t)m->w.cols * m->w.rows * m->w.n_mat, n_bytes = quant_row_bytes(f, n);
    m->bytes = malloc(n_bytes);
    m->v = malloc(n * sizeof *m->v);
    if (b->like) {
        const struct mat *same = &b->like->mats[m - b->mats];
        memcpy(m->bytes, same->bytes, n_bytes);
        memcpy(m->v, same->v, n * sizeof *m->v);
        b->rng = m->after = same->after;
        return;
    }
    if (f->encode) {
        for (size_t i = 0; i < n; i++) m->v[i] = size * bench_normal(b);
        f->encode(m->v, m->bytes, n);
    } else {
        for (size_t i = 0; i < n_bytes; i++) m->bytes[i] = (uint8_t)rng_next(&b->rng);
        for (size_t i = 0; i < n_bytes; i += f->bytes) bench_set_scales(b, f, m->bytes + i);
    }
    f->decode(m->bytes, m->v, n);
    m->after = b->rng;
}

/* n_mat matrices of rows x cols (a vector has rows 1), loaded. Their numbers are those of `values`,
 * or, where it is NULL, random ones of a size that keeps W x near 1. */
static inline struct mat *bench_weight_of(struct bench *b, uint32_t format, uint32_t cols,
                                          uint32_t rows, uint32_t n_mat, const float *values)
{
    struct mat *m = &b->mats[b->n_mats++];
    CHECK(b->n_mats <= BENCH_MATS);
    m->bench = b;
    m->w = (struct weight) {
        .fmt = quant_find(format), .cols = cols, .rows = rows, .n_mat = n_mat, .src = &m->src
    };
    size_t n = (size_t)cols * rows * n_mat;
    if (values) {
        m->bytes = malloc(quant_row_bytes(m->w.fmt, n));
        m->v = malloc(n * sizeof *m->v);
        m->w.fmt->encode(values, m->bytes, n);
        m->w.fmt->decode(m->bytes, m->v, n);
    } else {
        bench_fill(b, m, rows == 1 ? 1 : 1 / sqrtf((float)cols));
    }
    m->src = (struct source) { .name = (char *)(uintptr_t)"bench",
                               .ctx = m,
                               .read = bench_read,
                               .map = b->mapped ? bench_map : NULL,
                               .size = quant_row_bytes(m->w.fmt, n) };
    struct bz_err err;
    enum bz_status st = b->be->load(b->be->ctx, &m->w, &err);
    if (st) {
        run_fail(&b->run, st, "%s", err.text);
        m->w.fmt = NULL;
    }
    return m;
}

static inline struct mat *bench_weight(struct bench *b, uint32_t format, uint32_t cols,
                                       uint32_t rows, uint32_t n_mat)
{
    return bench_weight_of(b, format, cols, rows, n_mat, NULL);
}

/* A tensor that the model does not have. */
static inline struct mat *bench_absent(struct bench *b)
{
    return &b->mats[b->n_mats++];
}

static inline void bench_lora(struct bench *b, struct mat *m, uint32_t rank)
{
    struct lora *l = &b->loras[b->n_loras++];
    struct mat *a = bench_weight(b, QUANT_F32, m->w.cols, rank, m->w.n_mat);
    struct mat *up = bench_weight(b, QUANT_F32, rank, m->w.rows, m->w.n_mat);
    CHECK(b->n_loras <= BENCH_LORAS);
    *l = (struct lora) {
        .a = a->w, .b = up->w, .scale = 0.5f + (float)b->n_loras, .next = m->w.lora
    };
    m->w.lora = l;
    struct bz_err err;
    enum bz_status st = b->be->adapt ? b->be->adapt(b->be->ctx, &m->w, &err) : BZ_OK;
    if (st) run_fail(&b->run, st, "%s", err.text);
}

/* ---- tapes: cases of the rules of fusion ---- */

/* Begin the bench's tape. A case writes plain nodes: the CPU runs one after the other, and a GPU
 * what its rules make of them. */
static inline struct tape *bench_tape(struct bench *b, uint32_t rows)
{
    tape_begin(&b->tape, EPS, rows, rows);
    b->tape.max_rows = b->tape.max_out = rows;
    return &b->tape;
}

static inline struct value *bench_input(struct bench *b, const struct act *a)
{
    return tape_input(&b->tape, &a->t, a->t.rows);
}

static inline struct value *bench_donated(struct bench *b, const struct act *a)
{
    return tape_donated(&b->tape, &a->t, a->t.rows);
}

/* x is a result of the tape: a's numbers. */
static inline void bench_keep(struct bench *b, struct value *x, const struct act *a)
{
    tape_result(&b->tape, x, &a->t);
}

#define RULE_BIT(NAME) (1u << RULE_##NAME)

/* Run the tape; row 0 is at position `pos`. `rules`: of which the case is, a bit each. A GPU fuses
 * by the rules up to the last of them, and must find a group of each: else the case is vacuous. */
static inline void bench_run(struct bench *b, uint32_t rules, uint32_t pos)
{
    static const char *const names[N_GPU_RULES] = {
#define RULE(NAME, name, formula) [RULE_##NAME] = #name,
#include "gpu/rules.def"
#undef RULE
    };
    struct tape *t = &b->tape;
    uint32_t last = N_GPU_RULES - 1, found = rules;
    while (!(rules >> last & 1)) last--;
    tape_finish(t);
    tape_groups(t);
    if (b->be->fuse) found = gpu_fuse_up_to(b->be->ctx, t, (enum gpu_rule)last);
    for (uint32_t i = 1; i < N_GPU_RULES; i++)
        if (rules >> i & ~found >> i & 1)
            run_fail(&b->run, BZ_ERR_UNSUPPORTED, "the tape has no group of rule %s", names[i]);
    bool ok = !t->failed && tape_place(t, &b->memory) && tape_memory_open(&b->memory, b->be) &&
              tape_bind(t, &b->memory, b->be);
    CHECK(ok);
    if (ok) tape_run(t, &b->run, pos);
}

/* ---- the maths, in double ---- */

static inline const float *decoded(const struct weight *w)
{
    return ((const struct mat *)w->src->ctx)->v;
}

/* y = W_mat x */
static inline void formula_matvec(double *y, const double *x, const struct weight *w, uint32_t mat)
{
    const float *row = decoded(w) + (size_t)mat * w->rows * w->cols;
    for (uint32_t i = 0; i < w->rows; i++, row += w->cols) {
        y[i] = 0;
        for (uint32_t j = 0; j < w->cols; j++) y[i] += (double)row[j] * x[j];
    }
}

/* y = W_mat x + sum of scale * B_mat (A_mat x) */
static inline void formula_linear(double *y, const double *x, const struct mat *m, uint32_t mat)
{
    double *part = malloc(m->w.rows * sizeof *part);
    formula_matvec(y, x, &m->w, mat);
    for (const struct lora *l = m->w.lora; l; l = l->next) {
        double *z = malloc(l->a.rows * sizeof *z);
        formula_matvec(z, x, &l->a, mat);
        formula_matvec(part, z, &l->b, mat);
        free(z);
        for (uint32_t i = 0; i < m->w.rows; i++) y[i] += (double)l->scale * part[i];
    }
    free(part);
}

/* y = x * s / sqrt(mean((x s)^2) + eps) * w */
static inline void formula_norm(double *y, const double *x, const float *w, uint32_t n, double eps)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i] * x[i];
    double inverse = 1 / sqrt(sum / n + eps);
    for (uint32_t i = 0; i < n; i++) y[i] = x[i] * inverse * (w ? (double)w[i] : 1);
}

static inline double formula_gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static inline double *widen(const float *v, size_t n)
{
    double *d = malloc((n ? n : 1) * sizeof *d);
    for (size_t i = 0; i < n; i++) d[i] = (double)v[i];
    return d;
}

#endif
