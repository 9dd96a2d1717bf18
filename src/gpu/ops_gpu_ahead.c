/* ops_gpu_ahead.c - what a block makes of the stream, known before the stream is: kernels/lib/ahead.wgsl.
 *
 * A block's first products are linear in the stream before the last block and in what that block's last product reads, so both dispatches before
 * can take rows of them along: of A of their adapters, whose z = A h all of them would wait for, or, where the last product is small, of
 * the matrices themselves, which then need no dispatch of their own. The rows are made here, when weights are there and when adapters change. They are
 * kept where the product is (struct gpu_lead). */
#include "gpu/ops_gpu_bwd.h"
#include "gpu/ops_gpu_impl.h"

enum { AHEAD_RANK = 64 }; /* of each matrix; past it z is worth its dispatch */

static const uint32_t nowhere = UINT32_MAX; /* kernels/lib/weighing.wgsl */

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
    return true;
}

/* And has one of them adapters? */
static bool are_adapted(const struct weight *const *w, uint32_t n)
{
    return are_simple(w, n) && rank_of_all(w, n) > 0;
}

/* Is a matrix so small that it may be kept as floats, with its adapters? */
static bool is_small(const struct gpu_ops *g, const struct weight *w)
{
    enum { MERGED_MOST = 1 << 20 }; /* numbers */
    uint64_t n = (uint64_t)w->rows * w->cols;
    return is_simple(w) && matrix_of(w)->n_parts == 1 && n <= MERGED_MOST &&
           2 * n * sizeof(float) <= g->rec.limits.max_binding && !g->narrow;
}

/* Can the products before the readers take rows along for their adapters? */
static bool can_lead(const struct gpu_ops *g, const struct ahead *a)
{
    enum { BUFFERS = 10 };
    const struct weight *b = a->branch;
    uint64_t most = (uint64_t)5 * AHEAD_RANK * (b->cols > b->rows ? b->cols : b->rows) * 4;
    return a->n_readers > 0 && gpu_can_hold(g, b->rows) && gpu_can_hold(g, b->cols) &&
           b->rows <= g->narrow_stream && g->rec.limits.max_storage_buffers >= BUFFERS &&
           most <= g->rec.limits.max_binding && matrix_of(b)->n_parts == 1 && b->rows % 4 == 0 &&
           are_adapted(&b, 1) && are_adapted(a->with, a->n_with) &&
           are_adapted(a->readers, a->n_readers) &&
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
                               uint32_t more, const struct weight *reader)
{
    struct gpu_lead *l = &matrix_of(w)->lead;
    struct tensor t = { .rows = own + more,
                        .cols = w->cols,
                        .size = (uint64_t)(own + more) * w->cols };
    make_room(&l->rows, &l->n_bytes, (uint32_t)t.size * (uint32_t)sizeof(float));
    l->own = own;
    l->more = more;
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

/* The first rows of `to`: w, with its adapters where it has some. */
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
    gpu_buffer none = ops_of(r)->unused;
    struct gpu_binding bind[] = { whole(m->parts[0].buffer), whole(p.rank ? m->adapted.b : none),
                                  whole(p.rank ? m->adapted.a : none), act(to) };
    gpu_dispatch_op(r, (uint32_t)KERNEL_MERGE_ROWS_F32 + m->shape, &p, bind, COUNT(bind),
                    divide_up((uint64_t)w->rows * (w->cols / 8), 64));
}

/* From row `made` of `branch` on: these rows times w, what a gradient of them would be. */
static void put_products(struct run *r, struct tensor branch, uint32_t made,
                         const struct tensor *rows, const struct weight *w)
{
    branch.first = made * branch.cols;
    branch.rows = rows->rows;
    branch.size = (uint64_t)rows->rows * branch.cols;
    gpu_zero(r, &branch);
    gpu_linear_bwd(r, &branch, rows, rows, w);
}

