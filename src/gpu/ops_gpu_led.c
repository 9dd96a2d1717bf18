/* ops_gpu_led.c - a block's first products without a dispatch of their own, in a layer with per-layer inputs: the two dispatches before take along what
 * they know of queries, keys and values, and attention, which reads them, joins the stream and adds both up. See kernels/lib/ahead.wgsl, and
 * ops_gpu_ahead.c for the matrices. */
#include "gpu/ops_gpu_impl.h"

enum {
    LED_FLOAT_ROWS = 4, /* of a matrix of floats, for a workgroup: kernels/lib/join_gelu_led.wgsl */
    LED_LANES = 32,     /* that share so many rows of products: kernels/lib/float_rows.wgsl */
    LED_ROWS = 4,
};

/* What the first kernel is told of the matrices whose known part it makes; returns how many teams they take. */
static uint32_t put_heads(struct join_gelu_led_params *p, struct gpu_binding *bind,
                          const struct gpu_lead *l, uint32_t team)
{
    struct {
        uint32_t *rows, *scales, *high, *d;
    } const of[JOIN_LINEARS] = { { &p->rows, &p->scales, &p->high, &p->d },
                                 { &p->rows2, &p->scales2, &p->high2, &p->d2 },
                                 { &p->rows3, &p->scales3, &p->high3, &p->d3 } };
    uint32_t n_teams = 0;
    for (uint32_t i = 0; i < l->n_heads; i++) {
        const struct gpu_part *part = &matrix_of(l->heads[i])->parts[0];
        *of[i].rows = part->rows;
        *of[i].scales = part->layout.scales;
        *of[i].high = part->layout.high;
        *of[i].d = part->layout.d;
        bind[i] = whole(part->buffer);
        n_teams += divide_up(part->rows, team);
    }
    return n_teams;
}

/* And of the matrix that it is for: as it is, or merged with its adapters. */
static struct gpu_binding put_gate(struct join_gelu_led_params *p, const struct weight *w,
                                   const struct gpu_lead *l)
{
    const struct gpu_part *part = &matrix_of(w)->parts[0];
    p->rows4 = w->rows;
    p->n_more = l->merged ? l->more : 0;
    p->scales4 = part->layout.scales;
    p->high4 = part->layout.high;
    p->d4 = part->layout.d;
    return whole(l->merged ? l->rows : part->buffer);
}

bool gpu_join_gelu_led(struct run *r, const struct join *j, const struct tensor *y,
                       const struct weight *w, const struct tensor *by, uint32_t col)
{
    enum { BUFFERS = 10 };
    struct gpu_ops *g = ops_of(r);
    const struct gpu_lead *l = gpu_lead_of(r, w, j->to);
    if (!l || (!l->merged && !l->n_heads) || !gpu_joins(g, j, BUFFERS) || !j->branch ||
        weight_exists(j->scale) || weight_exists(j->next_w))
        return false;
    struct gpu_vectors v = gpu_vectors_of(g, j->w, l->n_heads ? l->next_w : NULL, NULL);
    struct gpu_picked all[JOIN_LINEARS] = { { 0 } };
    enum gpu_shape shape = GPU_Q4_0; /* of any, where there are none */
    if (!v.one) return false;
    if (l->n_heads) {
        gpu_pick(all, l->heads, l->n_heads);
        shape = matrix_of(l->heads[0])->shape;
    }
    struct join_gelu_led_params p = { .cols = w->cols,
                                      .by_col = col,
                                      .has_branch = 1,
                                      .post_at = v.at[0],
                                      .next_at = v.at[1],
                                      .eps = j->eps };
    struct gpu_binding none = whole(g->unused);
    struct gpu_binding bind[] = { act(j->x), act(j->branch), v.all,   none,       none,
                                  none,      none,           act(by), act(j->to), act(y) };
    _Static_assert(COUNT(bind) == BUFFERS, "as many as were asked for");
    struct teams t = gpu_held_cut(g, rows_of_all(l->heads, l->n_heads));
    uint32_t blocks = divide_up(put_heads(&p, bind + 3, l, t.rows), t.wg / t.lanes);
    p.gate_groups =
        l->merged ? divide_up(l->own + l->more, LED_FLOAT_ROWS) : divide_up(w->rows, team_rows(t));
    p.n_groups = p.gate_groups + blocks;
    bind[6] = put_gate(&p, w, l);
    struct gpu_constant constants[] = {
        { JOIN_GELU_LED_WG, (float)t.wg },   { JOIN_GELU_LED_LANES, (float)t.lanes },
        { JOIN_GELU_LED_R, (float)t.rows },  { JOIN_GELU_LED_HELD, (float)gpu_held(w->cols) },
        { JOIN_GELU_LED_MERGED, l->merged }, { JOIN_GELU_LED_MATRICES, (float)l->n_heads }
    };
    uint32_t kernel = all[0].mixed ? TIERED(g, JOIN_GELU_MIXED_LED_Q4_K) - GPU_Q4_K
                                   : TIERED(g, JOIN_GELU_LED_Q4_0) - GPU_Q4_0;
    record_dispatch(&g->rec, kernel + shape, constants, COUNT(constants), &p, bind, COUNT(bind),
                    p.n_groups);
    if (l->n_heads) gpu_led(r, l, j->to, true);
    return true;
}

