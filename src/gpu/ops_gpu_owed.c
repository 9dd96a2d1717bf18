/* ops_gpu_owed.c - rows that lack what adapters add: y = W x and z = A x come from one dispatch, since both need only x, and
 * s B z is added by who reads y next. So a linear with adapters costs no dispatch more. */
#include <assert.h>

#include "gpu/ops_gpu_impl.h"

enum {
    ROOM_BEHIND = 2048,     /* numbers */
    OWED_RANK = 64,         /* past it z is worth a dispatch of its own */
    OWED_PARTS = 4,         /* that kernels/lib/owed.wgsl adds up at most */
    GELU_OWED_MOST = 16384, /* numbers of B that kernels/lib/gelu_linear_own.wgsl has room for */
    LACK_MOST = 4 << 20,    /* numbers of B that the workgroups of a join read, all together */
};

static const struct gpu_weight *matrix_of(const struct weight *w)
{
    return w->mem;
}

uint32_t gpu_room_behind(const struct gpu_ops *g, uint64_t n_bytes)
{
    const struct gpu_limits *l = &g->rec.limits;
    uint64_t all = n_bytes + ROOM_BEHIND * sizeof(float);
    return all <= l->max_buffer && all <= l->max_binding ? ROOM_BEHIND * (uint32_t)sizeof(float)
                                                         : 0;
}

bool gpu_may_owe(const struct run *r, const struct tensor *y, const struct weight *w,
                 uint32_t parts)
{
    const struct gpu_ops *g = ops_of(r);
    uint32_t rank = matrix_of(w)->adapted.rank;
    uint64_t end = gpu_owed_at(y) + (uint64_t)rank * parts;
    return rank > 0 && rank <= OWED_RANK && !g->narrow && !r->tap && !w->z && !gpu_drops(w) &&
           matrix_of(w)->n_parts == 1 && w->rows % 4 == 0 && w->cols % 16 == 0 && y->rows == 1 &&
           y->cols == w->rows && !y->first && !y->half &&
           end * sizeof(float) <=
               y->size * sizeof(float) + gpu_room_behind(g, y->size * sizeof(float));
}

struct gpu_lack gpu_lack_of(const struct gpu_ops *g, const struct gpu_owed *of)
{
    if (!of) return (struct gpu_lack) { .b = whole(g->unused) };
    const struct gpu_adapted *d = &matrix_of(of->w)->adapted;
    return (struct gpu_lack) { .rank = d->rank,
                               .at = of->at / 4,
                               .parts = of->parts,
                               .scales = gpu_adapted_scales(d, of->w) / 4,
                               .b = whole(d->b) };
}

/* Nobody has taken it over. */
static void pay(void *ctx)
{
    struct gpu_ops *g = ctx;
    const struct gpu_owed o = g->owed;
    struct gpu_lack l = gpu_lack_of(g, &o);
    struct owed_params p = { .cols = o.of.cols,
                             .owed_rank = l.rank,
                             .owed_at = l.at,
                             .owed_parts = l.parts,
                             .owed_scales = l.scales };
    struct gpu_binding bind[] = { l.b, act(&o.of) };
    record_dispatch(&g->rec, KERNEL_OWED, NULL, 0, &p, bind, COUNT(bind),
                    divide_up(p.cols, 4 * 64));
    if (!o.by.mem) return;
    struct gelu_mul_params by = { .rows = 1, .cols = o.of.cols, .b_cols = o.by.cols, .col = o.col };
    struct gpu_binding with[] = { act(&o.by), act(&o.of) };
    record_dispatch(&g->rec, KERNEL_GELU_MUL, NULL, 0, &by, with, COUNT(with),
                    divide_up(by.cols, 4 * 256));
}

void gpu_owe(struct run *r, const struct tensor *y, const struct weight *w, uint32_t parts,
             const struct tensor *by, uint32_t col)
{
    struct gpu_ops *g = ops_of(r);
    g->owed =
        (struct gpu_owed) { .of = *y, .w = w, .at = gpu_owed_at(y), .parts = parts, .col = col };
    if (by) g->owed.by = *by;
    g->rec.first = pay;
    g->rec.first_ctx = g;
}

