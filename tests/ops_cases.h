/* ops_cases.h - the table of ops.h: every op, with the cases that all backends share.
 *
 * An op's case function, its formula in double and its cases are together in the file of its
 * family, in tests/ops_cases/. What a case is and what its tolerance means is in
 * tests/ops_cases/case.h.
 */
#ifndef BEZEL_TESTS_OPS_CASES_H
#define BEZEL_TESTS_OPS_CASES_H

#include "ops_cases/attention.h"
#include "ops_cases/canvas.h"
#include "ops_cases/experts.h"
#include "ops_cases/layer.h"
#include "ops_cases/linear.h"
#include "ops_cases/optional.h"
#include "ops_cases/small.h"
#include "ops_cases/stream.h"

static const struct tested_op ops[] = {
    /* ops_cases/small.h: a norm or one step for each element */
    TESTED(embed),
    TESTED(rms_norm),
    TESTED(residual),
    TESTED(norm_sum),
    TESTED(gelu_mul),
    TESTED(times),
    TESTED(softcap),
    TESTED(add),
    TESTED(scale),
    TESTED(copy_rows),
    /* ops_cases/linear.h: products with a matrix */
    TESTED(linear),
    TESTED_BY(linear_splits, linear),
    TESTED(linear_gelu),
    TESTED(gate_up),
    /* ops_cases/attention.h: rotation, the cache, attention */
    TESTED(rope_table),
    TESTED(rope),
    TESTED(head_norm),
    TESTED(norm_rope),
    TESTED(attention),
    TESTED(heads_write),
    TESTED(attend_heads),
    TESTED_BY(attend_then_linear, attend_heads),
    TESTED_BY(attend_linear, attend_heads),
    /* ops_cases/stream.h: a branch is added to the residual stream, and what reads it next */
    TESTED(residual_norm),
    TESTED(residual_norm_then_linear),
    TESTED(norm_linears),
    TESTED(residual_linear_gelu),
    TESTED(norm_gate_up),
    /* ops_cases/layer.h: several of these in a row, as a model calls them */
    TESTED(layer_start),
    TESTED(layer_end),
    TESTED(layer_next),
    /* ops_cases/experts.h: a router and the experts that it chooses */
    TESTED(route),
    TESTED(router),
    TESTED(linear_router),
    TESTED(router_experts),
    TESTED(experts),
    /* ops_cases/optional.h: what towers and a canvas need */
    TESTED(attend_masked),
    TESTED(add_bias),
    TESTED(clamp),
    TESTED(layer_norm),
    TESTED(rope_2d),
    TESTED(unfold),
    TESTED(conv_depthwise),
    TESTED(pool),
    /* ops_cases/canvas.h: what ends a canvas's step */
    TESTED(canvas_head),
    TESTED(canvas_step),
};

#endif
