/* ops_gpu_attention.c - attention over the cache. For one row also what comes right before it
 * (norms, rotation, the cache) and after it (the sum of its splits, the output's product). */
#include <stddef.h>

#include "gpu/ops_gpu_bwd.h"
#include "gpu/ops_gpu_impl.h"

enum {
    SPLIT_HEADS = 8, /* query heads that one workgroup of attention_split takes at most */
    MERGE_COLS = 64, /* columns that a workgroup of attn_reduce has */
};

/* How a row's attention is divided into workgroups, and where their results go. */
struct splits {
    uint32_t n_split, heads, n_groups;
    struct tensor partial;
    const struct weight
        *reader; /* the product that reads the result, where the splits compute its z; or NULL */
};

enum { SPLIT_RANK = 64 }; /* of such a product's adapters, at most */

/* Positions that a row of this program can see. */
static uint32_t most_seen(const struct gpu_ops *g, uint32_t window)
{
    return window && window < g->horizon ? window : g->horizon;
}

/* A short history is divided as finely as possible, one head a workgroup: heads that share keys
 * then read them from the cache. Where that makes too many workgroups, heads of the same keys share
 * one; after that splits become longer. The splits are enough for the longest history that this
 * program will meet; their number does not change the result. */
static struct splits splits_of(struct run *r, const struct tensor *q, const struct kv *kv,
                               uint32_t n_head, uint32_t window)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_tuning *by = g->tuning;
    uint32_t seen = most_seen(g, window);
    uint32_t group = n_head / kv->n_kv_head, pieces = divide_up(seen ? seen : 1, by->split_keys);
    struct splits s = { .heads = 1 };
    uint32_t vectors = q->rows * kv->n_kv_head;
    while (s.heads < group && s.heads < SPLIT_HEADS &&
           (g->tiling ? s.heads < 1U << (g->tiling - 1)
                      : vectors * divide_up(group, s.heads) * pieces > by->split_groups))
        s.heads *= 2;
    uint32_t rest = divide_up(by->split_groups, vectors * divide_up(group, s.heads));
    s.n_split = pieces < rest ? pieces : rest;
    /* Splits of two tiles cost less than merging twice as many splits. */
    if (pieces <= 2 * by->merged_splits && s.n_split > divide_up(pieces, 2))
        s.n_split = divide_up(pieces, 2);
    if (s.n_split > by->split_most) s.n_split = by->split_most;
    s.n_groups = vectors * divide_up(group, s.heads) * s.n_split;
    s.partial =
        gpu_scratch(r, SCRATCH_FIRST, q->rows * n_head * s.n_split, kv->head_dim + 4 + SPLIT_RANK);
    return s;
}

/* Add up the splits. reader: the linear that reads y, where that is known; then each workgroup adds
 * its part of z = A y. */
static struct gpu_z_parts reduce_splits(struct run *r, struct tensor *y, const struct splits *s,
                                        uint32_t n_vec, uint32_t head_dim,
                                        const struct weight *reader)
{
    struct gpu_ops *g = ops_of(r);
    bool can = gpu_makes_ready(g, y->rows, y->cols) && head_dim % 16 == 0;
    const struct tensor *ready = can ? gpu_ready_room(y) : NULL;
    uint32_t n_groups = n_vec * divide_up(head_dim, MERGE_COLS);
    bool adapts = ready && y->rows == 1 && gpu_adapts_parts(reader, n_groups);
    struct attn_reduce_params p = { .n_vec = n_vec,
                                    .n_head = n_vec / y->rows,
                                    .head_dim = head_dim,
                                    .n_split = s->n_split,
                                    .makes_ready = ready != NULL };
    struct gpu_z_parts z = { 0 };
    struct gpu_binding bind[] = { act(&s->partial), act(y),
                                  ready ? act(ready) : whole(g->unread[0]), whole(g->unused) };
    if (adapts) {
        gpu_place_z(&z.z, ready, &reader, 1);
        p.rank = z.z.cols;
        p.z_at = z.z.first;
        z.z.size *= n_groups;
        z.n = n_groups;
        bind[3] = whole(((const struct gpu_weight *)reader->mem)->adapted.a);
    }
    struct gpu_constant lora = { ATTN_REDUCE_LORA, adapts };
    record_dispatch(&g->rec, (uint32_t)KERNEL_ATTN_REDUCE | ACTS(g, ATTN_REDUCE), &lora, 1, &p,
                    bind, COUNT(bind), n_groups);
    return z;
}

