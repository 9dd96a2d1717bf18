/* ops_cpu_dot.h - weight rows times one activation row, without decoding the weights first.
 *
 * For the formats that most weights have. The activation row is laid out once for each product in
 * the order in which the format's bits fall out of its words, then serves every weight row.
 */
#ifndef BEZEL_OPS_OPS_CPU_DOT_H
#define BEZEL_OPS_OPS_CPU_DOT_H

#include <stddef.h>
#include <stdint.h>

#include "quant/quant.h"

struct dot_format {
    enum quant_id id;
    /* The layout of x: dot_room(cols) floats. */
    void (*prepare)(float *out, const float *x, uint32_t cols);
    /* y[r] = w_r . x for n_row rows of w. */
    void (*rows)(float *y, const uint8_t *w, uint32_t n_row, const float *prepared, uint32_t cols);
};

/* NULL where a row is decoded first. */
const struct dot_format *dot_find(enum quant_id id);

/* The activations and, for each 16 of them, at most one sum. */
static inline size_t dot_room(uint32_t cols)
{
    return (size_t)cols + cols / 16;
}

#endif
