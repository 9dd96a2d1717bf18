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

struct act_shape {
    struct tensor *t;
    uint32_t rows, cols;
};

enum { N_ACTS = 23 };

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
        { &a->norm, n, d },
        { &a->branch, n, d },
        { &a->q, n, q },
        { &a->k, n, kv },
        { &a->v, n, kv },
        { &a->attn, n, q },
        { &a->gate, n, ff },
        { &a->up, n, ff },
        { &a->ple, n, ple },
        { &a->ple_part, n, ple },
        { &a->dense, n, d },
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
};

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

/* 4. Keys and values of an owning layer. Without attn_v the values are the raw key projection, before its
 * norm and rotation. What they become on their way to the cache follows with the queries. */
static void keys_values(struct step *s, const struct layer *l, struct tensor *k, struct tensor *v)
{
    op_linear(s->r, k, &s->a->norm, &l->attn_k);
    if (weight_exists(&l->attn_v)) op_linear(s->r, v, &s->a->norm, &l->attn_v);
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

/* 4 and 5. Keys and values where the layer owns them, then attention of the queries over its (or its donor's)
 * cache. Returns false when no row is left to go on. */
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
    if (owns) keys_values(s, l, &k, &v);
    if (rows_leave) {
        struct heads h = heads_of(s, l, il, NULL, &k, &v);
        op_heads_write(r, kv, &h, s->pos, s->eps);
        drop_finished_rows(s);
        if (a->x.rows == 0) return false;
    }
    op_linear(r, &q, &a->norm, &l->attn_q);
    bool writes = owns && !rows_leave;
    struct heads h = heads_of(s, l, il, &q, writes ? &k : NULL, writes ? &v : NULL);
    op_attend(r, &o, kv, &h, lc->swa ? c->n_swa : 0, s->pos, s->eps);
    if (owns) op_tap(r, "k", (int)il, &k);
    if (owns) op_tap(r, "v", (int)il, &v);
    op_tap(r, "q", (int)il, &q);
    op_tap(r, "attn", (int)il, &o);
    op_linear(r, &a->branch, &o, &l->attn_output);
    return true;
}

/* out = down(gelu(gate x) * up x) */
static void gated_mlp(struct step *s, struct tensor *out, const struct layer *l, uint32_t n_ff)
{
    struct tensor gate = tensor_shape(&s->a->gate, n_ff), up = tensor_shape(&s->a->up, n_ff);
    op_gate_up(s->r, &gate, &up, &s->a->norm, &l->ffn_gate, &l->ffn_up);
    op_linear(s->r, out, &gate, &l->ffn_down);
}

/* 7. A layer with a router adds experts to its dense MLP. Router and experts read the state after
 * attention, each through its own norm. */
static void experts(struct step *s, const struct layer *l, uint32_t il)
{
    struct run *r = s->r;
    struct acts *a = s->a;
    const struct experts e = { &l->exp_gate_up, &l->exp_gate, &l->exp_up, &l->exp_down,
                               &l->exp_scale };
    /* a->dense = rms(MLP) * dense_post_norm */
    op_rms_norm(r, &a->dense, &a->branch, &l->dense_post_norm, s->eps);
    op_router(r, &a->routing, &a->x, &l->router, &l->router_scale, s->eps);
    op_tap(r, "router_ids", (int)il, &a->routing.ids);
    op_tap(r, "router_weights", (int)il, &a->routing.weights);
    op_rms_norm(r, &a->norm, &a->x, &l->exp_norm, s->eps);
    op_experts(r, &a->branch, &a->norm, &a->routing, &e);
    op_rms_norm(r, &a->norm, &a->branch, &l->exp_post_norm, s->eps);
    op_tap(r, "moe_out", (int)il, &a->norm);
    op_add(r, &a->dense, &a->norm);
}

/* 9 and 3. The end of a layer: its last branch joins the stream, all of it is scaled, and the norm that the
 * next layer (or, 10, the head) begins with is made. */
