/* ops_gpu_router.c - the router as dispatches: scores and what the experts read, then the choice.
 */
#include <math.h>

#include "gpu/ops_gpu_impl.h"

/* scores = W (rms_norm(x) * scale) / sqrt(cols), and norm, by the product of any matrix. */
static void any_router_scores(struct run *r, struct tensor *scores, struct tensor *norm,
                              const struct tensor *x, const struct router *by, float eps)
{
    struct tensor u = gpu_scratch(r, SCRATCH_FIRST, x->rows, x->cols);
    gpu_rms_norm(r, &u, x, by->scale, eps);
    gpu_adapted_matrix(r, scores, &u, by->w, 1.0f / sqrtf((float)x->cols));
    gpu_rms_norm(r, norm, x, by->norm, eps);
}

/* The same by one kernel, for an F32 router without adapters, as published files have it. s: where
 * norm is left ready; NULL: it is not. */
static void router_scores(struct run *r, struct tensor *scores, struct tensor *norm,
                          const struct tensor *s, const struct tensor *x, const struct router *by,
                          float eps)
{
    struct gpu_ops *g = ops_of(r);
    const struct weight *w = by->w;
    const struct gpu_weight *gw = w->mem;
    struct router_scores_params p = {
        .rows = x->rows, .cols = x->cols, .n_expert = w->rows, .makes_ready = s != NULL, .eps = eps
    };
    struct gpu_binding bind[] = { act(x),
                                  whole(gw->parts[0].buffer),
                                  vector(g, by->scale),
                                  vector(g, by->norm),
                                  act(scores),
                                  act(norm),
                                  s ? act(s) : whole(g->unread[0]) };
    uint32_t wg = (uint32_t)gpu_sum_wg(g, 256), lanes = g->tuning->score_lanes;
    struct gpu_constant constants[] = { { ROUTER_SCORES_WG, (float)wg },
                                        { ROUTER_SCORES_LANES, (float)lanes } };
    record_dispatch(&g->rec, (uint32_t)KERNEL_ROUTER_SCORES | ACTS(g, ROUTER_SCORES), constants,
                    COUNT(constants), &p, bind, COUNT(bind),
                    x->rows * divide_up(w->rows, wg / lanes));
}

/* Choose the experts by their scores. */
static void choose_by(struct gpu_ops *g, const struct tensor *scores, const struct routing *to)
{
    struct router_params p = { .rows = scores->rows,
                               .n_expert = scores->cols,
                               .n_used = to->ids.cols };
    struct gpu_binding bind[] = { act(scores), act(&to->ids), act(&to->weights) };
    struct gpu_constant wg = { ROUTER_WG, gpu_sum_wg(g, 256) };
    record_dispatch(&g->rec, KERNEL_ROUTER, &wg, 1, &p, bind, COUNT(bind), p.rows);
}

void gpu_route(struct run *r, struct routing *out, const struct tensor *scores)
{
    choose_by(ops_of(r), scores, out);
}

void gpu_choose(struct gpu_ops *g, const struct gpu_choice *c)
{
    choose_by(g, &c->scores, &c->to);
}

/* Is the router an F32 matrix without adapters, as published files have it? */
static bool plain_router(const struct weight *w)
{
    const struct gpu_weight *g = w->mem;
    return g->shape == GPU_F32 && g->n_parts == 1 && !w->lora;
}

/* Scores, and norm, ready too where that is wanted. The experts are still to be chosen. */
static void score(struct run *r, struct gpu_choice *c, const struct routing *out,
                  struct tensor *norm, const struct tensor *x, const struct router *by, float eps)
{
    const struct weight *w = by->w;
    const struct gpu_ops *g = ops_of(r);
    bool plain = plain_router(w), can = plain && gpu_makes_ready(g, x->rows, x->cols);
    *c = (struct gpu_choice) { gpu_scratch(r, SCRATCH_SECOND, x->rows, w->rows), *out };
    if (plain) router_scores(r, &c->scores, norm, can ? gpu_ready_room(norm) : NULL, x, by, eps);
    else any_router_scores(r, &c->scores, norm, x, by, eps);
}

