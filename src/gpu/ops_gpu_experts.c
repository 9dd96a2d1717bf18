/* ops_gpu_experts.c - the router and the experts as dispatches. Rows of x are not grouped by expert yet:
 * each (row, slot) reads its expert's weights.
 */
#include <math.h>

#include "gpu/ops_gpu_impl.h"

/* scores = W (rms_norm(x) * scale) / sqrt(cols). A plain F32 router, as published files have it, is one
 * kernel; others go through the general product. */
static void router_scores(struct run *r, struct tensor *scores, const struct tensor *x,
                          const struct weight *w, const struct weight *scale_by, float eps)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_weight *gw = w->mem;
    if (gw->shape != GPU_F32 || gw->n_parts != 1 || w->lora) {
        struct tensor u = gpu_scratch(r, SCRATCH_SECOND, x->rows, x->cols);
        gpu_rms_norm(r, &u, x, scale_by, eps);
        gpu_adapted_matrix(r, scores, &u, w, 1.0f / sqrtf((float)x->cols));
        return;
    }
    struct router_scores_params p = {
        .rows = x->rows, .cols = x->cols, .n_expert = w->rows, .eps = eps
    };
    struct gpu_binding bind[] = { act(x), whole(gw->parts[0].buffer), vector(g, scale_by),
                                  act(scores) };
    gpu_dispatch_op(r, KERNEL_ROUTER_SCORES, &p, bind, COUNT(bind),
                    x->rows * divide_up(w->rows, 8));
}

void gpu_router(struct run *r, struct routing *out, const struct tensor *x, const struct weight *w,
                const struct weight *scale_by, float eps)
{
    struct tensor scores = gpu_scratch(r, SCRATCH_FIRST, x->rows, w->rows);
    router_scores(r, &scores, x, w, scale_by, eps);
    struct router_params p = { .rows = x->rows, .n_expert = w->rows, .n_used = out->ids.cols };
    struct gpu_binding bind[] = { act(&scores), act(&out->ids), act(&out->weights) };
    gpu_dispatch_op(r, KERNEL_ROUTER, &p, bind, COUNT(bind), x->rows);
}

/* Experts of one buffer: the first, and how many. */
static uint32_t first_expert(const struct weight *w, const struct gpu_part *part)
{
    return part->row0 / w->rows;
}

/* h = gelu(gate x) * up x of every (row, slot), gate and up in one tensor. */
static void gate_up_together(struct run *r, struct tensor *h, const struct tensor *x,
                             const struct routing *routing, const struct weight *w)
{
    const struct gpu_weight *g = w->mem;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct experts_gate_up_params p = { .cols = w->cols,
                                            .n_ff = w->rows / 2,
                                            .mat0 = first_expert(w, part),
                                            .n_mat = part->rows / w->rows,
                                            .n_tok = x->rows,
                                            .n_used = routing->ids.cols,
                                            .x_stride = x->cols,
                                            .scales = part->layout.scales,
                                            .high = part->layout.high,
                                            .d = part->layout.d };
        struct gpu_binding bind[] = { act(x), act(&routing->ids), whole(part->buffer), act(h) };
        gpu_dispatch_op(r, TIERED(ops_of(r), EXPERTS_GATE_UP_F32) + g->shape, &p, bind, COUNT(bind),
                        x->rows * p.n_used * divide_up(p.n_ff, EXPERT_GROUP_ROWS / 2));
    }
}

/* h = W_e x of every (row, slot). */
static void experts_matrix(struct run *r, struct tensor *h, const struct tensor *x,
                           const struct routing *routing, const struct weight *w)
{
    const struct gpu_weight *g = w->mem;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct experts_linear_params p = { .cols = w->cols,
                                           .rows = w->rows,
                                           .mat0 = first_expert(w, part),
                                           .n_mat = part->rows / w->rows,
                                           .n_tok = x->rows,
                                           .n_used = routing->ids.cols,
                                           .x_stride = x->cols,
                                           .y_stride = h->cols,
                                           .scales = part->layout.scales,
                                           .high = part->layout.high,
                                           .d = part->layout.d,
                                           .scale = 1 };
        struct gpu_binding bind[] = { act(x), act(&routing->ids), whole(part->buffer), act(h) };
        gpu_dispatch_op(r, TIERED(ops_of(r), EXPERTS_LINEAR_F32) + g->shape, &p, bind, COUNT(bind),
                        x->rows * p.n_used * divide_up(w->rows, EXPERT_GROUP_ROWS));
    }
}

/* y = sum over the slots of weight * scale_e * W_e h. */
static void experts_sum(struct run *r, struct tensor *y, const struct tensor *h,
                        const struct routing *routing, const struct experts *e)
{
    const struct weight *w = e->down;
    const struct gpu_weight *g = w->mem;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct experts_down_params p = { .cols = w->cols,
                                         .rows = w->rows,
                                         .mat0 = first_expert(w, part),
                                         .n_mat = part->rows / w->rows,
                                         .n_tok = y->rows,
                                         .n_used = routing->ids.cols,
                                         .x_slot = h->cols,
                                         .y_stride = y->cols,
                                         .scales = part->layout.scales,
                                         .high = part->layout.high,
                                         .d = part->layout.d,
                                         .has_factor = weight_exists(e->scale),
                                         .add = i > 0,
                                         .scale = 1 };
        struct gpu_binding bind[] = { act(h),
                                      act(&routing->ids),
                                      act(&routing->weights),
                                      vector(ops_of(r), e->scale),
                                      whole(part->buffer),
                                      act(y) };
        gpu_dispatch_op(r, TIERED(ops_of(r), EXPERTS_DOWN_F32) + g->shape, &p, bind, COUNT(bind),
                        y->rows * divide_up(w->rows, EXPERT_GROUP_ROWS));
    }
}

void gpu_experts(struct run *r, struct tensor *y, const struct tensor *x,
                 const struct routing *routing, const struct experts *e)
{
    uint32_t n_ff = e->down->cols, n = x->rows * routing->ids.cols;
    struct tensor h = gpu_scratch(r, SCRATCH_FIRST, n, n_ff);
    if (e->gate_up->lora || e->gate->lora || e->up->lora || e->down->lora) {
        run_fail(r, BZ_ERR_UNSUPPORTED, "adapters on experts do not run on the GPU yet");
        return;
    }
    if (weight_exists(e->gate_up)) {
        gate_up_together(r, &h, x, routing, e->gate_up);
    } else {
        struct tensor up = gpu_scratch(r, SCRATCH_SECOND, n, n_ff);
        experts_matrix(r, &h, x, routing, e->gate);
        experts_matrix(r, &up, x, routing, e->up);
        gpu_gelu_mul(r, &h, &up, 0);
    }
    experts_sum(r, y, &h, routing, e);
}
