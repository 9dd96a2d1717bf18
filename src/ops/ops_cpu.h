/* ops_cpu.h - the CPU backend: the oracle, and the same with threads and SIMD.
 *
 * cpu_open(fast = false) gives the reference: one obvious single-threaded loop per op, sums in
 * double (ops_cpu.c). fast = true replaces the ops where time goes (ops_cpu_fast.c); the tests
 * compare the two. Weights stay in their source: mapped files are used in place, others are read
 * row by row.
 */
#ifndef BEZEL_OPS_OPS_CPU_H
#define BEZEL_OPS_OPS_CPU_H

#include "base/pool.h"
#include "ops/ops.h"

/* n_threads 0: one per core. On failure *out is untouched. */
enum bz_status cpu_open(struct backend *out, bool fast, unsigned n_threads, struct bz_err *err);
void cpu_close(struct backend *be); /* accepts a zeroed backend */

/* ---- shared by the two files ---- */

/* Memory that grows and is never given back until the end; one per worker and purpose. */
struct scratch {
    void *p;
    size_t n;
};

enum { SCRATCH_RAW, SCRATCH_DECODED, SCRATCH_SCORES, N_SCRATCH };

/* A worker keeps its own failure: several may fail at once. cpu_collect gives one to the run. */
struct cpu_worker {
    struct scratch scratch[N_SCRATCH];
    enum bz_status status;
    struct bz_err err;
};

struct cpu {
    struct pool *pool; /* NULL for the reference */
    struct cpu_worker *workers;
    unsigned n_workers;
    struct scratch lora, gathered, hidden, expert_out, order, sums, dropped, prepared;
};

/* At least n bytes, or NULL with the worker failed. */
void *scratch_need(struct cpu_worker *worker, struct scratch *s, size_t n);

/* The bytes of rows [first, first + n) of a weight, counted through the rows of all experts. They
 * are in place where the source can show them, else read into the worker's scratch. NULL: the
 * worker failed. */
const void *weight_bytes(struct cpu_worker *worker, const struct weight *w, uint64_t first,
                         uint32_t n);

/* Bring the workers' failures, if any, to the run. */
void cpu_collect(struct run *r);

/* A vector that `load` keeps decoded. */
static inline const float *vec(const struct weight *w)
{
    return w->mem;
}

static inline float *row_f32(const struct tensor *t, uint32_t row)
{
    return (float *)t->mem + (uint64_t)row * t->cols;
}

/* Numbers [at, at + n) of a row of the cache: in place, or widened into `wide`. */
const float *kv_numbers(const struct tensor *t, uint32_t row, size_t at, uint32_t n, float *wide);

/* Adapter l's A x is `z`: into its columns of a row of `to`; NULL: it is not kept. */
void keep_z(struct tensor *to, const struct weight *w, const struct lora *l, uint32_t row,
            const float *z);

/* Rows of x (n x cols) as adapter l sees them: x itself, or a copy with dropout. Dropout takes row
 * t for row number slots[t], or first + t without slots. NULL: the worker failed. */
const float *dropped_rows(struct cpu *c, const struct lora *l, const float *x, uint32_t n,
                          uint32_t cols, const uint32_t *slots, uint32_t first);

float gelu_tanh(float x);
double dot_f64(const float *a, const float *b, uint32_t n);

/* The gradients, for both. */
extern const struct backward_ops cpu_backward;

/* Replace the slow ops of a reference backend. */
void cpu_use_fast(struct backend *be);

#endif