/* Threads of a workgroup of attn_decode or attention_split, and f32 of its memory:
 * kernels/lib/attention_split.wgsl and attn_decode.wgsl. */
struct attn_workgroup {
    uint32_t wg, spread, queries;
};

/* Twice as many threads take half as many tiles one after the other. That pays where a split is
 * long: with several heads, or where one split is all that a head sees. A device with too little
 * workgroup memory keeps the usual number. */
static struct attn_workgroup attn_workgroup_of(const struct gpu_ops *g, uint32_t heads, bool alone)
{
    enum { USUAL = 256, HEAD_QUERIES = 128, SUMS = 2448 };
    const uint32_t most = g->tuning->wide_attend_wg;
    const struct gpu_limits *l = &g->rec.limits;
    struct attn_workgroup usual = { USUAL, 8 * USUAL + 256, 8 * HEAD_QUERIES };
    struct attn_workgroup wide = { most, 4 * most * (heads > 1 ? 2 : 1) + 256,
                                   HEAD_QUERIES * heads };
    uint32_t bytes = 4 * (wide.spread + 2 * most) + 16 * wide.queries + SUMS;
    bool fits = l->max_invocations >= most && bytes <= l->max_workgroup_bytes;
    return fits && (heads > 1 || alone) ? wide : usual;
}

/* The sizes of heads for which kernels are compiled, as the self-test has them; 0: the kernel reads
 * the size. */
static uint32_t known_dim(uint32_t head_dim)
{
    bool usual = head_dim >= 32 && head_dim <= 512 && (head_dim & (head_dim - 1)) == 0;
    return usual ? head_dim : 0;
}

static void attention_over_parts(struct run *r, struct tensor *y, const struct tensor *q,
                                 const struct kv *kv, uint32_t n_head, uint32_t window,
                                 uint32_t pos_offset)
{
    struct splits s = splits_of(r, q, kv, n_head, window);
    struct attention_split_params p = { .rows = q->rows,
                                        .n_head = n_head,
                                        .n_kv_head = kv->n_kv_head,
                                        .head_dim = kv->head_dim,
                                        .n_slots = kv->k.rows,
                                        .window = window,
                                        .pos_offset = pos_offset,
                                        .n_split = s.n_split };
    struct gpu_binding bind[] = { act(q), act(&kv->k), act(&kv->v), act(&s.partial) };
    struct attn_workgroup workgroup = attn_workgroup_of(ops_of(r), s.heads, false);
    struct gpu_constant constants[] = { { ATTENTION_SPLIT_HEADS, (float)s.heads },
                                        { ATTENTION_SPLIT_WG, (float)workgroup.wg },
                                        { ATTENTION_SPLIT_SPREAD, (float)workgroup.spread },
                                        { ATTENTION_SPLIT_KV_F16, kv->k.half },
                                        { ATTENTION_SPLIT_DIM, (float)known_dim(kv->head_dim) } };
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_SPLIT, constants, COUNT(constants), &p, bind,
                    COUNT(bind), s.n_groups);
    reduce_splits(r, y, &s, q->rows * n_head, kv->head_dim, NULL);
}

static const struct gpu_adapted *adapters_of(const struct weight *w)
{
    return w ? &((const struct gpu_weight *)w->mem)->adapted : NULL;
}

/* Is all that one row's heads see short enough for one split, and does the product with w read
 * ready rows? */
static bool can_attend_single(struct run *r, const struct heads *h, const struct kv *kv,
                              uint32_t window, const struct weight *w)
{
    struct gpu_ops *g = ops_of(r);
    return h->k && most_seen(g, window) <= g->tuning->single_keys && kv->head_dim % 16 == 0 &&
           !gpu_can_share_row(g, w->cols) && gpu_makes_ready(g, 1, w->cols) &&
           gpu_whole_no_lora(w) && gpu_is_codes(((const struct gpu_weight *)w->mem)->shape);
}

/* One row, from projections to the splits of its attention in one dispatch. alone: where the only
 * split goes, ready; NULL: there are several. */
