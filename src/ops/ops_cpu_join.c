/* ops_cpu_join.c - ops made of other ops: heads on their way to attention; the end of a block, the
 * start of the next one and its first products; gate and up. */
#include <string.h>

#include "ops/ops_cpu.h"

void cpu_linear_gelu_mul(struct run *r, struct tensor *y, const struct tensor *x,
                         const struct weight *w, const struct tensor *b, uint32_t col)
{
    r->be->linear(r, y, x, w);
    r->be->gelu_mul(r, y, b, col);
}

void cpu_gate_up(struct run *r, struct tensor *y, struct tensor *up, const struct tensor *x,
                 const struct weight *gate_w, const struct weight *up_w)
{
    r->be->linear(r, up, x, up_w);
    cpu_linear_gelu_mul(r, y, x, gate_w, up, 0);
}

void cpu_heads_write(struct run *r, struct kv *kv, const struct heads *h, uint32_t pos, float eps)
{
    const struct backend *be = r->be;
    const struct weight none = { 0 };
    if (h->v_from_k) memcpy(h->v->mem, h->k->mem, (size_t)h->k->rows * h->k->cols * sizeof(float));
    if (h->q) be->head_norm_rope(r, h->q, h->q_norm, h->table, h->n_head, eps);
    be->head_norm_rope(r, h->k, h->k_norm, h->table, kv->n_kv_head, eps);
    be->head_norm_rope(r, h->v, &none, NULL, kv->n_kv_head, eps);
    be->kv_write(r, kv, h->k, h->v, pos);
}

void cpu_attend(struct run *r, struct tensor *y, struct kv *kv, const struct heads *h,
                uint32_t window, uint32_t pos, float eps)
{
    if (h->k) cpu_heads_write(r, kv, h, pos, eps);
    else r->be->head_norm_rope(r, h->q, h->q_norm, h->table, h->n_head, eps);
    r->be->attention(r, y, h->q, kv, h->n_head, window, pos);
}

void cpu_norm_sum(struct run *r, struct tensor *y, const struct tensor *a, const struct weight *a_w,
                  const struct tensor *b, const struct weight *b_w, float eps)
{
    r->be->rms_norm(r, y, a, a_w, eps);
    r->be->add_norm(r, y, b, b_w, eps);
}

void cpu_join(struct run *r, const struct join *j)
{
    const struct backend *be = r->be;
    memcpy(j->to->mem, j->x->mem, (size_t)j->x->rows * j->x->cols * sizeof(float));
    if (j->branch) be->add_norm(r, j->to, j->branch, j->w, j->eps);
    if (weight_exists(j->scale)) be->scale(r, j->to, j->scale);
    if (weight_exists(j->next_w)) be->rms_norm(r, j->norm, j->to, j->next_w, j->eps);
}

void cpu_join_linears(struct run *r, const struct join *j, struct tensor *const *y,
                      const struct weight *const *w, uint32_t n)
{
    struct join one = op_join_sum(r, j);
    cpu_join(r, &one);
    for (uint32_t i = 0; i < n; i++) r->be->linear(r, y[i], join_result(j), w[i]);
}

void cpu_join_linear_gelu_mul(struct run *r, const struct join *j, struct tensor *y,
                              const struct weight *w, const struct tensor *b, uint32_t col)
{
    cpu_join(r, j);
    r->be->linear_gelu_mul(r, y, join_result(j), w, b, col);
}

void cpu_join_gate_up(struct run *r, const struct join *j, struct tensor *y, struct tensor *up,
                      const struct weight *gate_w, const struct weight *up_w)
{
    cpu_join(r, j);
    r->be->gate_up(r, y, up, join_result(j), gate_w, up_w);
}
