/* ops_gpu_experts.c - the experts as dispatches.
 *
 * A slot is one choice of one row. With few slots each reads its expert's weights. With many, slots
 * are first sorted by their experts, so that a tile of slots shares the weights that it reads.
 */
#include "gpu/ops_gpu_impl.h"

/* Experts of one buffer: the first, and how many. */
static uint32_t first_expert(const struct weight *w, const struct gpu_part *part)
{
    return part->row0 / w->rows;
}

/* A kernel of lib/lanes.wgsl, whose WG and LANES are its first overrides. */
static void experts_dispatch(struct run *r, uint32_t kernel, struct row_groups t,
                             const void *params, const struct gpu_binding *b, uint32_t n,
                             uint32_t n_groups)
{
    _Static_assert(EXPERTS_DOWN_WG == 0 && EXPERTS_DOWN_LANES == 1, "lib/lanes.wgsl comes first");
    _Static_assert(EXPERTS_GATE_UP_WG == 0 && EXPERTS_GATE_UP_LANES == 1,
                   "lib/lanes.wgsl comes first");
    _Static_assert(EXPERTS_LINEAR_WG == 0 && EXPERTS_LINEAR_LANES == 1,
                   "lib/lanes.wgsl comes first");
    struct gpu_constant constants[] = { { EXPERTS_DOWN_WG, (float)t.wg },
                                        { EXPERTS_DOWN_LANES, (float)t.lanes } };
    record_dispatch(&ops_of(r)->rec, kernel, constants, COUNT(constants), params, b, n, n_groups);
}

/* y[slot] = W_e x for the experts of one buffer; x has a row for each t, or (by_slot) for each
 * slot. */
static void slots_product(struct run *r, const struct tensor *y, const struct tensor *x,
                          bool by_slot, const struct routing *routing, gpu_buffer w,
                          enum gpu_shape shape, struct experts_linear_params p,
                          const struct gpu_lora *lora)
{
    struct gpu_binding bind[] = { act(x), act(&routing->ids), whole(w), lora->z, lora->b, act(y) };
    struct row_groups t = gpu_row_groups_by_length(ops_of(r), shape, p.rows, p.cols);
    p.n_tok = routing->ids.rows;
    p.n_used = routing->ids.cols;
    p.x_stride = by_slot ? x->cols * p.n_used : x->cols;
    p.x_slot = by_slot ? x->cols : 0;
    p.y_stride = y->cols;
    p.rank = lora->rank;
    p.b_rows = lora->b_rows;
    p.b_scales = lora->b_scales;
    experts_dispatch(r, TIERED_SHAPED(ops_of(r), EXPERTS_LINEAR, shape), t, &p, bind, COUNT(bind),
                     p.n_tok * p.n_used * divide_up(p.rows, rows_of_workgroup(t)));
}

/* What an expert weight's kernel is told of its adapters; A x of every slot is made first. */
static struct gpu_lora slots_lora(struct run *r, const struct weight *w, const struct tensor *x,
                                  bool by_slot, const struct routing *routing)
{
    struct tensor z = gpu_lora_room(r, w, routing->ids.rows * routing->ids.cols);
    struct gpu_lora lora = gpu_lora_of(r, w, &z);
    struct gpu_lora none = { .z = whole(ops_of(r)->unused), .b = whole(ops_of(r)->unused) };
    struct experts_linear_params p = { .cols = w->cols, .rows = lora.rank, .n_mat = w->n_mat };
    gpu_buffer a = ((const struct gpu_weight *)w->mem)->adapted.a;
    if (lora.rank) slots_product(r, &z, x, by_slot, routing, a, GPU_F32, p, &none);
    return lora;
}