/* Bytes of B and its scales. */
static uint32_t b_bytes(const struct weight *w)
{
    return rank_of(w) * (w->rows + 1) * (uint32_t)sizeof(float);
}

/* B of all readers, one after the other; without such none. */
static void gather_b(const struct gpu_ops *g, const struct ahead *a, bool such)
{
    if (!a->n_readers) return;
    struct gpu_lead *l = &matrix_of(a->readers[0])->lead;
    uint32_t n_bytes = 0;
    for (uint32_t i = 0; such && i < a->n_readers; i++) n_bytes += b_bytes(a->readers[i]);
    make_room(&l->b, &l->b_bytes, n_bytes);
    n_bytes = 0;
    such = such && g->rec.mode == RECORD_PROGRAM;
    for (uint32_t i = 0; such && i < a->n_readers; i++) {
        uint32_t n = b_bytes(a->readers[i]);
        if (n) gpu_buffer_copy(matrix_of(a->readers[i])->adapted.b, 0, l->b, n_bytes, n);
        n_bytes += n;
    }
}

/* Rows for the adapters of the readers. */
static void look_for_adapters(struct run *r, const struct ahead *a)
{
    struct gpu_ops *g = ops_of(r);
    uint32_t more = can_lead(g, a) ? rank_of_all(a->readers, a->n_readers) : 0;
    uint32_t own = more ? rank_of_all(a->with, a->n_with) : 0;
    struct tensor stream = lead_room(g, a->with[0], own, more, a->readers[0]);
    struct tensor branch = lead_room(g, a->branch, 0, more, a->readers[0]);
    gather_b(g, a, more > 0);
    matrix_of(a->with[0])->lead.after = a->branch;
    matrix_of(a->readers[0])->lead.after = a->after;
    if (!more) return;
    struct gpu_vectors v = gpu_vectors_of(g, a->post_w, a->next_w, NULL);
    put_rows(r, &stream, 0, a->with, a->n_with, whole(g->unused), nowhere, nowhere);
    put_rows(r, &stream, own, a->readers, a->n_readers, v.all, nowhere, v.at[1]);
    struct tensor rows = gpu_scratch(r, SCRATCH_GATE, more, a->branch->rows);
    put_rows(r, &rows, 0, a->readers, a->n_readers, v.all, v.at[0], v.at[1]);
    put_products(r, branch, 0, &rows, a->branch);
}

/* ---- whole matrices ---- */

/* What is made ready for a small product and its readers. */
struct plan {
    bool heads;          /* the readers' matrices */
    bool with, branch;   /* these are merged with their adapters, as floats */
    uint32_t z, further; /* rows for the readers' adapters, and for those of the block after them */
};

/* Can what the readers make of the stream be made of what is behind it and behind the branch? */
static bool can_lead_heads(const struct gpu_ops *g, const struct ahead *a)
{
    enum { BUFFERS = 10 };
    const struct weight *b = a->branch;
    struct gpu_picked some[JOIN_LINEARS];
    if (!a->n_readers || g->frugal || !gpu_can_hold(g, b->rows) || b->rows > g->narrow_stream ||
        g->rec.limits.max_storage_buffers < BUFFERS ||
        g->rec.limits.max_workgroup_bytes < GPU_ATTEND_LED_BYTES ||
        gpu_pick(some, a->readers, a->n_readers) != 1)
        return false;
    for (uint32_t i = 0; i < a->n_readers; i++) {
        const struct gpu_weight *m = matrix_of(a->readers[i]);
        if (!gpu_reads_digits(m->shape) || m->n_parts != 1 || a->readers[i]->rows % 8 != 0)
            return false;
    }
    uint64_t bytes = (uint64_t)rows_of_all(a->readers, a->n_readers) * b->cols * sizeof(float);
    return is_small(g, a->with[0]) && is_small(g, b) && b->cols % 8 == 0 &&
           bytes <= g->rec.limits.max_binding && are_simple(a->readers, a->n_readers) &&
           gpu_vectors_of(g, a->post_w, a->next_w, NULL).one;
}

