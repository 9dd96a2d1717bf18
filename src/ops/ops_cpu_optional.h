/* ops_cpu_optional.h - the CPU's loops of a canvas, which stand in several tables of ops. */
#ifndef BEZEL_OPS_OPS_CPU_OPTIONAL_H
#define BEZEL_OPS_OPS_CPU_OPTIONAL_H

#include "ops/ops_cpu.h"
#include "ops/ops_optional.h"

/* Which positions of the cache row t of a step sees: n of them from `first` on. */
struct seen {
    uint32_t first, n;
};

static inline struct seen seen_by(const struct attention *a, uint32_t pos, uint32_t t)
{
    if (a->mask.kind == MASK_FULL) return (struct seen) { 0 };
    bool prefix = a->mask.kind == MASK_PREFIX;
    uint32_t p = prefix ? pos : pos + t, end = prefix ? pos : p + 1;
    if (a->later) end += (uint32_t)((const int32_t *)a->later->mem)[t];
    uint32_t first = kv_first(a->kv, p, a->mask.window);
    return (struct seen) { first, end - first };
}

void cpu_attend_masked(struct run *r, struct tensor *y, const struct tensor *q,
                       const struct attention *a, uint32_t pos);
void cpu_attend_masked_fast(struct run *r, struct tensor *y, const struct tensor *q,
                            const struct attention *a, uint32_t pos); /* ops_cpu_fast.c */

/* Row `row` of a canvas, whose n logits are z: its entropy and picks; z becomes its probabilities.
 */
void cpu_canvas_picks(const struct canvas_head *h, float *z, uint32_t row, float *entropy,
                      int32_t picks[2]);
void cpu_canvas_head(struct run *r, struct tensor *soft, struct tensor *entropy,
                     struct tensor *picks, const struct tensor *x, const struct canvas_head *h);
void cpu_canvas_step(struct run *r, struct canvas *c, const struct tensor *entropy,
                     const struct tensor *picks, uint32_t n_vocab);

#endif