/* h = gelu(gate x) * up x of every (row, slot), gate and up in one tensor. */
static void gate_up_together(struct run *r, struct tensor *h, const struct tensor *x,
                             const struct routing *routing, const struct weight *w)
{
    const struct gpu_weight *g = w->mem;
    struct gpu_lora lora = slots_lora(r, w, x, false, routing);
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
                                            .d = part->layout.d,
                                            .rank = lora.rank,
                                            .b_rows = lora.b_rows,
                                            .b_scales = lora.b_scales };
        struct gpu_binding bind[] = {
            act(x), act(&routing->ids), whole(part->buffer), lora.z, lora.b, act(h)
        };
        struct row_groups t = gpu_row_groups_by_length(ops_of(r), g->shape, w->rows, w->cols);
        experts_dispatch(r, TIERED_SHAPED(ops_of(r), EXPERTS_GATE_UP, g->shape), t, &p, bind,
                         COUNT(bind),
                         x->rows * p.n_used * divide_up(p.n_ff, rows_of_workgroup(t) / 2));
    }
}

/* h = W_e x of every (row, slot). */
static void experts_matrix(struct run *r, struct tensor *h, const struct tensor *x,
                           const struct routing *routing, const struct weight *w)
{
    const struct gpu_weight *g = w->mem;
    struct gpu_lora lora = slots_lora(r, w, x, false, routing);
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct experts_linear_params p = { .cols = w->cols,
                                           .rows = w->rows,
                                           .mat0 = first_expert(w, part),
                                           .n_mat = part->rows / w->rows,
                                           .scales = part->layout.scales,
                                           .high = part->layout.high,
                                           .d = part->layout.d };
        slots_product(r, h, x, false, routing, part->buffer, g->shape, p, &lora);
    }
}

/* Row groups of gate and up: pairs of rows for 32 lanes, or for as many lanes as a row has units. A
 * workgroup has whole runs of sixteen rows, which it leaves ready. */
static struct row_groups pair_groups(enum gpu_shape shape, uint32_t cols)
{
    struct row_groups t = { .lanes = 32, .rows = 2 };
    while (t.lanes / 2 >= divide_up(cols, gpu_unit(shape))) t.lanes /= 2;
    t.wg = t.lanes < 8 ? 64 : 8 * t.lanes;
    return t;
}

/* Where h is left ready. NULL: h cannot be ready. */
static const struct tensor *ready_slots(struct run *r, struct tensor *h)
{
    if (h->cols % 16) return NULL;
    *h->ready = gpu_ready_scratch(r, SCRATCH_READY_TOO, h->rows, h->cols);
    return gpu_ready_room(h);
}

/* h = gelu(gate x) * up x of every (row, slot), where x is ready; h is left ready. choice: the same
 * dispatch chooses the experts by their scores; NULL: they are chosen. False: nothing was recorded.
 */
static bool gate_up_ready(struct run *r, struct tensor *h, const struct tensor *x,
                          const struct routing *routing, const struct gpu_choice *choice,
                          const struct experts *e)
{
    struct gpu_ops *g = ops_of(r);
    bool fused = weight_exists(e->gate_up);
    const struct weight *gate = fused ? e->gate_up : e->gate, *up = fused ? e->gate_up : e->up;
    const struct gpu_weight *a = gate->mem, *b = up->mem;
    if (!gpu_ready(x) || !gpu_codes_no_lora(gate) || !gpu_codes_no_lora(up) ||
        a->shape != b->shape || a->n_parts != b->n_parts)
        return false;
    const struct tensor *s = ready_slots(r, h);
    struct row_groups t = pair_groups(a->shape, x->cols);
    bool routes = choice != NULL;
    for (uint32_t i = 0; i < a->n_parts; i++, routes = false) {
        const struct gpu_part *part = &a->parts[i];
        struct experts_gate_up_no_lora_params p = { .cols = gate->cols,
                                                    .rows = h->cols,
                                                    .stride = gate->rows,
                                                    .up_at = fused ? h->cols : 0,
                                                    .mat0 = first_expert(gate, part),
                                                    .n_mat = part->rows / gate->rows,
                                                    .n_tok = x->rows,
                                                    .n_used = routing->ids.cols,
                                                    .n_expert = gate->n_mat,
                                                    .y_stride = h->cols,
                                                    .scales = part->layout.scales,
                                                    .high = part->layout.high,
                                                    .d = part->layout.d,
                                                    .makes_ready = s != NULL };
        struct gpu_binding bind[] = { act(gpu_ready(x)),
                                      whole(part->buffer),
                                      whole(b->parts[i].buffer),
                                      act(routes ? &choice->scores : &routing->ids),
                                      act(h),
                                      s ? act(s) : whole(g->unread[0]),
                                      routes ? act(&routing->ids) : whole(g->unread[1]),
                                      routes ? act(&routing->weights) : whole(g->unread[2]) };
        struct gpu_constant constants[] = { { EXPERTS_GATE_UP_NO_LORA_WG, (float)t.wg },
                                            { EXPERTS_GATE_UP_NO_LORA_LANES, (float)t.lanes },
                                            { EXPERTS_GATE_UP_NO_LORA_R, (float)t.rows },
                                            { EXPERTS_GATE_UP_NO_LORA_ROUTES, routes } };
        record_dispatch(&g->rec, READY(g, EXPERTS_GATE_UP_NO_LORA, a->shape), constants,
                        COUNT(constants), &p, bind, COUNT(bind),
                        h->rows * divide_up(p.rows, rows_of_workgroup(t)) + (routes ? p.n_tok : 0));
    }
    return true;
}