/* Does t lack something? */
static bool lacks_more(const struct gpu_ops *g, const struct tensor *t)
{
    const struct gpu_owed *o = &g->owed;
    return g->rec.first == pay && t && o->of.mem == t->mem && o->of.cols == t->cols &&
           t->rows == 1 && !t->first;
}

bool gpu_take_owed(struct run *r, const struct tensor *t, bool gelu, uint32_t most_rank,
                   struct gpu_owed *out)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_owed *o = &g->owed;
    if (!lacks_more(g, t) || (o->by.mem != NULL) != gelu) return false;
    if (matrix_of(o->w)->adapted.rank > most_rank) return false;
    *out = *o;
    g->rec.first = NULL;
    return true;
}

struct gpu_lack gpu_join_lack(struct run *r, const struct join *j, uint32_t groups)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_owed o;
    uint64_t rank = g->rec.first == pay ? matrix_of(g->owed.w)->adapted.rank : 0;
    bool takes = groups * rank * j->x->cols <= LACK_MOST &&
                 gpu_take_owed(r, j->branch, false, OWED_RANK, &o);
    return gpu_lack_of(g, takes ? &o : NULL);
}

bool gpu_join_linear_z(struct run *r, const struct join *j, const struct tensor *y,
                       const struct weight *w, const struct tensor *by, uint32_t col)
{
    enum { BUFFERS = 8 };
    struct gpu_ops *g = ops_of(r);
    struct gpu_vectors v = gpu_join_vectors(g, j);
    if (!gpu_joins(g, j, BUFFERS) || !v.one || !gpu_may_owe(r, y, w, 1)) return false;
    const struct gpu_weight *m = w->mem;
    const struct gpu_part *part = &m->parts[0];
    struct teams t = gpu_held_cut(g, w->rows);
    /* Two threads for what the branch lacks. */
    if (lacks_more(g, j->branch) && t.wg < GPU_HELD_WG) t.wg = GPU_HELD_WG;
    uint32_t groups = divide_up(w->rows, team_rows(t));
    const struct gpu_lead *lead = by ? NULL : gpu_lead_of(r, w);
    struct gpu_lack l = gpu_join_lack(r, j, groups + m->adapted.rank);
    struct join_linear_z_params p = { .cols = w->cols,
                                      .rows = w->rows,
                                      .groups = groups,
                                      .scales = part->layout.scales,
                                      .high = part->layout.high,
                                      .d = part->layout.d,
                                      .has_branch = j->branch != NULL,
                                      .has_scale = weight_exists(j->scale),
                                      .has_next = weight_exists(j->next_w),
                                      .post_at = v.at[0],
                                      .scale_at = v.at[1],
                                      .next_at = v.at[2],
                                      .rank = m->adapted.rank,
                                      .more = lead ? lead->more : 0,
                                      .z_at = gpu_owed_at(y),
                                      .owed_rank = l.rank,
                                      .owed_at = l.at,
                                      .owed_parts = l.parts,
                                      .owed_scales = l.scales,
                                      .eps = j->eps };
    struct gpu_binding bind[] = {
        act(j->x),           j->branch ? act(j->branch) : whole(g->unused), v.all,      l.b,
        whole(part->buffer), whole(lead ? lead->rows : m->adapted.a),       act(j->to), act(y)
    };
    _Static_assert(COUNT(bind) == BUFFERS, "as many as were asked for");
    struct gpu_constant constants[] = { { JOIN_LINEAR_Z_WG, (float)t.wg },
                                        { JOIN_LINEAR_Z_LANES, (float)t.lanes },
                                        { JOIN_LINEAR_Z_R, (float)t.rows },
                                        { JOIN_LINEAR_Z_HELD, (float)gpu_held(j->x->cols) },
                                        { JOIN_LINEAR_Z_OWED, l.rank > 0 } };
    record_dispatch(&g->rec, TIERED(g, JOIN_LINEAR_Z_F32) + m->shape, constants, COUNT(constants),
                    &p, bind, COUNT(bind), p.groups + p.rank + p.more);
    if (lead) gpu_led(r, lead, j->to, true);
    gpu_owe(r, y, w, 1, by, col);
    return true;
}

