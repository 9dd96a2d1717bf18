/* ops_gpu_bwd_experts.c - the gradients of a router and its experts as dispatches.
 *
 * A slot is one choice of one row. Slots are sorted by their experts, so that a tile of them shares
 * the weights that it reads. What a slot gives to its row, and to its expert's adapters, is summed
 * in the order of the slots.
 */
#include "gpu/ops_gpu_bwd.h"

/* dx = W_e' dy + A_e' u, slot by slot; with `add` added. */
static void tiled_transposed(struct run *r, const struct tensor *dx, const struct tensor *dy,
                             const struct tensor *u, const struct expert_tiles *plan,
                             const struct weight *w, bool add)
{
    const struct gpu_weight *g = w->mem;
    const struct gpu_adapted *d = &g->adapted;
    struct gpu_binding none = whole(ops_of(r)->unused);
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct experts_matmul_bwd_params p = { .cols = w->cols,
                                               .rows = w->rows,
                                               .mat0 = part->row0 / w->rows,
                                               .n_mat = part->rows / w->rows,
                                               .n_tiles = plan->n_tiles,
                                               .scales = part->layout.scales,
                                               .high = part->layout.high,
                                               .d = part->layout.d,
                                               .rank = d->rank,
                                               .s_at = gpu_adapted_scales(d, w, false),
                                               .add = add };
        struct gpu_binding bind[] = { act(dy),
                                      act(&plan->list),
                                      whole(part->buffer),
                                      d->rank ? act(u) : none,
                                      d->rank ? whole(d->a) : none,
                                      d->rank ? whole(d->b) : none,
                                      act(dx) };
        gpu_dispatch_op(r, SHAPED(EXPERTS_MATMUL_BWD, g->shape), &p, bind, COUNT(bind),
                        plan->n_tiles * divide_up(w->cols, 64));
    }
}

/* The gradients of one weight of all experts: dx by slot, and those of its adapters. x has a row
 * for each slot, or for each n_used of them. */
static void experts_linear_bwd(struct run *r, const struct tensor *dx, const struct tensor *dy,
                               const struct tensor *x, bool by_slot, const struct routing *routing,
                               const struct expert_tiles *plan, const struct weight *w, bool add)
{
    const struct gpu_adapted *d = &((const struct gpu_weight *)w->mem)->adapted;
    struct tensor u = { 0 };
    if (w->rows % 4 || w->cols % 4 || (d->rank && w->rows % 8)) {
        run_fail(r, BZ_ERR_UNSUPPORTED, "experts of %u x %u cannot be trained through on a GPU",
                 w->rows, w->cols);
        return;
    }
    if (d->rank) {
        struct tensor z = gpu_scratch(r, SCRATCH_THIRD, plan->n_slots, d->rank);
        u = gpu_scratch(r, SCRATCH_FIRST, plan->n_slots, d->rank);
        gpu_tiled_f32(r, &u, dy, true, plan, d->b, w->n_mat);
        gpu_tiled_f32(r, &z, x, by_slot, plan, d->a, w->n_mat);
        const struct gpu_lora_rows rows = {
            &z, &u, x, dy, &routing->ids, by_slot ? 0 : plan->n_used
        };
        gpu_lora_grads(r, w, &rows);
    }
    tiled_transposed(r, dx, dy, &u, plan, w, add);
}

/* act = gelu(gate) * up of every slot; gate and up stay in `gate` side by side, or in both. */
static void forward_again(struct run *r, struct tensor *act_out, struct tensor *gate,
                          struct tensor *up, const struct tensor *x,
                          const struct expert_tiles *plan, const struct experts *e)
{
    bool fused = weight_exists(e->gate_up);
    gpu_tiled_matrix(r, gate, x, false, plan, fused ? e->gate_up : e->gate);
    if (!fused) gpu_tiled_matrix(r, up, x, false, plan, e->up);
    const struct tensor *by = fused ? gate : up;
    struct experts_act_params p = { .rows = plan->n_slots,
                                    .cols = act_out->cols,
                                    .g_stride = gate->cols,
                                    .b_stride = by->cols,
                                    .col = fused ? act_out->cols : 0 };
    struct gpu_binding bind[] = { act(gate), act(by), act(act_out) };
    gpu_dispatch_op(r, KERNEL_EXPERTS_ACT, &p, bind, COUNT(bind),
                    divide_up((uint64_t)p.rows * p.cols / 4, 64));
}

static void weigh(struct run *r, struct tensor *y, const struct tensor *dy,
                  const struct routing *routing, const struct experts *e)
{
    struct experts_weigh_params p = { .n_slots = y->rows,
                                      .n_used = routing->ids.cols,
                                      .cols = y->cols,
                                      .has_factor = weight_exists(e->scale) };
    struct gpu_binding bind[] = { act(dy), act(&routing->ids), act(&routing->weights),
                                  vector(ops_of(r), e->scale), act(y) };
    gpu_dispatch_op(r, KERNEL_EXPERTS_WEIGH, &p, bind, COUNT(bind),
                    divide_up((uint64_t)y->rows * y->cols / 4, 64));
}