/* The same where x is not ready, or matrices have adapters. */
static void gate_up_floats(struct run *r, struct tensor *h, const struct tensor *x,
                           const struct routing *routing, const struct experts *e)
{
    if (weight_exists(e->gate_up)) {
        gate_up_together(r, h, x, routing, e->gate_up);
        return;
    }
    struct tensor up = gpu_scratch(r, SCRATCH_SECOND, h->rows, h->cols);
    experts_matrix(r, h, x, routing, e->gate);
    experts_matrix(r, &up, x, routing, e->up);
    gpu_gelu_mul(r, h, &up, 0);
}

/* y = sum over the slots of weight * scale_e * W_e h. */
static void experts_sum(struct run *r, struct tensor *y, const struct tensor *h,
                        const struct routing *routing, const struct experts *e)
{
    const struct weight *w = e->down;
    const struct gpu_weight *g = w->mem;
    const struct tensor *ready = gpu_codes_no_lora(w) ? gpu_ready(h) : NULL;
    struct gpu_lora lora = slots_lora(r, w, h, true, routing);
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
                                         .rank = lora.rank,
                                         .b_rows = lora.b_rows,
                                         .b_scales = lora.b_scales };
        struct gpu_binding bind[] = { act(ready ? ready : h),
                                      act(&routing->ids),
                                      act(&routing->weights),
                                      vector(ops_of(r), e->scale),
                                      whole(part->buffer),
                                      act(y),
                                      lora.z,
                                      lora.b };
        uint32_t cols = p.n_used * w->cols;
        struct row_groups t = ready ? gpu_row_groups(ops_of(r), g->shape, w->rows, cols, 0)
                                    : gpu_row_groups_by_length(ops_of(r), g->shape, w->rows, cols);
        uint32_t groups = y->rows * divide_up(w->rows, rows_of_workgroup(t));
        struct gpu_constant constants[] = { { EXPERTS_DOWN_NO_LORA_WG, (float)t.wg },
                                            { EXPERTS_DOWN_NO_LORA_LANES, (float)t.lanes },
                                            { EXPERTS_DOWN_NO_LORA_R, (float)t.rows } };
        if (ready)
            record_dispatch(&ops_of(r)->rec, READY(ops_of(r), EXPERTS_DOWN_NO_LORA, g->shape),
                            constants, COUNT(constants), &p, bind, COUNT(bind) - 2, groups);
        else
            experts_dispatch(r, TIERED_SHAPED(ops_of(r), EXPERTS_DOWN, g->shape), t, &p, bind,
                             COUNT(bind), groups);
    }
}

static void few_experts(struct run *r, struct tensor *y, const struct tensor *x,
                        const struct routing *routing, const struct gpu_choice *choice,
                        const struct experts *e)
{
    struct tensor h = gpu_scratch(r, SCRATCH_FIRST, x->rows * routing->ids.cols, e->down->cols);
    struct tensor room = { 0 };
    h.ready = &room;
    if (!gate_up_ready(r, &h, x, routing, choice, e)) {
        if (choice) gpu_choose(ops_of(r), choice);
        gate_up_floats(r, &h, x, routing, e);
    }
    experts_sum(r, y, &h, routing, e);
}

