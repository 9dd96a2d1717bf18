/* ops_gpu_kv.c - keys and values on their way to the cache. */
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
    /* Without queries a buffer is bound that no other binding of this dispatch has. */
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
                                        { HEADS_WRITE_WG, gpu_sum_wg(g, 64) } };
    record_dispatch(&g->rec, TIERED(g, HEADS_WRITE), constants, COUNT(constants), &p, bind,
                    COUNT(bind), p.rows * (p.n_head + p.n_kv_head));
}