static void weights_bwd(struct run *r, struct tensor *dweights, const struct tensor *h,
                        const struct tensor *dh, const struct routing *routing)
{
    struct gpu_ops *g = ops_of(r);
    struct experts_dweights_params p = { .n_slots = h->rows, .n_ff = h->cols };
    struct gpu_binding bind[] = { act(h), act(dh), act(&routing->weights), act(dweights) };
    struct gpu_constant wg = { EXPERTS_DWEIGHTS_WG, gpu_sum_wg(g, 64) };
    record_dispatch(&g->rec, KERNEL_EXPERTS_DWEIGHTS, &wg, 1, &p, bind, COUNT(bind), h->rows);
}

/* From dh, the gradient of gelu(gate) * up, through gate and up to each slot's part of dx. */
static void gate_up_bwd(struct run *r, const struct tensor *each, struct tensor *dh,
                        const struct tensor *gate, const struct tensor *up, const struct tensor *x,
                        const struct routing *routing, const struct expert_tiles *plan,
                        const struct experts *e)
{
    if (!weight_exists(e->gate_up)) {
        struct tensor d_up = gpu_scratch(r, SCRATCH_SECOND, dh->rows, dh->cols);
        gpu_gelu_mul_bwd(r, dh, &d_up, gate, up, 0);
        experts_linear_bwd(r, each, dh, x, false, routing, plan, e->gate, false);
        experts_linear_bwd(r, each, &d_up, x, false, routing, plan, e->up, true);
        return;
    }
    struct tensor both = gpu_scratch(r, SCRATCH_UP, dh->rows, 2 * dh->cols);
    struct experts_act_bwd_params p = { .rows = dh->rows, .n_ff = dh->cols };
    struct gpu_binding bind[] = { act(gate), act(dh), act(&both) };
    gpu_dispatch_op(r, KERNEL_EXPERTS_ACT_BWD, &p, bind, COUNT(bind),
                    divide_up((uint64_t)dh->rows * dh->cols / 4, 64));
    experts_linear_bwd(r, each, &both, x, false, routing, plan, e->gate_up, false);
}

void gpu_experts_bwd(struct run *r, struct tensor *dx, bool fresh, struct tensor *dweights,
                     const struct tensor *dy, const struct tensor *x, const struct routing *routing,
                     const struct experts *e)
{
    bool fused = weight_exists(e->gate_up);
    uint32_t n_ff = e->down->cols, n = x->rows * routing->ids.cols;
    struct expert_tiles plan = gpu_expert_tiles(r, routing, e->down->n_mat);
    struct tensor gate = gpu_scratch(r, SCRATCH_GATE, n, fused ? 2 * n_ff : n_ff);
    struct tensor up = { 0 };
    if (!fused) up = gpu_scratch(r, SCRATCH_UP, n, n_ff);
    struct tensor h = gpu_scratch(r, SCRATCH_ACT, n, n_ff);
    struct tensor dh = gpu_scratch(r, SCRATCH_DACT, n, n_ff);
    struct tensor d_out = gpu_scratch(r, SCRATCH_WIDE, n, dy->cols);
    forward_again(r, &h, &gate, &up, x, &plan, e);
    weigh(r, &d_out, dy, routing, e);
    experts_linear_bwd(r, &dh, &d_out, &h, true, routing, &plan, e->down, false);
    weights_bwd(r, dweights, &h, &dh, routing);
    struct tensor each = gpu_scratch(r, SCRATCH_WIDE, n, x->cols); /* d_out has been used */
    gate_up_bwd(r, &each, &dh, &gate, &up, x, routing, &plan, e);
    struct slots_sum_params p = {
        .rows = x->rows, .n_used = plan.n_used, .cols = x->cols, .fresh = fresh
    };
    struct gpu_binding bind[] = { act(&each), act(dx) };
    gpu_dispatch_op(r, KERNEL_SLOTS_SUM, &p, bind, COUNT(bind),
                    divide_up((uint64_t)x->rows * x->cols / 4, 64));
}

void gpu_route_bwd(struct run *r, struct tensor *dscores, const struct tensor *dweights,
                   const struct routing *routing)
{
    struct route_bwd_params p = { .rows = dscores->rows,
                                  .n_used = routing->ids.cols,
                                  .n_expert = dscores->cols };
    struct gpu_binding bind[] = { act(&routing->ids), act(&routing->weights), act(dweights),
                                  act(dscores) };
    gpu_dispatch_op(r, KERNEL_ROUTE_BWD, &p, bind, COUNT(bind),
                    divide_up((uint64_t)p.rows * p.n_expert, 64));
}
