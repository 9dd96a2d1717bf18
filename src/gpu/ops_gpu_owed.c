/* ops_gpu_owed.c - rows that lack what adapters add: y = W x and z = A x come from one dispatch, since both need only x, and
 * s B z is added by who reads y next. So a linear with adapters costs no dispatch more. */
#include "gpu/ops_gpu_impl.h"

enum {
    ROOM_BEHIND = 8192,  /* numbers */
    OWED_RANK = 64,      /* past it z is worth a dispatch of its own */
    OWED_PARTS = 4,      /* that kernels/lib/owed.wgsl adds up at most */
    LACK_MOST = 4 << 20, /* numbers of B that the workgroups of a join read, all together */
};

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

static struct gpu_lack lack_of(const struct gpu_owed *of)
{
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
    struct gpu_lack l = lack_of(&o);
    struct owed_params p = { .cols = o.of.cols,
                             .owed_rank = l.rank,
                             .owed_at = l.at,
                             .owed_parts = l.parts,
                             .owed_scales = l.scales };
    struct gpu_binding bind[] = { l.b, act(&o.of) };
    record_dispatch(&g->rec, KERNEL_OWED, NULL, 0, &p, bind, COUNT(bind),
                    divide_up(p.cols, 4 * 64));
}

void gpu_owe(struct run *r, const struct tensor *y, const struct weight *w, uint32_t parts)
{
    struct gpu_ops *g = ops_of(r);
    g->owed = (struct gpu_owed) { .of = *y, .w = w, .at = gpu_owed_at(y), .parts = parts };
    g->rec.first = pay;
    g->rec.first_ctx = g;
}

struct gpu_lack gpu_join_lack(struct run *r, const struct join *j, uint32_t groups)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_owed *o = &g->owed;
    const struct tensor *t = j->branch;
    bool lacks = g->rec.first == pay && t && o->of.mem == t->mem && o->of.cols == t->cols &&
                 t->rows == 1 && !t->first;
    if (!lacks || (uint64_t)groups * matrix_of(o->w)->adapted.rank * j->x->cols > LACK_MOST)
        return (struct gpu_lack) { .b = whole(g->unused) };
    g->rec.first = NULL;
    return lack_of(o);
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
    gpu_owe(r, y, w, parts);
    return true;
}
