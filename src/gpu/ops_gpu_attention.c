/* ops_gpu_attention.c - keys and values on their way to the cache, and attention over it. */
#include "gpu/ops_gpu_impl.h"

void gpu_kv_write(struct run *r, struct kv *kv, const struct tensor *k, const struct tensor *v,
                  uint32_t pos)
{
    struct kv_write_params p = { .rows = k->rows,
                                 .cols = k->cols,
                                 .n_slots = kv->k.rows,
                                 .pos_offset = pos - ops_of(r)->base_pos };
    struct gpu_binding bind[] = { act(k), act(v), act(&kv->k), act(&kv->v) };
    struct gpu_constant half = { KV_WRITE_KV_F16, kv->k.half };
    record_dispatch(&ops_of(r)->rec, KERNEL_KV_WRITE, &half, 1, &p, bind, COUNT(bind),
                    divide_up((uint64_t)k->rows * k->cols / (kv->k.half ? 8 : 4), 64));
}

void gpu_heads_write(struct run *r, struct kv *kv, const struct heads *h, uint32_t pos, float eps)
{
    struct gpu_ops *g = ops_of(r);
    struct heads_write_params p = { .rows = h->k->rows,
                                    .n_head = h->q ? h->n_head : 0,
                                    .n_kv_head = kv->n_kv_head,
                                    .head_dim = kv->head_dim,
                                    .n_pair = h->table->cols / 2,
                                    .n_slots = kv->k.rows,
                                    .pos_offset = pos - g->base_pos,
                                    .v_from_k = h->v_from_k,
                                    .eps = eps };
    /* Without queries something is bound that nobody else has. */
    struct tensor none = h->q ? *h->q : gpu_scratch(r, SCRATCH_FIRST, 1, 4);
    struct gpu_binding bind[] = { act(h->table),
                                  vector(g, h->q ? h->q_norm : h->k_norm),
                                  vector(g, h->k_norm),
                                  act(&none),
                                  act(h->k),
                                  act(h->v),
                                  act(&kv->k),
                                  act(&kv->v) };
    struct gpu_constant constants[] = { { HEADS_WRITE_KV_F16, kv->k.half },
                                        { HEADS_WRITE_WG, g->narrow ? 16 : 64 } };
    record_dispatch(&g->rec, TIERED(g, HEADS_WRITE), constants, COUNT(constants), &p, bind,
                    COUNT(bind), p.rows * (p.n_head + p.n_kv_head));
}

enum {
    SPLIT_ROWS = 4,  /* up to this many rows the history is split over workgroups */
    SPLIT_KEYS = 64, /* positions that are worth a workgroup */
    SPLIT_MOST = 32, /* shares of the history at most */
    SPLIT_HEADS = 8, /* query heads that one workgroup of attention_split takes at most */
};

/* How many shares: enough for the longest history that this program will meet. More would be as right. */
static uint32_t count_splits(const struct gpu_ops *g, uint32_t window)
{
    uint32_t seen = window && window < g->horizon ? window : g->horizon;
    uint32_t n = divide_up(seen, SPLIT_KEYS);
    return n < 1 ? 1 : n > SPLIT_MOST ? SPLIT_MOST : n;
}

static void attention_over_parts(struct run *r, struct tensor *y, const struct tensor *q,
                                 const struct kv *kv, uint32_t n_head, uint32_t window,
                                 uint32_t pos_offset)
{
    uint32_t group = n_head / kv->n_kv_head, heads = 1;
    while (heads < group && heads < SPLIT_HEADS) heads *= 2;
    uint32_t n_split = count_splits(ops_of(r), window);
    struct attention_split_params p = { .rows = q->rows,
                                        .n_head = n_head,
                                        .n_kv_head = kv->n_kv_head,
                                        .head_dim = kv->head_dim,
                                        .n_slots = kv->k.rows,
                                        .window = window,
                                        .pos_offset = pos_offset,
                                        .n_split = n_split };
    struct tensor partial =
        gpu_scratch(r, SCRATCH_FIRST, q->rows * n_head * n_split, kv->head_dim + 4);
    struct gpu_binding bind[] = { act(q), act(&kv->k), act(&kv->v), act(&partial) };
    struct gpu_constant constants[] = { { ATTENTION_SPLIT_HEADS, (float)heads },
                                        { ATTENTION_SPLIT_KV_F16, kv->k.half } };
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_SPLIT, constants, COUNT(constants), &p, bind,
                    COUNT(bind), q->rows * kv->n_kv_head * divide_up(group, heads) * n_split);
    struct attention_merge_params m = { .n_vec = q->rows * n_head,
                                        .head_dim = kv->head_dim,
                                        .n_split = n_split };
    struct gpu_binding merge[] = { act(&partial), act(y) };
    gpu_dispatch_op(r, KERNEL_ATTENTION_MERGE, &m, merge, COUNT(merge), q->rows * n_head);
}

/* On a software device: a workgroup is one subgroup of four lanes, so nobody waits. */
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
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_SUBGROUP, &half, 1, &p, bind, COUNT(bind),
                    divide_up((uint64_t)q->rows * group, 4) * kv->n_kv_head);
}

void gpu_attention(struct run *r, struct tensor *y, const struct tensor *q, const struct kv *kv,
                   uint32_t n_head, uint32_t window, uint32_t pos)
{
    uint32_t pos_offset = pos - ops_of(r)->base_pos;
    if (of_fours(ops_of(r))) {
        attention_of_fours(r, y, q, kv, n_head, window, pos_offset);
        return;
    }
    if (q->rows <= SPLIT_ROWS) {
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
        { ATTENTION_TILE_COLS, (float)divide_up(kv->head_dim, 128) },
        { ATTENTION_TILE_KV_F16, kv->k.half },
    };
    uint32_t group = n_head / kv->n_kv_head;
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_TILE, constants, COUNT(constants), &p, bind,
                    COUNT(bind), divide_up((uint64_t)q->rows * group, 32) * kv->n_kv_head);
}
