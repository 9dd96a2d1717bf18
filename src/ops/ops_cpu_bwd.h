/* ops_cpu_bwd.h - shared by the files with the CPU's gradients. */
#ifndef BEZEL_OPS_OPS_CPU_BWD_H
#define BEZEL_OPS_OPS_CPU_BWD_H

#include "ops/ops_bwd.h"
#include "ops/ops_cpu.h"

/* Row `row` of a weight as floats, or NULL with the worker failed. */
const float *cpu_decoded_row(struct cpu_worker *worker, const struct weight *w, uint64_t row);

/* Memory shared by the pieces of one op; NULL with the run failed. */
void *cpu_shared_need(struct run *r, struct scratch *s, size_t n);

/* dx[i] += (g - n mean(g n)) / rms with g = dy w, n = x / rms. w may be NULL. */
void norm_bwd(float *dx, const float *dy, const float *x, const float *w, uint32_t n, float eps);

/* The derivative of gelu_tanh. */
double gelu_slope(double x);

/* The gradients of n packed rows through matrix `mat` of w and its adapters. dx may be NULL; z too:
 * then A x is computed again. Dropout takes row t for row number slots[t], or t without slots. */
void linear_rows_bwd(struct run *r, float *dx, const float *dy, const float *x,
                     const struct tensor *z, uint32_t n, const struct weight *w, uint64_t mat,
                     const uint32_t *slots);

void cpu_experts_bwd(struct run *r, struct tensor *dx, bool fresh, struct tensor *dweights,
                     const struct tensor *dy, const struct tensor *x, const struct routing *routing,
                     const struct experts *e);
void cpu_route_bwd(struct run *r, struct tensor *dscores, const struct tensor *dweights,
                   const struct routing *routing);

#endif