static void attend_new(struct run *r, const struct splits *s, struct kv *kv, const struct heads *h,
                       uint32_t window, uint32_t pos_offset, float eps, const struct tensor *alone)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_adapted *lora = adapters_of(s->reader);
    struct gpu_vectors v = gpu_vectors_of(g, h->q_norm, h->k_norm, NULL);
    struct attn_decode_lora_params p = { .rows = 1,
                                         .n_head = h->n_head,
                                         .n_kv_head = kv->n_kv_head,
                                         .head_dim = kv->head_dim,
                                         .n_slots = kv->k.rows,
                                         .window = window,
                                         .pos_offset = pos_offset,
                                         .n_split = s->n_split,
                                         .n_pair = h->table->cols / 2,
                                         .q_weight_at = v.at[0],
                                         .k_weight_at = v.at[1],
                                         .v_from_k = h->v_from_k,
                                         .eps = eps,
                                         .rank = lora ? lora->rank : 0 };
    _Static_assert(offsetof(struct attn_decode_lora_params, eps) ==
                           offsetof(struct attn_decode_params, eps) &&
                       (int)ATTN_DECODE_HEADS == ATTN_DECODE_LORA_HEADS &&
                       (int)ATTN_DECODE_KV_F16 == ATTN_DECODE_LORA_KV_F16 &&
                       (int)ATTN_DECODE_DIM == ATTN_DECODE_LORA_DIM &&
                       (int)ATTN_DECODE_WG == ATTN_DECODE_LORA_WG &&
                       (int)ATTN_DECODE_SINGLE_HEADS == ATTN_DECODE_LORA_HEADS &&
                       (int)ATTN_DECODE_SINGLE_KV_F16 == ATTN_DECODE_LORA_KV_F16 &&
                       (int)ATTN_DECODE_SINGLE_DIM == ATTN_DECODE_LORA_DIM &&
                       (int)ATTN_DECODE_SINGLE_WG == ATTN_DECODE_LORA_WG &&
                       (int)ATTN_DECODE_SPREAD == ATTN_DECODE_LORA_SPREAD &&
                       (int)ATTN_DECODE_QUERIES == ATTN_DECODE_LORA_QUERIES &&
                       (int)ATTN_DECODE_SINGLE_SPREAD == ATTN_DECODE_LORA_SPREAD &&
                       (int)ATTN_DECODE_SINGLE_QUERIES == ATTN_DECODE_LORA_QUERIES,
                   "attn_decode* have the same overrides");
    struct gpu_binding bind[] = { act(h->table),   v.all,
                                  act(h->q),       act(h->k),
                                  act(h->v),       act(&kv->k),
                                  act(&kv->v),     whole(lora ? lora->a : g->unused),
                                  act(&s->partial) };
    if (!lora) bind[7] = bind[8]; /* attend has no A */
    if (alone) bind[7] = act(alone);
    struct attn_workgroup workgroup = attn_workgroup_of(g, s->heads, alone != NULL);
    struct gpu_constant constants[] = { { ATTN_DECODE_LORA_HEADS, (float)s->heads },
                                        { ATTN_DECODE_LORA_WG, (float)workgroup.wg },
                                        { ATTN_DECODE_LORA_SPREAD, (float)workgroup.spread },
                                        { ATTN_DECODE_LORA_QUERIES, (float)workgroup.queries },
                                        { ATTN_DECODE_LORA_KV_F16, kv->k.half },
                                        { ATTN_DECODE_LORA_DIM, (float)known_dim(kv->head_dim) },
                                        { ATTN_DECODE_LORA_LORA, 1 } };
    uint32_t kernel = lora    ? (uint32_t)KERNEL_ATTN_DECODE_LORA
                      : alone ? (uint32_t)KERNEL_ATTN_DECODE_SINGLE | ACTS(g, ATTN_DECODE_SINGLE)
                              : (uint32_t)KERNEL_ATTN_DECODE;
    record_dispatch(&g->rec, kernel, constants, COUNT(constants) - (lora ? 0 : 1), &p, bind,
                    COUNT(bind) - (lora ? 0 : 1), s->n_groups);
}

/* attn_decode_single: one row with new keys where a head is one split, so that nothing is merged. o
 * is written ready, and not as f32. */
static void attend_single(struct run *r, const struct tensor *o, struct kv *kv,
                          const struct heads *h, uint32_t window, uint32_t pos, float eps)
{
    struct splits s = { .n_split = 1, .heads = 1, .n_groups = h->n_head };
    attend_new(r, &s, kv, h, window, pos - ops_of(r)->base_pos, eps, gpu_ready_room(o));
}

