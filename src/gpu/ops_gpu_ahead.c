/* ops_gpu_ahead.c - what adapters make of a stream, known before the stream is: kernels/lib/ahead.wgsl.
 *
 * z = A h of a block's first matrices would be a dispatch of its own, which all of them wait for. But it is linear in the stream before the last
 * block and in what that block's last product reads, so both products before can take rows of it along: those of the matrices that are
 * made here, when adapters change. They are kept where the product is (struct gpu_lead). */
#include "gpu/ops_gpu_bwd.h"
#include "gpu/ops_gpu_impl.h"

enum { AHEAD_RANK = 64 }; /* of each matrix; past it z is worth its dispatch */

static const uint32_t nowhere = UINT32_MAX; /* kernels/weigh_columns.wgsl */

static struct gpu_weight *matrix_of(const struct weight *w)
{
    return w->mem;
}

static uint32_t rank_of(const struct weight *w)
{
    return matrix_of(w)->adapted.rank;
}

/* Does nobody train it, and can its A be read by rows? */
static bool is_simple(const struct weight *w)
{
    for (const struct lora *l = w->lora; l; l = l->next)
        if (l->grad) return false;
    return !w->z && !gpu_drops(w) && w->cols % 16 == 0 && rank_of(w) <= AHEAD_RANK;
}

static uint32_t rank_of_all(const struct weight *const *w, uint32_t n)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < n; i++) rank += rank_of(w[i]);
    return rank;
}

static bool are_simple(const struct weight *const *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_simple(w[i])) return false;
    return rank_of_all(w, n) > 0;
}

/* Is a matrix so small that it is best merged with its adapters, as floats? */
static bool merges(const struct gpu_ops *g, const struct weight *w)
{
    enum { MERGED_MOST = 1 << 20 }; /* numbers */
    uint64_t n = (uint64_t)w->rows * w->cols;
    return rank_of(w) > 0 && is_simple(w) && matrix_of(w)->n_parts == 1 && n <= MERGED_MOST &&
           2 * n * sizeof(float) <= g->rec.limits.max_binding && !g->narrow;
}

/* Can the products before the readers take rows along for them? */
static bool can_lead(const struct gpu_ops *g, const struct ahead *a)
{
    enum { BUFFERS = 10 };
    const struct weight *b = a->branch;
    uint64_t most = (uint64_t)5 * AHEAD_RANK * (b->cols > b->rows ? b->cols : b->rows) * 4;
    return a->n_readers > 0 && gpu_can_hold(g, b->rows) && gpu_can_hold(g, b->cols) &&
           b->rows <= g->narrow_stream && g->rec.limits.max_storage_buffers >= BUFFERS &&
           most <= g->rec.limits.max_binding && matrix_of(b)->n_parts == 1 && b->rows % 4 == 0 &&
           are_simple(&b, 1) && are_simple(a->with, a->n_with) &&
           are_simple(a->readers, a->n_readers) &&
           gpu_vectors_of(g, a->post_w, a->next_w, NULL).one;
}

/* *b has n_bytes, or is none. */
static void make_room(gpu_buffer *b, uint32_t *has, uint32_t n_bytes)
{
    if (*has == n_bytes) return;
    if (*b) gpu_buffer_free(*b);
    *b = n_bytes ? gpu_buffer_new(n_bytes, GPU_STORAGE) : 0;
    *has = n_bytes;
}

/* Room for rows of w->cols numbers beside w; where there are none, none. */
static struct tensor lead_room(struct gpu_ops *g, const struct weight *w, uint32_t own,
                               uint32_t more, const struct weight *reader, bool merged)
{
    struct gpu_lead *l = &matrix_of(w)->lead;
    struct tensor t = { .rows = own + more,
                        .cols = w->cols,
                        .size = (uint64_t)(own + more) * w->cols };
    uint32_t n_bytes = (uint32_t)t.size * (uint32_t)sizeof(float);
    make_room(&l->rows, &l->n_bytes, n_bytes);
    l->own = own;
    l->more = more;
    l->merged = merged;
    l->reader = reader;
    l->at_change = g->n_changes;
    t.mem = (void *)(uintptr_t)l->rows;
    return t;
}

/* Rows of `to`, from `row` on: A of each matrix, its columns times u and v (places among all vectors). */
static void put_rows(struct run *r, const struct tensor *to, uint32_t row,
                     const struct weight *const *w, uint32_t n, struct gpu_binding vectors,
                     uint32_t u, uint32_t v)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = rank_of(w[i]), cols4 = w[i]->cols / 4;
        if (!rank) continue;
        struct weigh_columns_params p = {
            .n = rank * cols4, .cols4 = cols4, .u_at = u, .v_at = v, .to = row * cols4
        };
        struct gpu_binding bind[] = { whole(matrix_of(w[i])->adapted.a), vectors, act(to) };
        gpu_dispatch_op(r, KERNEL_WEIGH_COLUMNS, &p, bind, COUNT(bind), divide_up(p.n, 64));
        row += rank;
    }
}