/* What the second kernel is told of the readers' adapters. */
static void put_adapters(struct linear_led_params *p, const struct gpu_lead *stream)
{
    uint32_t *const rank[JOIN_LINEARS] = { &p->rank, &p->rank2, &p->rank3 };
    uint32_t *const at[JOIN_LINEARS] = { &p->b_at, &p->b_at2, &p->b_at3 };
    uint32_t b_at = 0;
    p->stream_cols = stream->heads[0]->cols;
    p->rows_q = stream->heads[0]->rows;
    p->rows_k = stream->n_heads > 1 ? stream->heads[1]->rows : 0;
    for (uint32_t i = 0; i < stream->n_heads; i++) {
        *rank[i] = matrix_of(stream->heads[i])->adapted.rank;
        *at[i] = b_at;
        b_at += *rank[i] * (stream->heads[i]->rows + 1);
    }
}

bool gpu_linear_led(struct run *r, const struct tensor *y, const struct tensor *x,
                    const struct weight *w)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_lead *l = gpu_lead_of(r, w, y);
    const struct gpu_led *stream = &g->led[1];
    if (!l || !l->n_products || x->rows != 1 || stream->reader != l->reader) return false;
    const struct gpu_weight *m = w->mem;
    enum gpu_shape shape = l->merged ? GPU_F32 : m->shape;
    const struct gpu_layout *layout = &m->parts[0].layout;
    struct teams t = gpu_cut(g, shape, w->rows, w->cols, 1);
    if (l->merged) t = (struct teams) { 128, LED_LANES, LED_ROWS };
    struct linear_led_params p = { .cols = w->cols,
                                   .rows = l->merged ? l->own + l->more : w->rows,
                                   .m_rows = l->n_products,
                                   .scales = layout->scales,
                                   .high = layout->high,
                                   .d = layout->d,
                                   .n_more = l->more };
    p.groups = divide_up(p.rows, team_rows(t));
    if (stream->lead->more > l->more) put_adapters(&p, stream->lead);
    bool adapted = p.rank + p.rank2 + p.rank3 > 0;
    struct gpu_binding bind[] = { act(x),
                                  whole(l->merged ? l->rows : m->parts[0].buffer),
                                  whole(l->products),
                                  act(y),
                                  whole(matrix_of(l->reader)->lead.b),
                                  whole((gpu_buffer)(uintptr_t)stream->behind) };
    struct gpu_constant constants[] = { { LINEAR_LED_WG, (float)t.wg },
                                        { LINEAR_LED_LANES, (float)t.lanes },
                                        { LINEAR_LED_R, (float)t.rows } };
    uint32_t kernel = adapted ? TIERED(g, LINEAR_LED_LORA_F32) : TIERED(g, LINEAR_LED_F32) + shape;
    record_dispatch(&g->rec, kernel, constants, COUNT(constants), &p, bind,
                    COUNT(bind) - (adapted ? 0 : 2),
                    p.groups + divide_up(p.m_rows, t.wg / LED_LANES * LED_ROWS));
    gpu_led(r, l, y, false);
    return true;
}

/* ---- what was left ---- */

/* Nobody has taken it over. */
static void pay(void *ctx)
{
    struct run *r = ctx;
    struct gpu_heads h = ops_of(r)->heads;
    struct tensor *const y[JOIN_LINEARS] = { &h.y[0], &h.y[1], &h.y[2] };
    h.j.x = &h.x;
    h.j.branch = &h.branch;
    h.j.to = &h.to;
    h.j.norm = &h.norm;
    gpu_join_linears(r, &h.j, y, h.w, h.n);
}

bool gpu_leave_heads(struct run *r, const struct join *j, struct tensor *const *y,
                     const struct weight *const *w, uint32_t n)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_heads *h = &g->heads;
    const struct gpu_lead *l = g->led[1].lead;
    if (j->other || !gpu_is_led(r, j, w[0]) || !l->n_heads || l->n_heads != n) return false;
    g->led[0] = g->led[1] = (struct gpu_led) { 0 };
    *h = (struct gpu_heads) {
        .j = *j, .x = *j->x, .branch = *j->branch, .to = *j->to, .norm = *j->norm, .n = n, .lead = l
    };
    for (uint32_t i = 0; i < n; i++) {
        h->y[i] = *y[i];
        h->w[i] = w[i];
    }
    g->rec.first = pay;
    g->rec.first_ctx = r;
    return true;
}

const struct gpu_heads *gpu_left_heads(const struct run *r, const struct tensor *q)
{
    const struct gpu_ops *g = ops_of(r);
    const struct tensor *y = &g->heads.y[0];
    return g->rec.first == pay && y->mem == q->mem && y->first == q->first ? &g->heads : NULL;
}

void gpu_take_heads(struct run *r)
{
    ops_of(r)->rec.first = NULL;
}
