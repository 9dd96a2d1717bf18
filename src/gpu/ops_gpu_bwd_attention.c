/* ops_gpu_bwd_attention.c - the gradients of attention, and of the head with its loss, as
 * dispatches.
 *
 * Both process their rows in runs, so that the probabilities in memory are bounded however long the
 * sequence and however large the vocabulary.
 */
#include "gpu/ops_gpu_bwd.h"

/* ---- attention ---- */

/* A run of query rows and the keys that they see. */
static struct attention_bwd_scores_params run_of(const struct tensor *q, const struct kv *kv,
                                                 uint32_t n_head, uint32_t window, uint32_t row0,
                                                 uint32_t rows)
{
    uint32_t key0 = window && row0 >= window ? (row0 - window + 1) / 4 * 4 : 0;
    return (struct attention_bwd_scores_params) { .rows = rows,
                                                  .row0 = row0,
                                                  .key0 = key0,
                                                  .span = divide_up(row0 + rows - key0, 4) * 4,
                                                  .n_key = q->rows,
                                                  .n_head = n_head,
                                                  .n_kv_head = kv->n_kv_head,
                                                  .head_dim = kv->head_dim,
                                                  .window = window };
}

/* Rows of a run: as many as the memory allows. */
static uint32_t run_rows(uint32_t n, uint32_t n_head, uint32_t window)
{
    uint32_t rows = n;
    for (;;) {
        uint32_t seen = window && window + rows < n ? window + rows + 8 : n + 4;
        if (rows <= 64 || (uint64_t)n_head * rows * seen * 4 <= GPU_SCORES_BYTES) return rows;
        rows = divide_up(rows, 128) * 64;
    }
}

/* Where the examples of packed sequences begin. */
static struct gpu_binding starts_of(struct run *r, const struct kv *kv)
{
    return kv->starts ? act(kv->starts) : whole(ops_of(r)->unused);
}

static void dispatch_softmax(struct run *r, const struct attention_bwd_scores_params *p,
                             const struct kv *kv, const struct tensor *s, const struct tensor *d,
                             bool forward)
{
    struct gpu_ops *g = ops_of(r);
    struct gpu_binding bind[] = { starts_of(r, kv), act(s), act(d) };
    struct gpu_constant constants[] = { { ATTENTION_BWD_SOFTMAX_WG, gpu_sum_wg(g, 64) },
                                        { ATTENTION_BWD_SOFTMAX_PACKED, kv->starts != NULL },
                                        { ATTENTION_BWD_SOFTMAX_FORWARD, forward } };
    record_dispatch(&g->rec, KERNEL_ATTENTION_BWD_SOFTMAX, constants, COUNT(constants), p, bind,
                    COUNT(bind), p->n_head * p->rows);
}

/* s = x y', head by head; kv is whose keys or values y are. */
static void dispatch_scores(struct run *r, const struct attention_bwd_scores_params *p,
                            const struct kv *kv, const struct tensor *x, const struct tensor *y,
                            const struct tensor *s)
{
    struct gpu_binding bind[] = { starts_of(r, kv), act(x), act(y), act(s) };
    struct gpu_constant packed = { ATTENTION_BWD_SCORES_PACKED, kv->starts != NULL };
    if (has_software(ops_of(r), SOFTWARE(ATTENTION_BWD_SCORES))) {
        uint64_t threads = (uint64_t)p->n_head * divide_up(p->rows, 8) * (p->span / 4);
        packed.index = ATTENTION_BWD_SCORES_PACKED;
        record_dispatch(&ops_of(r)->rec, SOFTWARE(ATTENTION_BWD_SCORES), &packed, 1, p, bind,
                        COUNT(bind), divide_up(threads, SOFTWARE_WG));
        return;
    }
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_BWD_SCORES, &packed, 1, p, bind, COUNT(bind),
                    p->n_head * divide_up(p->rows, 64) * divide_up(p->span, 64));
}