static struct plan plan_of(const struct gpu_ops *g, const struct ahead *a)
{
    const struct weight *with = a->with[0];
    struct plan p = { .heads = can_lead_heads(g, a) };
    if (p.heads) {
        const struct gpu_lead *l = &matrix_of(a->readers[0])->lead;
        p.z = rank_of_all(a->readers, a->n_readers);
        p.further = l->rows && l->at_change == g->n_changes ? l->more : 0;
    }
    bool alike = !p.heads || matrix_of(with)->shape == matrix_of(a->readers[0])->shape;
    bool adapted = p.z || p.further;
    p.with = (rank_of(with) || adapted || !alike) && is_small(g, with);
    p.branch = (rank_of(a->branch) || adapted) && is_small(g, a->branch);
    return p;
}

/* y = x turned, its rows times u and v (places among all vectors), from row `row` of y on. */
static void turn_over(struct run *r, const struct tensor *y, uint32_t row, const struct tensor *x,
                      struct gpu_binding vectors, uint32_t u, uint32_t v)
{
    struct columns_to_rows_params p = {
        .rows = x->rows, .cols = x->cols, .u_at = u, .v_at = v, .to = row * (x->rows / 4)
    };
    struct gpu_binding bind[] = { act(x), vectors, act(y) };
    gpu_dispatch_op(r, KERNEL_COLUMNS_TO_ROWS, &p, bind, COUNT(bind),
                    divide_up((uint64_t)x->rows / 4 * x->cols, 64));
}

/* The readers' matrices times next_w, post and what the branch is made by, `merged`: W X, where the columns of that are rows of X. */
static void put_heads(struct run *r, const struct tensor *merged, const struct ahead *a)
{
    struct gpu_ops *g = ops_of(r);
    const struct weight *b = a->branch;
    const struct gpu_lead *l = &matrix_of(b)->lead;
    struct gpu_vectors v = gpu_vectors_of(g, a->post_w, a->next_w, NULL);
    struct tensor x = gpu_scratch(r, SCRATCH_ACT, b->cols, b->rows), from = *merged;
    struct tensor products = { .mem = (void *)(uintptr_t)l->products };
    enum gpu_tier tier = g->tier;
    uint32_t cut = g->cut;
    from.rows = b->rows;
    turn_over(r, &x, 0, &from, v.all, v.at[0], v.at[1]);
    if (tier > TIER_SUBGROUP) g->tier = TIER_SUBGROUP; /* halves are not enough */
    g->cut = 0; /* by their shape, in a test too: those kernels are there */
    for (uint32_t i = 0, first = 0; i < a->n_readers; first += a->readers[i++]->rows) {
        struct tensor y = gpu_scratch(r, SCRATCH_WIDE, x.rows, a->readers[i]->rows);
        gpu_linear(r, &y, &x, a->readers[i]);
        turn_over(r, &products, first, &y, v.all, nowhere, nowhere);
    }
    g->tier = tier;
    g->cut = cut;
}

/* Rows behind those of the merged matrices: of the readers' adapters, and those that are ready for the block after them. */
static void put_further(struct run *r, const struct tensor *stream, const struct tensor *branch,
                        const struct plan *plan, const struct ahead *a)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_vectors v = gpu_vectors_of(g, a->post_w, a->next_w, NULL);
    uint32_t own = a->with[0]->rows, cols4 = a->branch->rows / 4, n = plan->further;
    put_rows(r, stream, own, a->readers, a->n_readers, v.all, nowhere, v.at[1]);
    if (!n) return;
    struct gpu_binding ready = gpu_more_of(&matrix_of(a->readers[0])->lead, a->readers[0]);
    struct tensor rows = gpu_scratch(r, SCRATCH_GATE, n, a->branch->rows);
    struct weigh_columns_params copy = { .n = n * cols4,
                                         .cols4 = cols4,
                                         .u_at = nowhere,
                                         .v_at = nowhere,
                                         .to = (own + plan->z) * cols4 };
    struct weigh_columns_params weighed = copy;
    weighed.u_at = v.at[0];
    weighed.to = 0;
    struct gpu_binding bind[] = { ready, v.all, act(stream) };
    gpu_dispatch_op(r, KERNEL_WEIGH_COLUMNS, &copy, bind, COUNT(bind), divide_up(copy.n, 64));
    bind[2] = act(&rows);
    gpu_dispatch_op(r, KERNEL_WEIGH_COLUMNS, &weighed, bind, COUNT(bind), divide_up(copy.n, 64));
    put_products(r, *branch, a->branch->rows, &rows, a->branch);
}