bool gpu_linear_z(struct run *r, const struct tensor *y, const struct tensor *settled,
                  const struct weight *w)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_weight *m = w->mem;
    /* Another's z, or no codes. */
    if (!settled || !gpu_reads_digits(m->shape) || g->settled.reader == w) return false;
    struct teams t = gpu_cut(g, m->shape, w->rows, w->cols, 0);
    uint32_t parts = divide_up(w->cols, 16 * t.wg); /* a turn of a workgroup each */
    if (parts > OWED_PARTS) parts = OWED_PARTS;
    while (parts > 1 && !gpu_may_owe(r, y, w, parts)) parts--;
    if (!gpu_may_owe(r, y, w, parts)) return false;
    const struct gpu_part *part = &m->parts[0];
    struct linear_digits_z_params p = { .cols = w->cols,
                                        .rows = w->rows,
                                        .groups = divide_up(w->rows, team_rows(t)),
                                        .scales = part->layout.scales,
                                        .high = part->layout.high,
                                        .d = part->layout.d,
                                        .rank = m->adapted.rank,
                                        .parts = parts,
                                        .z_at = gpu_owed_at(y) };
    struct gpu_binding bind[] = { act(settled), whole(part->buffer), whole(m->adapted.a), act(y) };
    struct gpu_constant constants[] = { { LINEAR_DIGITS_Z_WG, (float)t.wg },
                                        { LINEAR_DIGITS_Z_LANES, (float)t.lanes },
                                        { LINEAR_DIGITS_Z_R, (float)t.rows } };
    record_dispatch(&g->rec, TIERED(g, LINEAR_DIGITS_Z_Q4_0) + m->shape - GPU_Q4_0, constants,
                    COUNT(constants), &p, bind, COUNT(bind), p.groups + p.rank * parts);
    gpu_used_settled(r);
    gpu_owe(r, y, w, parts, NULL, 0);
    return true;
}

/* A short row: every workgroup makes it, and A of it, for itself. */
static struct teams gelu_cut(const struct gpu_weight *m, uint32_t cols)
{
    uint32_t lanes = 8;
    while (lanes < 64 && lanes * gpu_unit(m->shape) < cols) lanes *= 2;
    return (struct teams) { 128, lanes, 1 };
}

bool gpu_gelu_linear(struct run *r, const struct tensor *y, const struct tensor *x,
                     const struct weight *w)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_weight *m = w->mem;
    struct gpu_owed owed;
    bool fits = m->n_parts == 1 && (w->cols == 256 || w->cols == 512) && y->rows == 1 &&
                m->adapted.rank <= 256 && !w->z && !gpu_drops(w) && g->owed.col % 4 == 0;
    if (!fits || !gpu_take_owed(r, x, true, GELU_OWED_MOST / w->cols, &owed)) return false;
    assert(owed.parts == 1);
    struct gpu_lack l = gpu_lack_of(g, &owed);
    const struct gpu_part *part = &m->parts[0];
    struct gelu_linear_own_params p = { .cols = w->cols,
                                        .rows = w->rows,
                                        .scales = part->layout.scales,
                                        .high = part->layout.high,
                                        .d = part->layout.d,
                                        .by_col = owed.col,
                                        .owed_rank = l.rank,
                                        .owed_at = l.at,
                                        .owed_scales = l.scales,
                                        .rank = m->adapted.rank,
                                        .b_scales = gpu_adapted_scales(&m->adapted, w) };
    struct gpu_binding none = whole(g->unused);
    struct gpu_binding bind[] = { act(x),
                                  l.b,
                                  act(&owed.by),
                                  whole(part->buffer),
                                  p.rank ? whole(m->adapted.a) : none,
                                  p.rank ? whole(m->adapted.b) : none,
                                  act(y) };
    struct teams t = gelu_cut(m, w->cols);
    struct gpu_constant constants[] = { { GELU_LINEAR_OWN_WG, (float)t.wg },
                                        { GELU_LINEAR_OWN_LANES, (float)t.lanes },
                                        { GELU_LINEAR_OWN_R, (float)t.rows } };
    record_dispatch(&g->rec, TIERED(g, GELU_LINEAR_OWN_F32) + m->shape, constants, COUNT(constants),
                    &p, bind, COUNT(bind), divide_up(p.rows, team_rows(t)));
    return true;
}