/* y = s k, head by head. */
static void dispatch_query(struct run *r, const struct attention_bwd_scores_params *p,
                           const struct kv *kv, const struct tensor *s, const struct tensor *k,
                           const struct tensor *y)
{
    struct gpu_binding bind[] = { starts_of(r, kv), act(s), act(k), act(y) };
    struct gpu_constant packed = { ATTENTION_BWD_QUERY_PACKED, kv->starts != NULL };
    if (has_software(ops_of(r), SOFTWARE(ATTENTION_BWD_QUERY))) {
        uint64_t threads = (uint64_t)p->n_head * divide_up(p->rows, 8) * (p->head_dim / 4);
        packed.index = ATTENTION_BWD_QUERY_PACKED;
        record_dispatch(&ops_of(r)->rec, SOFTWARE(ATTENTION_BWD_QUERY), &packed, 1, p, bind,
                        COUNT(bind), divide_up(threads, SOFTWARE_WG));
        return;
    }
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_BWD_QUERY, &packed, 1, p, bind, COUNT(bind),
                    p->n_head * divide_up(p->rows, 64) * divide_up(p->head_dim, 64));
}

/* Are the gradients of a group's heads stored one by one and summed by another dispatch? They are
 * where the device would have too few workgroups. */
static bool separate_heads(const struct run *r, const struct attention_bwd_scores_params *p)
{
    uint32_t tiles = divide_up(p->span, 64) * divide_up(p->head_dim, 64);
    return p->n_head > p->n_kv_head && p->n_kv_head * tiles < ops_of(r)->tuning->separate_heads;
}

/* dk += s' q, summed over the heads of a group; separate: each head is stored by itself. */
static void dispatch_keys(struct run *r, const struct attention_bwd_scores_params *p,
                          const struct kv *kv, const struct tensor *s, const struct tensor *q,
                          const struct tensor *dk, const struct tensor *parts)
{
    bool separate = separate_heads(r, p);
    uint32_t tiles = divide_up(p->span, 64) * divide_up(p->head_dim, 64);
    struct gpu_binding bind[] = { starts_of(r, kv), act(s), act(q), act(separate ? parts : dk) };
    if (has_software(ops_of(r), SOFTWARE(ATTENTION_BWD_KEYS))) {
        struct gpu_constant packed = { ATTENTION_BWD_KEYS_PACKED, kv->starts != NULL };
        uint64_t threads = (uint64_t)p->n_kv_head * divide_up(p->span, 8) * (p->head_dim / 4);
        record_dispatch(&ops_of(r)->rec, SOFTWARE(ATTENTION_BWD_KEYS), &packed, 1, p, bind,
                        COUNT(bind), divide_up(threads, SOFTWARE_WG));
        return;
    }
    struct gpu_constant constants[] = { { ATTENTION_BWD_KEYS_PACKED, kv->starts != NULL },
                                        { ATTENTION_BWD_KEYS_SEPARATE, separate } };
    record_dispatch(&ops_of(r)->rec, KERNEL_ATTENTION_BWD_KEYS, constants, COUNT(constants), p,
                    bind, COUNT(bind), (separate ? p->n_head : p->n_kv_head) * tiles);
}

/* Room for what each head of a group adds to keys or values. */
static struct tensor head_parts(struct run *r, const struct attention_bwd_scores_params *p,
                                int which)
{
    uint32_t left = p->n_key - p->key0, keys = p->span < left ? p->span : left;
    uint32_t rows = p->n_head / p->n_kv_head * keys;
    return separate_heads(r, p) ? gpu_scratch(r, which, rows, p->n_kv_head * p->head_dim)
                                : (struct tensor) { 0 };
}

static void keys_and_values(struct run *r, const struct attention_bwd_scores_params *p,
                            const struct kv *kv, struct kv *dkv, const struct tensor *d,
                            const struct tensor *s, const struct tensor *q, const struct tensor *dy)
{
    struct tensor dk = head_parts(r, p, SCRATCH_THIRD), dv = head_parts(r, p, SCRATCH_WIDE);
    dispatch_keys(r, p, kv, d, q, &dkv->k, &dk);
    dispatch_keys(r, p, kv, s, dy, &dkv->v, &dv);
    if (!separate_heads(r, p)) return;
    gpu_sum_parts(r, &dkv->k, p->key0, false, &dk, p->n_head / p->n_kv_head, NULL, 0);
    gpu_sum_parts(r, &dkv->v, p->key0, false, &dv, p->n_head / p->n_kv_head, NULL, 0);
}