/* ---- many rows: slots grouped by expert ---- */

enum {
    EXPERT_TILE = 32, /* slots that share a tile of weights */
    EXPERT_MATRIX_ROWS = 64,
    EXPERT_MATRIX_WG = 64,
};

struct expert_tiles gpu_expert_tiles(struct run *r, const struct routing *routing,
                                     uint32_t n_expert)
{
    uint32_t n_slots = routing->ids.rows * routing->ids.cols;
    struct expert_tiles plan = { .n_tiles = n_slots / EXPERT_TILE +
                                            (n_slots < n_expert ? n_slots : n_expert),
                                 .n_slots = n_slots,
                                 .n_used = routing->ids.cols };
    plan.list = gpu_scratch(r, SCRATCH_PLAN, 1, 4 * plan.n_tiles + n_slots);
    struct experts_plan_params p = { .n_slots = n_slots,
                                     .n_expert = n_expert,
                                     .n_tiles = plan.n_tiles };
    struct gpu_binding bind[] = { act(&routing->ids), act(&plan.list) };
    gpu_dispatch_op(r, KERNEL_EXPERTS_PLAN, &p, bind, COUNT(bind), 1);
    return plan;
}

static const struct gpu_constant matrix_constants[] = { { EXPERTS_MATMUL_ROWS, EXPERT_MATRIX_ROWS },
                                                        { EXPERTS_MATMUL_TOKS, EXPERT_TILE },
                                                        { EXPERTS_MATMUL_WG, EXPERT_MATRIX_WG } };
_Static_assert((int)EXPERTS_MATMUL_ROWS == (int)EXPERTS_GATE_UP_MATMUL_ROWS &&
                   (int)EXPERTS_MATMUL_TOKS == (int)EXPERTS_GATE_UP_MATMUL_TOKS &&
                   (int)EXPERTS_MATMUL_WG == (int)EXPERTS_GATE_UP_MATMUL_WG,
               "both have the overrides of lib/tile");

/* Does the kernel of a shape in the tier of subgroup matrices run here? */
static bool has_matrix(const struct gpu_ops *g, uint32_t kernel, enum gpu_shape shape)
{
    return g->tier == TIER_MATRIX && shape != GPU_F32 && !recorder_bars(&g->rec, kernel);
}

/* y[slot] = W_e x for the experts of one buffer. */
static void tiles_product(struct run *r, const struct tensor *y, const struct tensor *x,
                          bool by_slot, const struct expert_tiles *plan, gpu_buffer w,
                          enum gpu_shape shape, struct experts_matmul_params p,
                          const struct gpu_lora *lora)
{
    struct gpu_binding bind[] = { act(x), act(&plan->list), whole(w), lora->z, lora->b, act(y) };
    p.n_tiles = plan->n_tiles;
    p.n_used = plan->n_used;
    p.by_slot = by_slot;
    p.x_stride = x->cols;
    p.y_stride = y->cols;
    p.rank = lora->rank;
    p.b_rows = lora->b_rows;
    p.b_scales = lora->b_scales;
    uint32_t by_matrices = SHAPED(EXPERTS_MATMUL, shape) | EXPERTS_MATMUL_TIER_MATRIX;
    if (has_matrix(ops_of(r), by_matrices, shape)) {
        struct tensor halves = gpu_halves_of(r, x);
        bind[0] = act(&halves);
        record_dispatch(&ops_of(r)->rec, by_matrices, matrix_constants, COUNT(matrix_constants), &p,
                        bind, COUNT(bind), plan->n_tiles * divide_up(p.rows, EXPERT_MATRIX_ROWS));
        return;
    }
    uint32_t wg = ops_of(r)->tuning->expert_wg;
    struct gpu_constant set[] = { { EXPERTS_MATMUL_WG, (float)wg },
                                  { EXPERTS_MATMUL_LORA, lora->rank > 0 } };
    record_dispatch(&ops_of(r)->rec, SHAPED(EXPERTS_MATMUL, shape), set, COUNT(set), &p, bind,
                    COUNT(bind), plan->n_tiles * divide_up(p.rows, 2 * wg));
}