static void end_layer(struct step *s, const struct tensor *branch, const struct weight *w,
                      uint32_t il)
{
    struct acts *a = s->a;
    const struct model *m = s->m;
    bool last = il + 1 == m->config.n_layer;
    op_add_norm_norm(s->r, &a->x, last ? &a->result : &a->norm, branch, w, &m->layers[il].out_scale,
                     last ? &m->output_norm : &m->layers[il + 1].attn_norm, s->eps);
    op_tap(s->r, "out", (int)il, &a->x);
}

/* 6. Feed-forward of the state after attention, whose norm is in a->norm. */
static void feed_forward(struct step *s, const struct layer *l, uint32_t il)
{
    struct run *r = s->r;
    struct acts *a = s->a;
    gated_mlp(s, &a->branch, l, s->m->config.layers[il].n_ff);
    struct tensor *f = &a->branch;
    if (weight_exists(&l->router)) {
        experts(s, l, il);
        f = &a->dense;
    }
    op_tap(r, "ffn", (int)il, f);
    if (!s->m->config.n_ple) {
        end_layer(s, f, &l->ffn_post_norm, il);
        return;
    }
    op_add_norm(r, &a->x, f, &l->ffn_post_norm, s->eps);
    op_tap(r, "ffn_out", (int)il, &a->x);
}

/* 8. The per-layer input gates a narrow detour. */
static void per_layer_input(struct step *s, const struct layer *l, uint32_t il)
{
    struct run *r = s->r;
    struct acts *a = s->a;
    uint32_t n_ple = s->m->config.n_ple;
    struct tensor gate = tensor_shape(&a->ple_part, n_ple);
    op_linear_gelu_mul(r, &gate, &a->x, &l->ple_gate, &a->ple, il * n_ple);
    op_linear(r, &a->branch, &gate, &l->ple_out);
    end_layer(s, &a->branch, &l->ple_post_norm, il);
}

/* One layer, whose first norm is in a->norm. Returns false when no row is left to go on. */
static bool layer(struct step *s, uint32_t il)
{
    struct run *r = s->r;
    struct acts *a = s->a;
    const struct layer *l = &s->m->layers[il];
    const struct weight none = { 0 };
    op_tap(r, "attn_norm", (int)il, &a->norm);
    if (!attention(s, l, il)) return false;
    op_add_norm_norm(r, &a->x, &a->norm, &a->branch, &l->attn_post_norm, &none, &l->ffn_norm,
                     s->eps);
    op_tap(r, "attn_out", (int)il, &a->x);
    feed_forward(s, l, il);
    if (s->m->config.n_ple) per_layer_input(s, l, il);
    return true;
}

void model_input(struct run *r, const struct model *m, struct acts *a, uint32_t pos)
{
    struct step s = { r, m, NULL, a, pos, 0, m->config.eps };
    input(&s);
    turn_tables(&s);
}

void model_forward(struct run *r, const struct model *m, struct kv_cache *kv, struct acts *a,
                   uint32_t n_logits)
{
    struct step s = { r, m, kv, a, kv->n_past, n_logits, m->config.eps };
    input(&s);
    turn_tables(&s);
    op_rms_norm(r, &a->norm, &a->x, &m->layers[0].attn_norm, s.eps); /* 3 */
    for (uint32_t il = 0; il < m->config.n_layer; il++)
        if (!layer(&s, il)) return;
    op_tap(r, "result_norm", -1, &a->result);
}

void model_logits(struct run *r, const struct model *m, struct acts *a, uint32_t first, uint32_t n)
{
    a->logit_in.rows = n;
    op_copy_rows(r, &a->logit_in, &a->result, first);
    op_linear(r, &a->logits, &a->logit_in, model_head(m)); /* 11 */
    op_softcap(r, &a->logits, m->config.softcap);
    op_tap(r, "logits", -1, &a->logits);
}