/* Two small products: merged with their adapters; and with the readers' matrices behind them. */
static void look_for_heads(struct run *r, const struct ahead *a)
{
    struct gpu_ops *g = ops_of(r);
    const struct weight *with = a->with[0], *b = a->branch, *reader = a->readers[0];
    struct gpu_lead *of_with = &matrix_of(with)->lead, *of_branch = &matrix_of(b)->lead;
    struct plan plan = plan_of(g, a);
    of_with->merged = plan.with;
    of_with->n_heads = plan.heads ? a->n_readers : 0;
    of_with->next_w = a->next_w;
    for (uint32_t i = 0; i < a->n_readers; i++) of_with->heads[i] = a->readers[i];
    of_branch->merged = plan.branch;
    of_branch->n_products = plan.heads ? rows_of_all(a->readers, a->n_readers) : 0;
    make_room(&of_branch->products, &of_branch->product_bytes,
              of_branch->n_products * b->cols * (uint32_t)sizeof(float));
    struct tensor stream =
        lead_room(g, with, plan.with ? with->rows : 0, plan.z + plan.further, reader);
    struct tensor rows = lead_room(g, b, plan.branch ? b->rows : 0, plan.further, reader);
    gather_b(g, a, plan.heads && plan.z);
    if (plan.with) put_merged(r, &stream, with);
    if (plan.branch) put_merged(r, &rows, b);
    if (!plan.heads) return;
    if (plan.z || plan.further) put_further(r, &stream, &rows, &plan, a);
    struct tensor merged = rows;
    if (!plan.branch) {
        merged = gpu_scratch(r, SCRATCH_UP, b->rows, b->cols);
        put_merged(r, &merged, b);
    }
    put_heads(r, &merged, a);
}

void gpu_look_ahead(struct run *r, const struct ahead *a)
{
    if (a->small) look_for_heads(r, a);
    else look_for_adapters(r, a);
}

const struct gpu_lead *gpu_lead_of(const struct run *r, const struct weight *w,
                                   const struct tensor *behind)
{
    const struct gpu_ops *g = ops_of(r);
    const struct gpu_lead *l = &matrix_of(w)->lead;
    uint64_t n = rows_of_all(l->heads, l->n_heads) + l->n_products + l->more;
    uint64_t end = gpu_owed_at(behind) + n, size = behind->size;
    bool fits =
        behind->rows == 1 && !behind->first &&
        end * sizeof(float) <= size * sizeof(float) + gpu_room_behind(g, size * sizeof(float));
    bool any = l->rows || l->n_heads || l->n_products;
    return any && fits && l->at_change == g->n_changes && !r->tap ? l : NULL;
}

void gpu_led(struct run *r, const struct gpu_lead *l, const struct tensor *behind, bool stream)
{
    struct gpu_led *led = &ops_of(r)->led[stream];
    *led = (struct gpu_led) { .behind = behind->mem, .reader = l->reader, .lead = l };
}

bool gpu_is_led(const struct run *r, const struct join *j, const struct weight *reader)
{
    const struct gpu_led *led = ops_of(r)->led;
    return j->branch && led[0].reader == reader && led[0].behind == j->branch->mem &&
           led[1].reader == reader && led[1].behind == j->x->mem;
}