void gpu_attention_bwd(struct run *r, struct tensor *dq, struct kv *dkv, const struct tensor *dy,
                       const struct tensor *q, const struct kv *kv, uint32_t n_head,
                       uint32_t window)
{
    _Static_assert(
        sizeof(struct attention_bwd_scores_params) == sizeof(struct attention_bwd_keys_params) &&
            sizeof(struct attention_bwd_scores_params) == sizeof(struct attention_bwd_query_params),
        "attention_bwd_* have the same Params");
    uint32_t step = run_rows(q->rows, n_head, window);
    for (uint32_t row = 0; row < q->rows; row += step) {
        uint32_t rows = q->rows - row < step ? q->rows - row : step;
        struct attention_bwd_scores_params p = run_of(q, kv, n_head, window, row, rows);
        struct tensor s = gpu_scratch(r, SCRATCH_FIRST, n_head * rows, p.span);
        struct tensor d = gpu_scratch(r, SCRATCH_SECOND, n_head * rows, p.span);
        dispatch_scores(r, &p, kv, q, &kv->k, &s);
        dispatch_scores(r, &p, kv, dy, &kv->v, &d);
        dispatch_softmax(r, &p, kv, &s, &d, false);
        dispatch_query(r, &p, kv, &d, &kv->k, dq);
        keys_and_values(r, &p, kv, dkv, &d, &s, q, dy);
    }
}

void gpu_attention_packed(struct run *r, struct tensor *y, const struct tensor *q,
                          const struct kv *kv, uint32_t n_head, uint32_t window)
{
    uint32_t step = run_rows(q->rows, n_head, window);
    for (uint32_t row = 0; row < q->rows; row += step) {
        uint32_t rows = q->rows - row < step ? q->rows - row : step;
        struct attention_bwd_scores_params p = run_of(q, kv, n_head, window, row, rows);
        struct tensor s = gpu_scratch(r, SCRATCH_FIRST, n_head * rows, p.span);
        struct tensor none = gpu_scratch(r, SCRATCH_SECOND, 1, 4);
        dispatch_scores(r, &p, kv, q, &kv->k, &s);
        dispatch_softmax(r, &p, kv, &s, &none, true);
        dispatch_query(r, &p, kv, &s, &kv->v, y);
    }
}

/* ---- head and loss ---- */

void gpu_head_loss(struct run *r, struct tensor *loss, struct tensor *dx, const struct tensor *x,
                   const struct weight *head, const struct tensor *targets, float cap, float weight)
{
    struct gpu_ops *g = ops_of(r);
    uint64_t room = g->roomy ? GPU_MORE_LOGITS_BYTES : GPU_LOGITS_BYTES;
    uint32_t step = (uint32_t)(room / ((uint64_t)head->rows * 4)) / 16 * 16;
    if (step < 16) step = 16;
    for (uint32_t row = 0; row < x->rows; row += step) {
        uint32_t rows = x->rows - row < step ? x->rows - row : step;
        struct tensor some = gpu_scratch(r, SCRATCH_SECOND, rows, x->cols);
        struct tensor logits = gpu_scratch(r, SCRATCH_FIRST, rows, divide_up(head->rows, 4) * 4);
        r->be->copy_rows(r, &some, x, row);
        gpu_linear(r, &logits, &some, head);
        struct loss_rows_params p = { .rows = rows,
                                      .cols = head->rows,
                                      .stride = logits.cols,
                                      .first = row,
                                      .cap = cap,
                                      .weight = weight };
        struct gpu_binding bind[] = { act(targets), act(loss), act(&logits) };
        struct gpu_constant wg = { LOSS_ROWS_WG, gpu_sum_wg(g, 256) };
        record_dispatch(&g->rec, KERNEL_LOSS_ROWS, &wg, 1, &p, bind, COUNT(bind), rows);
        gpu_transposed(r, dx, row, true, &logits, head);
    }
}
