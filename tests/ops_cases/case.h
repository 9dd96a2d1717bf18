/* case.h - one case of an op, and the table that lists the ops with their cases.
 *
 * A case function makes the inputs of a case, calls the op on the bench's backend, and (for the
 * first backend) computes the formula in double. It never reads or writes a tensor's memory, so a
 * GPU can run it too: there the op is only recorded, and the bench reads the result later.
 *
 * Tolerances are normalised mean squared errors, sum (a - b)^2 / sum b^2. f32 sums of n numbers in
 * 8 lanes are off by about 2^-24 sqrt(n / 8), so their nmse is near 1e-13 for the largest n here;
 * one wrong element in a thousand would give 1e-3.
 */
#ifndef BEZEL_TESTS_OPS_CASES_CASE_H
#define BEZEL_TESTS_OPS_CASES_CASE_H

#include "ops/ops_optional.h"
#include "ops_fixture.h"

#define EVERY UINT32_MAX /* format: each one whose block divides cols, in turn */
#define F32   QUANT_F32

struct op_case {
    uint32_t seed; /* of the random inputs; a new case takes the next free number of its table */
    uint32_t rows, cols;
    uint32_t format;
    double nmse;
    const char *why;
    uint32_t out;                    /* rows of the weight (or of the table) */
    uint32_t rank, n_lora;           /* adapters */
    uint32_t n_head, n_kv;           /* attention; cols is the head size */
    uint32_t window, ring, pos;      /* ring: rows of the cache */
    uint32_t n_expert, n_used, n_ff; /* experts */
    uint32_t at;                     /* first column or row, where an op has one */
    uint32_t tiling;                 /* of a product or attention on the GPU, see struct gpu_ops */
    bool split, plain;               /* gate and up in two tensors; no weight, scale or rotation */
    bool half;                       /* a cache of halves */
    bool keep;                       /* A x of the adapters is a result too */
    bool wide;                       /* on the GPU: the residual counts as one of many columns */
    bool tied;                       /* three experts each have the same score, or most have */
    bool broken;                     /* the scores of two experts of three are NaN, or some are */
    bool both;                       /* the residual has two branches */
    bool same;                       /* the values are the raw keys */
    enum mask_kind mask;             /* of attend_masked */
    struct conv conv;                /* of a picture's ops */
    uint32_t n_steps, n_stable;      /* of a canvas */
    uint32_t done;                   /* steps of it */
    float cold;                      /* factor of its temperatures */
    bool cpu_only; /* the GPU backend has no kernel, or refuses rows that are not whole vec4s */
};

/* An op, the function that runs its cases, and the cases. */
struct tested_op {
    const char *name;
    void (*run)(struct bench *b, const struct op_case *c);
    const struct op_case *cases;
    size_t n_cases;
};

#define COUNT(array) (sizeof(array) / sizeof *(array))
/* A line of the table. TESTED_BY is for an op whose cases another op's function runs. */
#define TESTED_BY(name, runner) { #name, case_##runner, name##_cases, COUNT(name##_cases) }
#define TESTED(name)            TESTED_BY(name, name)

/* The n-th case of a table, where a row for EVERY format counts once for each format. */
struct nth_case {
    const struct tested_op *op; /* NULL past the last case */
    struct op_case c;
    bool every; /* its row is for EVERY format */
};

static inline struct nth_case nth_case(const struct tested_op *table, size_t n_ops, size_t n)
{
    for (const struct tested_op *op = table; op < table + n_ops; op++)
        for (size_t i = 0; i < op->n_cases; i++) {
            struct nth_case nth = { op, op->cases[i], op->cases[i].format == EVERY };
            const struct quant_format *f;
            if (!nth.every && n-- == 0) return nth;
            for (size_t k = 0; nth.every && (f = quant_at(k)); k++) {
                nth.c.format = (uint32_t)f->id;
                if (nth.c.cols % f->block == 0 && n-- == 0) return nth;
            }
        }
    return (struct nth_case) { 0 };
}

/* NaN is right where it is wanted, and wrong everywhere else. */
static inline double nmse_f64(const float *got, const double *want, size_t n)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)got[i] - want[i];
        if (isnan(got[i]) && isnan(want[i])) continue;
        if (isnan(d)) return INFINITY;
        error += d * d;
        size += want[i] * want[i];
    }
    return size > 0 && isfinite(error) ? error / size : error;
}

static inline double nmse(const float *got, const float *want, size_t n)
{
    double *wide = widen(want, n), e = nmse_f64(got, wide, n);
    free(wide);
    return e;
}

/* Of all results of b together; integers must be equal. */
static inline double case_nmse(const struct bench *b, const double *want)
{
    for (uint32_t i = 0; i < b->n_results; i++) {
        size_t at = b->results[i].at;
        if (b->results[i].is_int && nmse_f64(b->got + at, want + at, b->results[i].n) > 0)
            return INFINITY;
    }
    return nmse_f64(b->got, want, b->n_got);
}

#endif