/* The product beside the router is part of the same dispatch where h is ready and W is codes
 * without adapters. */
void gpu_score(struct run *r, struct gpu_choice *c, const struct routing *out, struct tensor *norm,
               const struct tensor *x, const struct router *by, float eps,
               const struct product *beside)
{
    enum { BUFFERS = 9 };
    struct gpu_ops *g = ops_of(r);
    if (!beside) {
        score(r, c, out, norm, x, by, eps);
        return;
    }
    const struct weight *w = beside->w;
    const struct gpu_weight *gw = w->mem, *m = by->w->mem;
    const struct tensor *ready = gpu_ready(beside->h);
    struct gpu_vectors v = gpu_vectors_of(g, by->scale, by->norm, NULL);
    struct row_groups t = gpu_row_groups(g, gw->shape, w->rows, w->cols, 0);
    bool can = ready && gpu_codes_no_lora(w) && gw->n_parts == 1 && plain_router(by->w) && v.one &&
               gpu_makes_ready(g, x->rows, x->cols) && x->cols / 16 <= by->w->rows * t.wg &&
               g->rec.limits.max_storage_buffers >= BUFFERS;
    if (!can) {
        gpu_linear(r, beside->y, beside->h, w);
        score(r, c, out, norm, x, by, eps);
        return;
    }
    *c = (struct gpu_choice) { gpu_scratch(r, SCRATCH_SECOND, x->rows, by->w->rows), *out };
    /* The kernel always writes norm ready: here to room that is not read. */
    struct tensor unread = gpu_ready_scratch(r, SCRATCH_READY, x->rows, x->cols);
    const struct tensor *s = norm->ready ? gpu_ready_room(norm) : &unread;
    const struct gpu_part *part = &gw->parts[0];
    struct linear_router_params p = { .cols = w->cols,
                                      .rows = w->rows,
                                      .n_tok = x->rows,
                                      .scales = part->layout.scales,
                                      .high = part->layout.high,
                                      .d = part->layout.d,
                                      .n_embd = x->cols,
                                      .n_expert = by->w->rows,
                                      .scale_at = v.at[0],
                                      .norm_at = v.at[1],
                                      .eps = eps };
    struct gpu_binding bind[] = { act(ready),      whole(part->buffer),
                                  act(x),          whole(m->parts[0].buffer),
                                  v.all,           act(beside->y),
                                  act(&c->scores), act(norm),
                                  act(s) };
    _Static_assert(COUNT(bind) == BUFFERS, "as many as were asked for");
    struct gpu_constant constants[] = { { LINEAR_ROUTER_WG, (float)t.wg },
                                        { LINEAR_ROUTER_LANES, (float)t.lanes },
                                        { LINEAR_ROUTER_R, (float)t.rows } };
    record_dispatch(&g->rec, READY(g, LINEAR_ROUTER, gw->shape), constants, COUNT(constants), &p,
                    bind, COUNT(bind),
                    p.n_tok * (p.n_expert + divide_up(w->rows, rows_of_workgroup(t))));
}

void gpu_router(struct run *r, struct routing *out, struct tensor *norm, const struct tensor *x,
                const struct router *by, float eps)
{
    struct gpu_choice c;
    gpu_score(r, &c, out, norm, x, by, eps, NULL);
    gpu_choose(ops_of(r), &c);
}

void gpu_linear_router(struct run *r, struct tensor *y, const struct tensor *h,
                       const struct weight *w, struct routing *out, struct tensor *norm,
                       const struct tensor *x, const struct router *by, float eps)
{
    struct gpu_choice c;
    gpu_score(r, &c, out, norm, x, by, eps, &(struct product) { y, h, w });
    gpu_choose(ops_of(r), &c);
}
