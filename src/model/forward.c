/* forward.c - Gemma 4's text network. This file is the model's definition: MODEL.md says the same in
 * words, step by step, and the comments here give its step numbers.
 *
 * It knows no backend, no file format and no adapter. What a layer has is decided by which of its
 * tensors exist.
 */
#include "model/forward.h"

#include <math.h>
#include <string.h>

/* ---- activations ---- */

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Rows of d numbers in the memory of the branch: where experts are, theirs come after the dense ones. */
static uint32_t branch_rows(const struct config *c, uint32_t n)
{
    uint32_t gap = (TENSOR_ALIGN + c->n_embd - 1) / c->n_embd;
    return c->n_expert ? 2 * n + gap : n;
}

/* Columns of tensors that share a memory. */
static uint32_t padded(uint32_t cols)
{
    return (cols + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

struct act_shape {
    struct tensor *t;
    uint32_t rows, cols;
};

enum { N_ACTS = 22 };

/* Every activation with the room it needs. */
static void list_acts(struct act_shape list[N_ACTS], struct acts *a, const struct model *m,
                      uint32_t n_batch)
{
    const struct config *c = &m->config;
    uint32_t q = 1, kv = 1, ff = 1, d = c->n_embd;
    for (uint32_t il = 0; il < c->n_layer; il++) {
        const struct layer_config *l = &c->layers[il];
        q = max_u32(q, c->n_head * l->head_dim);
        kv = max_u32(kv, l->n_kv_head * l->head_dim);
        ff = max_u32(ff, l->n_ff);
    }
    uint32_t ple = max_u32(c->n_ple * c->n_layer, 1), used = max_u32(c->n_expert_used, 1);
    uint32_t swa = max_u32(2 * m->rope_swa.n_pair, 1), n = n_batch;
    const struct act_shape all[N_ACTS] = {
        { &a->ids, n, 1 },
        { &a->x, n, d },
        { &a->next, n, d },
        { &a->norm, n, d },
        { &a->branch, branch_rows(c, n), d },
        { &a->heads, n + 1, padded(q) + 2 * padded(kv) },
        { &a->attn, n, q },
        { &a->gate, n, ff },
        { &a->up, n, ff },
        { &a->ple, n, ple },
        { &a->ple_part, n, ple },
        { &a->sum, n, d },
        { &a->routing.ids, n, used },
        { &a->tail_x, n, d },
        { &a->routing.weights, n, used },
        { &a->tail_norm, n, d },
        { &a->rope_global, n, 2 * m->rope_global.n_pair },
        { &a->tail_ple, n, ple },
        { &a->rope_swa, n, swa },
        { &a->result, n, d },
        { &a->logit_in, LOGIT_ROWS, d },
        { &a->logits, LOGIT_ROWS, c->n_vocab },
    };
    memcpy(list, all, sizeof all);
}

uint64_t acts_bytes(const struct model *m, uint32_t n_batch)
{
    struct acts a;
    struct act_shape list[N_ACTS];
    list_acts(list, &a, m, n_batch);
    uint64_t n = 0;
    for (size_t i = 0; i < N_ACTS; i++) n += (uint64_t)list[i].rows * list[i].cols * sizeof(float);
    return n;
}

/* Queries, keys and values: one memory, so that one kernel can write all of them. */
static void share_heads(struct acts *a, const struct model *m, const struct backend *be,
                        uint32_t n_batch)
{
    uint32_t kv = 1, first = TENSOR_ALIGN; /* none begins where the memory does */
    for (uint32_t il = 0; il < m->config.n_layer; il++) {
        const struct layer_config *l = &m->config.layers[il];
        kv = max_u32(kv, padded(l->n_kv_head * l->head_dim));
    }
    struct tensor *const of[] = { &a->q, &a->k, &a->v };
    for (int i = 0; i < 3; i++) {
        uint32_t cols = i ? kv : a->heads.cols - 2 * kv;
        *of[i] = (struct tensor) { .cols = cols, .size = (uint64_t)n_batch * cols };
        be->view(of[i], &a->heads, first);
        first += n_batch * cols;
    }
}

enum bz_status acts_open(struct acts *out, const struct model *m, const struct backend *be,
                         uint32_t n_batch, struct bz_err *err)
{
    struct acts a = { 0 };
    struct act_shape list[N_ACTS];
    list_acts(list, &a, m, n_batch);
    for (size_t i = 0; i < N_ACTS; i++)
        if (!tensor_alloc(be, list[i].t, list[i].rows, list[i].cols)) {
            acts_close(&a, m, be);
            return fail(err, BZ_ERR_MEMORY, "not enough memory for a batch of %u tokens", n_batch);
        }
    share_heads(&a, m, be, n_batch);
    if (m->config.n_expert) {
        a.experts =
            (struct tensor) { .cols = a.branch.cols, .size = (uint64_t)n_batch * a.branch.cols };
        uint64_t first = (a.experts.size + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
        be->view(&a.experts, &a.branch, (uint32_t)first);
    }
    *out = a;
    return BZ_OK;
}

void acts_close(struct acts *a, const struct model *m, const struct backend *be)
{
    struct act_shape list[N_ACTS];
    list_acts(list, a, m, 1);
    for (size_t i = 0; i < N_ACTS; i++) tensor_free(be, list[i].t);
}

/* ---- the network ---- */

/* The state of one step; the position of row 0 moves when rows leave. */
struct step {
    struct run *r;
    const struct model *m;
    struct kv_cache *kv;
    struct acts *a;
    uint32_t pos;
    uint32_t n_logits;
    float eps;
    struct join left; /* by the last block: a branch, and how it joins the stream */
};

static const struct weight none;

/* A block ends: its branch will join the stream when the next one begins, scaled with it where `scale` exists. */
static void leave(struct step *s, const struct tensor *branch, const struct weight *w,
                  const struct weight *scale)
{
    s->left = (struct join) { .branch = branch, .w = w, .scale = scale, .eps = s->eps };
}

/* A block begins, and reads the stream through this norm. */
static struct join enter(struct step *s, const struct weight *norm)
{
    struct join j = s->left;
    j.x = &s->a->x;
    j.to = &s->a->next;
    j.norm = &s->a->norm;
    j.next_w = norm;
    j.eps = s->eps;
    return j;
}

/* The branch has joined. */
static void entered(struct step *s)
{
    struct tensor old = s->a->x;
    s->a->x = s->a->next;
    s->a->next = old;
}

float model_ple_scale(const struct model *m)
{
    return sqrtf((float)m->config.n_ple);
}

/* 1. Input: the token's row of the table, times sqrt(n_embd).
 * 2. Per-layer inputs, for all layers at once: table row and projection of the input, mixed. */
static void input(struct step *s)
{
    struct run *r = s->r;
    const struct model *m = s->m;
    const struct config *c = &m->config;
    struct acts *a = s->a;
    float width = (float)c->n_embd;
    op_embed(r, &a->x, &m->token_embd, &a->ids, sqrtf(width));
    op_tap(r, "embd", -1, &a->x);
    if (c->n_ple) {
        op_embed(r, &a->ple, &m->ple_embd, &a->ids, model_ple_scale(m));
        struct tensor proj = tensor_shape(&a->ple_part, a->ple.cols);
        op_linear(r, &proj, &a->x, &m->ple_proj);
        op_ple_mix(r, &a->ple, &proj, &m->ple_proj_norm, 1.0f / sqrtf(width), s->eps);
        op_tap(r, "ple", -1, &a->ple);
    }
}

/* The angles of the rows' positions, once for all layers of a type. */
static void turn_tables(struct step *s)
{
    struct acts *a = s->a;
    a->rope_global.rows = a->rope_swa.rows = a->x.rows;
    op_rope_table(s->r, &a->rope_global, &s->m->rope_global, s->pos);
    if (s->m->rope_swa.n_pair) op_rope_table(s->r, &a->rope_swa, &s->m->rope_swa, s->pos);
}

static const struct tensor *turns(const struct step *s, uint32_t il)
{
    return s->m->config.layers[il].swa ? &s->a->rope_swa : &s->a->rope_global;
}

static struct heads heads_of(const struct step *s, const struct layer *l, uint32_t il,
                             struct tensor *q, struct tensor *k, struct tensor *v)
{
    return (struct heads) { .q = q,
                            .k = k,
                            .v = v,
                            .q_norm = &l->attn_q_norm,
                            .k_norm = &l->attn_k_norm,
                            .table = turns(s, il),
                            .n_head = s->m->config.n_head,
                            .v_from_k = k && !weight_exists(&l->attn_v) };
}

/* Keep the last n rows of *t, in *spare's memory; the two change places. */
static void keep_tail(struct run *r, struct tensor *t, struct tensor *spare, uint32_t n)
{
    spare->rows = n;
    op_copy_rows(r, spare, t, t->rows - n);
    struct tensor kept = *spare;
    *spare = *t;
    *t = kept;
}

/* After the last layer that writes a cache, rows whose logits nobody asked for have done their work.
 * On E2B they skip 20 of 35 layers, and the widest ones. */
static void drop_finished_rows(struct step *s)
{
    struct acts *a = s->a;
    uint32_t n = s->n_logits, leaving = a->x.rows - n;
    if (!leaving) return;
    keep_tail(s->r, &a->x, &a->tail_x, n);
    keep_tail(s->r, &a->norm, &a->tail_norm, n);
    if (s->m->config.n_ple) keep_tail(s->r, &a->ple, &a->tail_ple, n);
    s->pos += leaving;
    turn_tables(s);
}

/* A layer's first norm is made, so that the one before it is over. */
static void begun(struct step *s, uint32_t il)
{
    entered(s);
    if (il) op_tap(s->r, "out", (int)il - 1, &s->a->x);
    op_tap(s->r, "attn_norm", (int)il, &s->a->norm);
}

/* Where rows leave: keys and values of all of them, queries of those that stay. Returns false when none does. */
static bool project_and_drop(struct step *s, const struct layer *l, uint32_t il, struct tensor *q,
                             struct tensor *k, struct tensor *v)
{
    struct run *r = s->r;
    struct acts *a = s->a;
    struct join j = enter(s, &l->attn_norm);
    op_join(r, &j);
    begun(s, il);
    op_linear(r, k, &a->norm, &l->attn_k);
    if (weight_exists(&l->attn_v)) op_linear(r, v, &a->norm, &l->attn_v);
    struct heads h = heads_of(s, l, il, NULL, k, v);
    op_heads_write(r, kv_of(s->kv, il), &h, s->pos, s->eps);
    drop_finished_rows(s);
    if (a->x.rows == 0) return false;
    op_linear(r, q, &a->norm, &l->attn_q);
    return true;
}

/* 3 and 4. Queries, and keys and values where the layer owns them. Without attn_v the values are the raw key
 * projection, before its norm and rotation. */
static void project(struct step *s, const struct layer *l, uint32_t il, struct tensor *q,
                    struct tensor *k, struct tensor *v)
{
    struct join j = enter(s, &l->attn_norm);
    struct tensor *const y[JOIN_LINEARS] = { q, k, v };
    const struct weight *const w[JOIN_LINEARS] = { &l->attn_q, &l->attn_k, &l->attn_v };
    uint32_t n = il >= s->m->config.n_own ? 1 : weight_exists(&l->attn_v) ? 3 : 2;
    op_join_linears(s->r, &j, y, w, n);
    begun(s, il);
}

/* 3, 4 and 5. Attention of the queries over the layer's (or its donor's) cache. Returns false when no row is left
 * to go on. */
static bool attention(struct step *s, const struct layer *l, uint32_t il)
{
    struct run *r = s->r;
    struct acts *a = s->a;
    const struct config *c = &s->m->config;
    const struct layer_config *lc = &c->layers[il];
    struct kv *kv = kv_of(s->kv, il);
    struct tensor q = tensor_shape(&a->q, c->n_head * lc->head_dim);
    struct tensor k = tensor_shape(&a->k, kv->k.cols), v = tensor_shape(&a->v, kv->v.cols);
    struct tensor o = tensor_shape(&a->attn, q.cols);
    bool owns = il < c->n_own, rows_leave = il + 1 == c->n_own && a->x.rows > s->n_logits;
    if (!rows_leave) project(s, l, il, &q, &k, &v);
    else if (!project_and_drop(s, l, il, &q, &k, &v)) return false;
    bool writes = owns && !rows_leave;
    struct heads h = heads_of(s, l, il, &q, writes ? &k : NULL, writes ? &v : NULL);
    op_attend_linear(r, &a->branch, &o, kv, &h, lc->swa ? c->n_swa : 0, s->pos, s->eps,
                     &l->attn_output);
    if (owns) op_tap(r, "k", (int)il, &k);
    if (owns) op_tap(r, "v", (int)il, &v);
    op_tap(r, "q", (int)il, &q);
    op_tap(r, "attn", (int)il, &o);
    leave(s, &a->branch, &l->attn_post_norm, &none);
    return true;
}

/* 7. A layer with a router adds experts to its dense MLP, which ends here. Router and experts read the state after
 * attention, each through its own norm. */
static void experts(struct step *s, const struct layer *l, uint32_t il, const struct tensor *gate)
{
    struct run *r = s->r;
    struct acts *a = s->a;
    const struct experts e = { &l->exp_gate_up, &l->exp_gate, &l->exp_up, &l->exp_down,
                               &l->exp_scale };
    const struct router by = { &l->router, &l->router_scale, &l->exp_norm };
    op_linear_router(r, &a->branch, gate, &l->ffn_down, &a->routing, &a->norm, &a->x, &by, s->eps);
    op_tap(r, "router_ids", (int)il, &a->routing.ids);
    op_tap(r, "router_weights", (int)il, &a->routing.weights);
    op_experts(r, &a->experts, &a->norm, &a->routing, &e);
    if (r->tap) { /* half of the sum, which nobody else sees */
        op_rms_norm(r, &a->sum, &a->experts, &l->exp_post_norm, s->eps);
        op_tap(r, "moe_out", (int)il, &a->sum);
    }
}

/* The branch that was left is the dense half of a sum. */
static void add_experts(struct step *s, const struct layer *l)
{
    s->left.other = &s->a->experts;
    s->left.branch_w = &l->dense_post_norm;
    s->left.other_w = &l->exp_post_norm;
    s->left.sum = &s->a->sum;
}

/* 6. Feed-forward of the state after attention: down(gelu(gate x) * up x). */
static void feed_forward(struct step *s, const struct layer *l, uint32_t il)
{
    struct run *r = s->r;
    struct acts *a = s->a;
    uint32_t n_ff = s->m->config.layers[il].n_ff;
    struct tensor gate = tensor_shape(&a->gate, n_ff), up = tensor_shape(&a->up, n_ff);
    struct join j = enter(s, &l->ffn_norm);
    op_join_gate_up(r, &j, &gate, &up, &l->ffn_gate, &l->ffn_up);
    entered(s);
    op_tap(r, "attn_out", (int)il, &a->x);
    bool routed = weight_exists(&l->router);
    if (routed) experts(s, l, il, &gate);
    else op_linear(r, &a->branch, &gate, &l->ffn_down);
    leave(s, &a->branch, &l->ffn_post_norm, s->m->config.n_ple ? &none : &l->out_scale); /* 9 */
    if (routed) add_experts(s, l);
    if (r->tap) s->left = op_join_sum(r, &s->left);
    op_tap(r, "ffn", (int)il, s->left.branch);
}

/* 8. The per-layer input gates a narrow detour. */
static void per_layer_input(struct step *s, const struct layer *l, uint32_t il)
{
    struct run *r = s->r;
    struct acts *a = s->a;
    uint32_t n_ple = s->m->config.n_ple;
    struct tensor gate = tensor_shape(&a->ple_part, n_ple);
    struct join j = enter(s, &none);
    op_join_linear_gelu_mul(r, &j, &gate, &l->ple_gate, &a->ple, il * n_ple);
    entered(s);
    op_tap(r, "ffn_out", (int)il, &a->x);
    op_linear(r, &a->branch, &gate, &l->ple_out);
    leave(s, &a->branch, &l->ple_post_norm, &l->out_scale); /* 9 */
}

/* One layer. Returns false when no row is left to go on. */
static bool layer(struct step *s, uint32_t il)
{
    const struct layer *l = &s->m->layers[il];
    if (!attention(s, l, il)) return false;
    feed_forward(s, l, il);
    if (s->m->config.n_ple) per_layer_input(s, l, il);
    return true;
}

void model_input(struct run *r, const struct model *m, struct acts *a, uint32_t pos)
{
    struct step s = { r, m, NULL, a, pos, 0, m->config.eps, { 0 } };
    input(&s);
    turn_tables(&s);
}

static void forward(struct step *s)
{
    const struct model *m = s->m;
    input(s);
    turn_tables(s);
    leave(s, NULL, &none, &none);
    for (uint32_t il = 0; il < m->config.n_layer; il++)
        if (!layer(s, il)) return;
    struct join j = enter(s, &m->output_norm); /* 10 */
    j.norm = &s->a->result;
    op_join(s->r, &j);
    entered(s);
    op_tap(s->r, "out", (int)m->config.n_layer - 1, &s->a->x);
    op_tap(s->r, "result_norm", -1, &s->a->result);
}

void model_forward(struct run *r, const struct model *m, struct kv_cache *kv, struct acts *a,
                   uint32_t n_logits)
{
    struct acts before = *a;
    struct step s = { r, m, kv, a, kv->n_past, n_logits, m->config.eps, { 0 } };
    forward(&s);
    before.result = a->result;
    *a =
        before; /* what has changed places goes back: so steps that are alike use the same memory alike */
}

void model_logits(struct run *r, const struct model *m, struct acts *a, uint32_t first, uint32_t n)
{
    const struct tensor *in = &a->result;
    if (n < a->result.rows) {
        a->logit_in.rows = n;
        op_copy_rows(r, &a->logit_in, &a->result, first);
        in = &a->logit_in;
    }
    op_linear_softcap(r, &a->logits, in, model_head(m), m->config.softcap); /* 11 */
    op_tap(r, "logits", -1, &a->logits);
}