/* attn_decode_shared: the same with the splits of a layer that reads another layer's cache. */
static void attend_shared(struct run *r, const struct splits *s, const struct kv *kv,
                          const struct heads *h, uint32_t window, uint32_t pos_offset, float eps)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_adapted *lora = adapters_of(s->reader);
    struct attn_decode_shared_params p = { .rows = 1,
                                           .n_head = h->n_head,
                                           .n_kv_head = kv->n_kv_head,
                                           .head_dim = kv->head_dim,
                                           .n_slots = kv->k.rows,
                                           .window = window,
                                           .pos_offset = pos_offset,
                                           .n_split = s->n_split,
                                           .n_pair = h->table->cols / 2,
                                           .rank = lora ? lora->rank : 0,
                                           .eps = eps };
    struct gpu_binding bind[] = { act(h->table),   vector(g, h->q_norm),
                                  act(h->q),       act(&kv->k),
                                  act(&kv->v),     whole(lora ? lora->a : g->unused),
                                  act(&s->partial) };
    struct attn_workgroup workgroup = attn_workgroup_of(g, s->heads, false);
    struct gpu_constant constants[] = { { ATTN_DECODE_SHARED_HEADS, (float)s->heads },
                                        { ATTN_DECODE_SHARED_WG, (float)workgroup.wg },
                                        { ATTN_DECODE_SHARED_SPREAD, (float)workgroup.spread },
                                        { ATTN_DECODE_SHARED_QUERIES, (float)workgroup.queries },
                                        { ATTN_DECODE_SHARED_KV_F16, kv->k.half },
                                        { ATTN_DECODE_SHARED_LORA, lora != NULL },
                                        { ATTN_DECODE_SHARED_DIM,
                                          (float)known_dim(kv->head_dim) } };
    record_dispatch(&g->rec, KERNEL_ATTN_DECODE_SHARED, constants, COUNT(constants), &p, bind,
                    COUNT(bind), s->n_groups);
}

enum {
    ATTN_DECODE_BYTES =
        30100, /* workgroup memory of attend and attn_decode_shared, with 256 threads */
    ATTN_DECODE_DIM_MOST = 512, /* of a head whose queries are in workgroup memory */
    ATTN_DECODE_BUFFERS = 8,
    ATTN_DECODE_LORA_BUFFERS = 9,
};

/* On a software device a workgroup is one subgroup of four lanes, which needs no barrier. */
static void attention_of_fours(struct run *r, struct tensor *y, const struct tensor *q,
                               const struct kv *kv, uint32_t n_head, uint32_t window,
                               uint32_t pos_offset)
{
    uint32_t group = n_head / kv->n_kv_head;
    struct attention_params p = { .rows = q->rows,
                                  .n_head = n_head,
                                  .n_kv_head = kv->n_kv_head,
                                  .head_dim = kv->head_dim,
                                  .n_slots = kv->k.rows,
                                  .window = window,
                                  .pos_offset = pos_offset };
    struct gpu_binding bind[] = { act(q), act(&kv->k), act(&kv->v), act(y) };
    struct gpu_constant half = { ATTENTION_KV_F16, kv->k.half };
    record_dispatch(&ops_of(r)->rec, (uint32_t)KERNEL_ATTENTION | ATTENTION_TIER_SUBGROUP, &half, 1,
                    &p, bind, COUNT(bind), divide_up((uint64_t)q->rows * group, 4) * kv->n_kv_head);
}

void gpu_attention(struct run *r, struct tensor *y, const struct tensor *q, const struct kv *kv,
                   uint32_t n_head, uint32_t window, uint32_t pos)
{
    uint32_t pos_offset = pos - ops_of(r)->base_pos;
    if (kv->starts) { /* training: a whole sequence */
        gpu_attention_packed(r, y, q, kv, n_head, window);
        return;
    }
    if (of_fours(ops_of(r))) {
        attention_of_fours(r, y, q, kv, n_head, window, pos_offset);
        return;
    }
    if (q->rows <= ops_of(r)->tuning->split_rows) {
        attention_over_parts(r, y, q, kv, n_head, window, pos_offset);
        return;
    }
    struct attention_tile_params p = { .rows = q->rows,
                                       .n_head = n_head,
                                       .n_kv_head = kv->n_kv_head,
                                       .head_dim = kv->head_dim,
                                       .n_slots = kv->k.rows,
                                       .window = window,
                                       .pos_offset = pos_offset };
    struct gpu_binding bind[] = { act(q), act(&kv->k), act(&kv->v), act(y) };
    struct gpu_constant constants[] = {
        { ATTENTION_TILE_COLS, (float)divide_up(kv->head_dim, 256) },
        { ATTENTION_TILE_KV_F16, kv->k.half },
    };
    uint32_t group = n_head / kv->n_kv_head;
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_TILE, constants, COUNT(constants), &p, bind,
                    COUNT(bind), divide_up((uint64_t)q->rows * group, 32) * kv->n_kv_head);
}