void gpu_tiled_f32(struct run *r, const struct tensor *y, const struct tensor *x, bool by_slot,
                   const struct expert_tiles *plan, gpu_buffer m, uint32_t n_mat)
{
    const struct gpu_lora none = { .z = whole(ops_of(r)->unused), .b = whole(ops_of(r)->unused) };
    const struct experts_matmul_params p = { .cols = x->cols, .rows = y->cols, .n_mat = n_mat };
    tiles_product(r, y, x, by_slot, plan, m, GPU_F32, p, &none);
}

/* As slots_lora. */
static struct gpu_lora tiles_lora(struct run *r, const struct weight *w, const struct tensor *x,
                                  bool by_slot, const struct expert_tiles *plan)
{
    struct tensor z = gpu_lora_room(r, w, plan->n_slots);
    struct gpu_lora lora = gpu_lora_of(r, w, &z);
    gpu_buffer a = ((const struct gpu_weight *)w->mem)->adapted.a;
    if (lora.rank) gpu_tiled_f32(r, &z, x, by_slot, plan, a, w->n_mat);
    return lora;
}

static void tiled_gate_up(struct run *r, struct tensor *h, const struct tensor *x,
                          const struct expert_tiles *plan, const struct weight *w)
{
    const struct gpu_weight *g = w->mem;
    struct gpu_lora lora = tiles_lora(r, w, x, false, plan);
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct experts_gate_up_matmul_params p = { .cols = w->cols,
                                                   .n_ff = w->rows / 2,
                                                   .mat0 = first_expert(w, part),
                                                   .n_mat = part->rows / w->rows,
                                                   .n_tiles = plan->n_tiles,
                                                   .n_used = plan->n_used,
                                                   .x_stride = x->cols,
                                                   .scales = part->layout.scales,
                                                   .high = part->layout.high,
                                                   .d = part->layout.d,
                                                   .rank = lora.rank,
                                                   .b_rows = lora.b_rows,
                                                   .b_scales = lora.b_scales };
        struct gpu_binding bind[] = { act(x), act(&plan->list), whole(part->buffer),
                                      lora.z, lora.b,           act(h) };
        uint32_t by_matrices =
            SHAPED(EXPERTS_GATE_UP_MATMUL, g->shape) | EXPERTS_GATE_UP_MATMUL_TIER_MATRIX;
        if (has_matrix(ops_of(r), by_matrices, g->shape)) {
            struct tensor halves = gpu_halves_of(r, x);
            bind[0] = act(&halves);
            record_dispatch(&ops_of(r)->rec, by_matrices, matrix_constants, COUNT(matrix_constants),
                            &p, bind, COUNT(bind),
                            plan->n_tiles * divide_up(p.n_ff, EXPERT_MATRIX_ROWS / 2));
            continue;
        }
        uint32_t wg = ops_of(r)->tuning->expert_wg;
        struct gpu_constant set[] = { { EXPERTS_GATE_UP_MATMUL_WG, (float)wg },
                                      { EXPERTS_GATE_UP_MATMUL_LORA, lora.rank > 0 } };
        record_dispatch(&ops_of(r)->rec, SHAPED(EXPERTS_GATE_UP_MATMUL, g->shape), set, COUNT(set),
                        &p, bind, COUNT(bind), plan->n_tiles * divide_up(p.n_ff, wg));
    }
}

void gpu_tiled_matrix(struct run *r, struct tensor *y, const struct tensor *x, bool by_slot,
                      const struct expert_tiles *plan, const struct weight *w)
{
    const struct gpu_weight *g = w->mem;
    struct gpu_lora lora = tiles_lora(r, w, x, by_slot, plan);
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct gpu_part *part = &g->parts[i];
        struct experts_matmul_params p = { .cols = w->cols,
                                           .rows = w->rows,
                                           .mat0 = first_expert(w, part),
                                           .n_mat = part->rows / w->rows,
                                           .scales = part->layout.scales,
                                           .high = part->layout.high,
                                           .d = part->layout.d };
        tiles_product(r, y, x, by_slot, plan, part->buffer, g->shape, p, &lora);
    }
}

