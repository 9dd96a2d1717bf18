/* selftest.h - each kernel that a model uses, once, on small fixed inputs, against the C loop.
 *
 * The pipelines that the model's steps were found to need are the recorder's. Small cases are tried
 * out until every one of those that were asked for has run; the host submits them in one program
 * and brings back the results. A kernel of a faster tier that is wrong is demoted: from then on the
 * plain one is recorded in its place. A plain one has no replacement. Others may record between two
 * calls of this.
 */
#ifndef BEZEL_GPU_SELFTEST_H
#define BEZEL_GPU_SELFTEST_H

#include "gpu/ops_gpu.h"

struct selftest;

enum selftest_verdict { KERNEL_UNUSED, KERNEL_UNTESTED, KERNEL_GOOD, KERNEL_WRONG };

/* Pick the cases for the pipelines that no earlier test has run. `rope` is one of the model's. NULL
 * on failure. */
struct selftest *selftest_open(const struct backend *gpu, const struct rope *rope,
                               struct bz_err *err);
/* Run the C loop of the next case; *more is false when there was none left. */
enum bz_status selftest_prepare(struct selftest *t, bool *more, struct bz_err *err);
void selftest_close(struct selftest *t); /* accepts NULL */

/* Once prepared: record all cases. The step block is written: whoever else has steps must not write
 * it before this was submitted. */
enum bz_status selftest_record(struct selftest *t, struct bz_err *err);
/* What the host submits (0: nothing is left to test), and the buffer whose bytes it then brings
 * back. */
gpu_program selftest_program(const struct selftest *t);
gpu_buffer selftest_results(const struct selftest *t, uint32_t *n_bytes);

/* Compare. Wrong kernels of faster tiers are demoted; returns how many were. */
uint32_t selftest_judge(struct selftest *t, const uint8_t *results);

/* After that: the n kernels that are known, each with its verdict, and how far it was off at most
 * (nmse). */
const struct record_kernel *selftest_kernels(const struct selftest *t, uint32_t *n);

#endif