/* Can keys be written and read in one dispatch? With several rows they cannot: a row's new keys are
 * read by the rows after it. */
static bool in_one_step(const struct gpu_ops *g, const struct heads *h, const struct kv *kv)
{
    return h->q->rows == 1 && !of_fours(g) && kv->head_dim % 8 == 0 &&
           kv->head_dim <= ATTN_DECODE_DIM_MOST &&
           g->rec.limits.max_workgroup_bytes >= ATTN_DECODE_BYTES &&
           g->rec.limits.max_storage_buffers >= ATTN_DECODE_BUFFERS &&
           gpu_vectors_of(g, h->q_norm, h->k_norm, NULL).one;
}

/* The splits of one row's attention. */
static void attend_one(struct run *r, const struct splits *s, struct kv *kv, const struct heads *h,
                       uint32_t window, uint32_t pos, float eps)
{
    uint32_t pos_offset = pos - ops_of(r)->base_pos;
    if (h->k) attend_new(r, s, kv, h, window, pos_offset, eps, NULL);
    else attend_shared(r, s, kv, h, window, pos_offset, eps);
}

void gpu_attend(struct run *r, struct tensor *y, struct kv *kv, const struct heads *h,
                uint32_t window, uint32_t pos, float eps)
{
    if (in_one_step(ops_of(r), h, kv)) {
        struct splits s = splits_of(r, h->q, kv, h->n_head, window);
        attend_one(r, &s, kv, h, window, pos, eps);
        reduce_splits(r, y, &s, h->n_head, kv->head_dim, NULL);
        return;
    }
    if (h->k) gpu_heads_write(r, kv, h, pos, eps);
    else gpu_head_norm_rope(r, h->q, h->q_norm, h->table, h->n_head, eps);
    gpu_attention(r, y, h->q, kv, h->n_head, window, pos);
}

/* Row groups of the product that merges splits. With adapters every workgroup adds up z as well, so
 * fewer workgroups take more rows each. */
static struct row_groups reduce_groups(const struct gpu_ops *g, uint32_t cols, bool adapted)
{
    bool few = cols <= g->tuning->merge_one_row;
    return (struct row_groups) { GPU_SHARED_WG, g->tuning->merge_lanes[adapted], few ? 1 : 2 };
}

static void attn_reduce_linear(struct run *r, const struct tensor *y, const struct splits *s,
                               uint32_t head_dim, const struct weight *w)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_weight *gw = w->mem;
    const struct gpu_part *part = &gw->parts[0];
    struct attn_reduce_linear_params p = { .cols = w->cols,
                                           .rows = w->rows,
                                           .head_dim = head_dim,
                                           .n_split = s->n_split,
                                           .scales = part->layout.scales,
                                           .high = part->layout.high,
                                           .d = part->layout.d };
    struct gpu_binding bind[] = { act(&s->partial), whole(part->buffer), act(y) };
    struct row_groups t = reduce_groups(g, w->cols, false);
    struct gpu_constant constants[] = { { ATTN_REDUCE_LINEAR_WG, (float)t.wg },
                                        { ATTN_REDUCE_LINEAR_LANES, (float)t.lanes },
                                        { ATTN_REDUCE_LINEAR_R, (float)t.rows },
                                        { ATTN_REDUCE_LINEAR_SHARED_ROW,
                                          (float)gpu_shared_row(w->cols) } };
    record_dispatch(&g->rec, READY(g, ATTN_REDUCE_LINEAR, gw->shape), constants, COUNT(constants),
                    &p, bind, COUNT(bind), divide_up(p.rows, rows_of_workgroup(t)));
}