static void combine(struct run *r, struct tensor *y, const struct tensor *each,
                    const struct routing *routing, const struct experts *e)
{
    struct experts_combine_params p = { .n_tok = y->rows,
                                        .n_used = routing->ids.cols,
                                        .cols = y->cols,
                                        .has_factor = weight_exists(e->scale) };
    struct gpu_binding bind[] = { act(each), act(&routing->ids), act(&routing->weights),
                                  vector(ops_of(r), e->scale), act(y) };
    gpu_dispatch_op(r, KERNEL_EXPERTS_COMBINE, &p, bind, COUNT(bind),
                    divide_up((uint64_t)y->rows * y->cols / 4, 64));
}

static void experts_grouped(struct run *r, struct tensor *y, const struct tensor *x,
                            const struct routing *routing, const struct experts *e)
{
    uint32_t n_ff = e->down->cols, n = x->rows * routing->ids.cols;
    struct expert_tiles plan = gpu_expert_tiles(r, routing, e->down->n_mat);
    struct tensor h = gpu_scratch(r, SCRATCH_FIRST, n, n_ff);
    if (weight_exists(e->gate_up)) {
        tiled_gate_up(r, &h, x, &plan, e->gate_up);
    } else {
        struct tensor up = gpu_scratch(r, SCRATCH_SECOND, n, n_ff);
        gpu_tiled_matrix(r, &h, x, false, &plan, e->gate);
        gpu_tiled_matrix(r, &up, x, false, &plan, e->up);
        gpu_gelu_mul(r, &h, &up, 0);
    }
    struct tensor each = gpu_scratch(r, SCRATCH_SECOND, n, y->cols);
    gpu_tiled_matrix(r, &each, &h, true, &plan, e->down);
    combine(r, y, &each, routing, e);
}

/* Do tiles of slots pay? A tile costs as much as 8, 16, 24 or 32 slots however few it has, so only
 * from some slots an expert on. */
static bool is_grouped(const struct run *r, const struct tensor *y, const struct routing *routing,
                       const struct experts *e)
{
    const struct gpu_tuning *by = ops_of(r)->tuning;
    uint32_t from = of_fours(ops_of(r)) ? by->group_from_fours : by->group_from;
    return routing->ids.rows * routing->ids.cols >= from * e->down->n_mat && y->cols % 4 == 0;
}

void gpu_experts(struct run *r, struct tensor *y, const struct tensor *x,
                 const struct routing *routing, const struct experts *e)
{
    if (is_grouped(r, y, routing, e)) experts_grouped(r, y, x, routing, e);
    else few_experts(r, y, x, routing, NULL, e);
}

/* May every workgroup that reads the routing choose the experts for itself? With many rows a
 * dispatch that chooses once is cheaper. */
static bool chosen_by_readers(const struct gpu_ops *g, const struct tensor *scores)
{
    enum { EXPERTS = 256 }; /* as many as experts_gate_up_no_lora can choose from */
    return scores->rows <= g->tuning->readers_choose && scores->cols <= EXPERTS;
}

void gpu_router_experts(struct run *r, struct tensor *y, struct routing *out, struct tensor *norm,
                        const struct tensor *x, const struct router *by, float eps,
                        const struct experts *e, const struct product *beside)
{
    struct gpu_choice c;
    struct tensor room, read = *norm;
    if (gpu_makes_ready(ops_of(r), x->rows, x->cols)) {
        room = gpu_ready_scratch(r, SCRATCH_READY, x->rows, x->cols);
        read.ready = &room;
    }
    gpu_score(r, &c, out, &read, x, by, eps, beside);
    if (gpu_ready(&read) && chosen_by_readers(ops_of(r), &c.scores) && !is_grouped(r, y, out, e)) {
        few_experts(r, y, &read, out, &c, e);
        return;
    }
    gpu_choose(ops_of(r), &c);
    gpu_experts(r, y, &read, out, e);
}