/* The first rows of `to`: w, with its adapters. */
static void put_merged(struct run *r, const struct tensor *to, const struct weight *w)
{
    const struct gpu_weight *m = matrix_of(w);
    const struct gpu_layout *l = &m->parts[0].layout;
    struct merge_rows_params p = { .cols = w->cols,
                                   .rows = w->rows,
                                   .scales = l->scales,
                                   .high = l->high,
                                   .d = l->d,
                                   .rank = m->adapted.rank,
                                   .b_scales = gpu_adapted_scales(&m->adapted, w) };
    struct gpu_binding bind[] = { whole(m->parts[0].buffer), whole(m->adapted.b),
                                  whole(m->adapted.a), act(to) };
    gpu_dispatch_op(r, (uint32_t)KERNEL_MERGE_ROWS_F32 + m->shape, &p, bind, COUNT(bind),
                    divide_up((uint64_t)w->rows * (w->cols / 8), 64));
}

/* What makes z of the readers, `more` rows each: after `own` rows of `stream` for the stream, after `made` rows of `branch` for what the
 * branch is made of. */
static void put_leads(struct run *r, const struct tensor *stream, uint32_t own,
                      struct tensor branch, uint32_t made, uint32_t more, const struct ahead *a)
{
    struct gpu_vectors v = gpu_vectors_of(ops_of(r), a->post_w, a->next_w, NULL);
    put_rows(r, stream, own, a->readers, a->n_readers, v.all, nowhere, v.at[1]);
    /* M = (A next_w post) (W + s B A): what a gradient of those rows would be. */
    struct tensor rows = gpu_scratch(r, SCRATCH_GATE, more, a->branch->rows);
    put_rows(r, &rows, 0, a->readers, a->n_readers, v.all, v.at[0], v.at[1]);
    branch.first = made * branch.cols;
    branch.rows = more;
    branch.size = (uint64_t)more * branch.cols;
    gpu_zero(r, &branch);
    gpu_linear_bwd(r, &branch, &rows, &rows, a->branch);
}

/* Bytes of B and its scales. */
static uint32_t b_bytes(const struct weight *w)
{
    return rank_of(w) * (w->rows + 1) * (uint32_t)sizeof(float);
}

/* B of all readers, one after the other, where one kernel has all of them; without such none. */
static void gather_b(const struct ahead *a, bool such)
{
    struct gpu_lead *l = &matrix_of(a->readers[0])->lead;
    uint32_t n_bytes = 0;
    for (uint32_t i = 0; such && i < a->n_readers; i++) n_bytes += b_bytes(a->readers[i]);
    make_room(&l->b, &l->b_bytes, n_bytes);
    n_bytes = 0;
    for (uint32_t i = 0; such && i < a->n_readers; i++) {
        uint32_t n = b_bytes(a->readers[i]);
        if (n) gpu_buffer_copy(matrix_of(a->readers[i])->adapted.b, 0, l->b, n_bytes, n);
        n_bytes += n;
    }
}

void gpu_look_ahead(struct run *r, const struct ahead *a)
{
    struct gpu_ops *g = ops_of(r);
    const struct weight *with = a->with[0], *branch = a->branch, *reader = a->readers[0];
    bool merge_with = a->small && merges(g, with), merge_branch = a->small && merges(g, branch);
    uint32_t own = merge_with ? with->rows : rank_of_all(a->with, a->n_with), more = 0;
    uint32_t made = merge_branch ? branch->rows : 0;
    if (merge_with == merge_branch && can_lead(g, a)) more = rank_of_all(a->readers, a->n_readers);
    if (!merge_with && !more) own = 0;
    struct tensor stream = lead_room(g, with, own, more, reader, merge_with);
    struct tensor rows = lead_room(g, branch, made, more, reader, merge_branch);
    if (merge_with) put_merged(r, &stream, with);
    if (merge_branch) put_merged(r, &rows, branch);
    if (a->small && a->n_readers > 1) gather_b(a, more > 0);
    if (!more) return;
    if (!merge_with)
        put_rows(r, &stream, 0, a->with, a->n_with, whole(g->unused), nowhere, nowhere);
    put_leads(r, &stream, own, rows, made, more, a);
}

/* Is there room behind `behind`, one row, for what the rows give? */
static const struct gpu_lead *lead_of(const struct run *r, const struct weight *w,
                                      const struct tensor *behind)
{
    const struct gpu_ops *g = ops_of(r);
    const struct gpu_lead *l = &matrix_of(w)->lead;
    uint64_t end = gpu_owed_at(behind) + (uint64_t)l->more, size = behind->size;
    bool fits =
        behind->rows == 1 && !behind->first &&
        end * sizeof(float) <= size * sizeof(float) + gpu_room_behind(g, size * sizeof(float));
    return l->rows && fits && l->at_change == g->n_changes && !r->tap ? l : NULL;
}

const struct gpu_lead *gpu_lead_of(const struct run *r, const struct weight *w,
                                   const struct tensor *behind)
{
    const struct gpu_lead *l = lead_of(r, w, behind);
    return l && !l->merged ? l : NULL;
}

const struct gpu_lead *gpu_merged_of(const struct run *r, const struct weight *w,
                                     const struct tensor *behind)
{
    const struct gpu_lead *l = lead_of(r, w, behind);
    return l && l->merged ? l : NULL;
}

void gpu_led(struct run *r, const struct gpu_lead *l, const struct tensor *behind, bool stream)
{
    struct gpu_led *led = &ops_of(r)->led[stream];
    *led = (struct gpu_led) { .behind = behind->mem, .reader = l->reader };
}

bool gpu_is_led(const struct run *r, const struct join *j, const struct weight *reader)
{
    const struct gpu_led *led = ops_of(r)->led;
    return j->branch && led[0].reader == reader && led[0].behind == j->branch->mem &&
           led[1].reader == reader && led[1].behind == j->x->mem;
}