/* The same of a matrix with adapters, where the splits have z. */
static void merge_linear_z(struct run *r, const struct tensor *y, const struct splits *s,
                           uint32_t head_dim, const struct weight *w)
{
    struct gpu_ops *g = ops_of(r);
    const struct gpu_weight *gw = w->mem;
    const struct gpu_part *part = &gw->parts[0];
    struct row_groups t = reduce_groups(g, w->cols, true);
    struct attn_reduce_linear_z_params p = { .cols = w->cols,
                                             .rows = w->rows,
                                             .head_dim = head_dim,
                                             .n_split = s->n_split,
                                             .scales = part->layout.scales,
                                             .high = part->layout.high,
                                             .d = part->layout.d,
                                             .rank = gw->adapted.rank };
    struct gpu_binding bind[] = { act(&s->partial), whole(part->buffer), whole(gw->adapted.b),
                                  act(y) };
    struct gpu_constant constants[] = { { ATTN_REDUCE_LINEAR_Z_WG, (float)t.wg },
                                        { ATTN_REDUCE_LINEAR_Z_LANES, (float)t.lanes },
                                        { ATTN_REDUCE_LINEAR_Z_R, (float)t.rows },
                                        { ATTN_REDUCE_LINEAR_Z_SHARED_ROW,
                                          (float)gpu_shared_row(w->cols) } };
    record_dispatch(&g->rec, READY(g, ATTN_REDUCE_LINEAR_Z, gw->shape), constants, COUNT(constants),
                    &p, bind, COUNT(bind), divide_up(p.rows, rows_of_workgroup(t)));
}

/* Can every workgroup of the product with w merge the splits? */
static bool can_reduce(const struct gpu_ops *g, const struct splits *s, const struct kv *kv,
                       const struct weight *w)
{
    return gpu_can_share_row(g, w->cols) && kv->head_dim % 16 == 0 &&
           s->n_split <= g->tuning->merged_splits;
}

/* Can the splits also compute z = A o, parts of which lie behind each of them? */
static bool can_share_z(const struct gpu_ops *g, const struct splits *s, const struct kv *kv,
                        const struct tensor *y, const struct weight *w)
{
    const struct gpu_weight *gw = w->mem;
    uint32_t rank = gw->adapted.rank;
    return can_reduce(g, s, kv, w) && gpu_is_codes(gw->shape) && rank > 0 && rank <= SPLIT_RANK &&
           rank <= kv->head_dim / 4 && s->heads == 1 &&
           w->cols / kv->head_dim * rank <= 4 * GPU_SHARED_WG && !gpu_drops(w) &&
           gw->n_parts == 1 && w->rows % 4 == 0 && y->cols == w->rows && !y->first &&
           g->rec.limits.max_storage_buffers >= ATTN_DECODE_LORA_BUFFERS;
}

/* Where there are few splits, every workgroup of the product merges them for itself, which saves a
 * dispatch. Where each head is one split, nothing is merged. */
void gpu_attend_linear(struct run *r, struct tensor *y, struct tensor *o, struct kv *kv,
                       const struct heads *h, uint32_t window, uint32_t pos, float eps,
                       const struct weight *w)
{
    struct gpu_ops *g = ops_of(r);
    uint32_t rows = h->q->rows;
    struct tensor room, out = *o;
    if (gpu_makes_ready(g, rows, o->cols)) {
        room = gpu_ready_scratch(r, SCRATCH_READY, rows, o->cols);
        out.ready = &room;
    }
    if (!in_one_step(g, h, kv)) {
        gpu_attend(r, &out, kv, h, window, pos, eps);
        gpu_linear(r, y, &out, w);
        return;
    }
    if (can_attend_single(r, h, kv, window, w)) {
        attend_single(r, &out, kv, h, window, pos, eps);
        gpu_linear(r, y, &out, w);
        return;
    }
    struct splits s = splits_of(r, h->q, kv, h->n_head, window);
    if (can_share_z(g, &s, kv, y, w)) {
        s.reader = w;
        attend_one(r, &s, kv, h, window, pos, eps);
        merge_linear_z(r, y, &s, kv->head_dim, w);
        return;
    }
    attend_one(r, &s, kv, h, window, pos, eps);
    if (can_reduce(g, &s, kv, w) && gpu_whole_no_lora(w)) {
        attn_reduce_linear(r, y, &s, kv->head_dim, w);
        return;
    }
    struct gpu_z_parts z = reduce_splits(r, &out, &s, h->n_head, kv->head_dim, w);
    if (z.n) gpu_linear_z_parts(r, y, &out, w, &z);
    else gpu_linear(r, y, &out, w);
}
