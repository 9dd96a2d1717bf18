/* backward.c - text.c once more, with every intermediate kept, and each of its lines in reverse.
 *
 * keep_layer() is the layer of text.c, op by op, not fused; the tests hold the two together.
 * layer_bwd() is the same list from its last line to its first: `dx` comes in as the gradient of
 * the layer's output and leaves as that of its input.
 */
#include "model/backward.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

static const struct weight none;

/* ---- memory ---- */

struct trace_shape {
    struct tensor *t;
    uint32_t cols;
};

static uint32_t at_least_one(uint32_t n)
{
    return n ? n : 1;
}

/* The widest layer. */
struct widths {
    uint32_t d, q, kv, ff, ple, used;
};

static struct widths widths_of(const struct config *c)
{
    struct widths w = {
        c->n_embd, 1, 1, 1, at_least_one(c->n_ple), at_least_one(c->n_expert_used)
    };
    for (uint32_t il = 0; il < c->n_layer; il++) {
        const struct layer_config *l = &c->layers[il];
        uint32_t q = c->n_head * l->head_dim, kv = l->n_kv_head * l->head_dim;
        if (q > w.q) w.q = q;
        if (kv > w.kv) w.kv = kv;
        if (l->n_ff > w.ff) w.ff = l->n_ff;
    }
    return w;
}

enum { N_KEPT = 22, N_OWN = 22 };

/* One layer's intermediates; with `only` NULL at the widest layer's sizes. */
static size_t list_kept(struct trace_shape list[N_KEPT], struct kept *k, const struct config *c,
                        const struct layer_config *only)
{
    struct widths w = widths_of(c);
    if (only) {
        w.q = c->n_head * only->head_dim;
        w.kv = only->n_kv_head * only->head_dim;
        w.ff = only->n_ff;
    }
    const struct trace_shape all[N_KEPT] = {
        { &k->norm, w.d },      { &k->q_raw, w.q },      { &k->k_raw, w.kv },
        { &k->v_raw, w.kv },    { &k->q, w.q },          { &k->attn, w.q },
        { &k->branch, w.d },    { &k->x_mid, w.d },      { &k->ffn_in, w.d },
        { &k->gate, w.ff },     { &k->up, w.ff },        { &k->act, w.ff },
        { &k->mlp, w.d },       { &k->x_ffn, w.d },      { &k->ple_gate, w.ple },
        { &k->ple_act, w.ple }, { &k->ple_branch, w.d }, { &k->routing.ids, w.used },
        { &k->exp_in, w.d },    { &k->exp_out, w.d },    { &k->routing.weights, w.used },
        { &k->f, w.d },
    };
    memcpy(list, all, sizeof all);
    return c->n_expert ? N_KEPT : c->n_ple ? 17 : 14;
}

static void list_own(struct trace_shape list[N_OWN], struct trace *t, const struct model *m)
{
    const struct config *c = &m->config;
    struct widths w = widths_of(c);
    uint32_t ple = at_least_one(c->n_ple * c->n_layer);
    uint32_t inner = w.ff > w.ple ? w.ff : w.ple;
    const struct trace_shape all[N_OWN] = {
        { &t->k, w.kv },
        { &t->v, w.kv },
        { &t->normed, w.d },
        { &t->scores, at_least_one(c->n_expert) },
        { &t->dx, w.d },
        { &t->d_embd, w.d },
        { &t->d_branch, w.d },
        { &t->d_wide, inner },
        { &t->d_up, w.ff },
        { &t->d_q, w.q },
        { &t->d_attn, w.q },
        { &t->d_exp, c->n_expert ? w.d : 1 },
        { &t->d_weights, w.used },
        { &t->result, w.d },
        { &t->targets, 1 },
        { &t->loss, 1 },
        { &t->starts, 1 },
        { &t->ids, 1 },
        { &t->ple, ple },
        { &t->ple_proj, ple },
        { &t->rope_global, at_least_one(2 * m->rope_global.n_pair) },
        { &t->rope_swa, at_least_one(2 * m->rope_swa.n_pair) },
    };
    memcpy(list, all, sizeof all);
}

uint64_t trace_bytes(const struct model *m, uint32_t n_max, bool keep_all)
{
    const struct config *c = &m->config;
    struct kept k;
    struct trace t;
    struct trace_shape kept[N_KEPT], own[N_OWN];
    uint64_t cols = (uint64_t)(c->n_layer + 1) * c->n_embd;
    list_own(own, &t, m);
    for (size_t i = 0; i < N_OWN; i++) cols += own[i].cols;
    for (uint32_t il = 0; il < (keep_all ? c->n_layer : 1); il++) {
        size_t n = list_kept(kept, &k, c, keep_all ? &c->layers[il] : NULL);
        for (size_t i = 0; i < n; i++) cols += kept[i].cols;
    }
    for (uint32_t il = 0; il < c->n_own; il++)
        cols += 2 * (uint64_t)c->layers[il].n_kv_head * c->layers[il].head_dim;
    return cols * n_max * sizeof(float) + kv_bytes(c, n_max, n_max, false);
}

static bool alloc_all(const struct backend *be, struct trace_shape *list, size_t n, uint32_t rows)
{
    for (size_t i = 0; i < n; i++)
        if (!tensor_alloc(be, list[i].t, rows, list[i].cols)) return false;
    return true;
}

static bool alloc_layers(struct trace *t)
{
    const struct config *c = &t->m->config;
    struct trace_shape list[N_KEPT];
    for (uint32_t il = 0; il <= c->n_layer; il++)
        if (!tensor_alloc(t->be, &t->inputs[il], t->n_max, c->n_embd)) return false;
    for (uint32_t il = 0; il < c->n_own; il++) {
        const struct layer_config *l = &c->layers[il];
        struct kv *d = &t->dkv[il];
        *d = (struct kv) { .n_kv_head = l->n_kv_head, .head_dim = l->head_dim };
        if (!tensor_alloc(t->be, &d->k, t->n_max, l->n_kv_head * l->head_dim) ||
            !tensor_alloc(t->be, &d->v, t->n_max, l->n_kv_head * l->head_dim))
            return false;
    }
    for (uint32_t il = 0; il < (t->keep_all ? c->n_layer : 1); il++) {
        size_t n = list_kept(list, &t->kept[il], c, t->keep_all ? &c->layers[il] : NULL);
        if (!alloc_all(t->be, list, n, t->n_max)) return false;
    }
    return true;
}

enum bz_status trace_open(struct trace *out, const struct model *m, const struct backend *be,
                          uint32_t n_max, bool keep_all, struct bz_err *err)
{
    const struct config *c = &m->config;
    struct trace t = { .m = m, .be = be, .n_max = n_max, .keep_all = keep_all };
    struct trace_shape own[N_OWN];
    t.inputs = mem_alloc(c->n_layer + 1, sizeof *t.inputs);
    t.kept = mem_alloc(c->n_layer, sizeof *t.kept);
    t.dkv = mem_alloc(c->n_own, sizeof *t.dkv);
    list_own(own, &t, m);
    bool ok = t.inputs && t.kept && t.dkv && alloc_all(be, own, N_OWN, n_max) && alloc_layers(&t);
    enum bz_status st =
        ok ? BZ_OK
           : fail(err, BZ_ERR_MEMORY, "not enough memory to train on %u tokens: it takes %llu MB",
                  n_max, (unsigned long long)(trace_bytes(m, n_max, keep_all) / 1000000));
    if (st == BZ_OK) st = kv_open(&t.kv, c, be, n_max, n_max, false, err);
    if (st) trace_close(&t);
    else *out = t;
    return st;
}

void trace_close(struct trace *t)
{
    if (!t->m) return;
    const struct config *c = &t->m->config;
    struct trace_shape list[N_KEPT], own[N_OWN];
    list_own(own, t, t->m);
    for (size_t i = 0; i < N_OWN; i++) tensor_free(t->be, own[i].t);
    for (uint32_t il = 0; t->inputs && il <= c->n_layer; il++) tensor_free(t->be, &t->inputs[il]);
    for (uint32_t il = 0; t->kept && il < c->n_layer; il++) {
        size_t n = list_kept(list, &t->kept[il], c, NULL);
        for (size_t i = 0; i < n; i++) tensor_free(t->be, list[i].t);
    }
    for (uint32_t il = 0; t->dkv && il < c->n_own; il++) {
        tensor_free(t->be, &t->dkv[il].k);
        tensor_free(t->be, &t->dkv[il].v);
    }
    mem_free(t->inputs);
    mem_free(t->kept);
    mem_free(t->dkv);
    kv_close(&t->kv);
    *t = (struct trace) { 0 };
}

/* ---- before the layers ---- */

static void keep_input(struct run *r, struct trace *t, uint32_t n)
{
    const struct model *m = t->m;
    const struct config *c = &m->config;
    float width = (float)c->n_embd;
    t->ids.rows = t->rope_global.rows = t->rope_swa.rows = n;
    op_embed(r, &t->inputs[0], &m->token_embd, &t->ids, sqrtf(width));
    if (c->n_ple) {
        op_embed(r, &t->ple, &m->ple_embd, &t->ids, sqrtf((float)c->n_ple));
        op_linear(r, &t->ple_proj, &t->inputs[0], &m->ple_proj);
        op_times(r, &t->ple_proj, 1.0f / sqrtf(width));
        op_head_norm(r, &t->ple_proj, &m->ple_proj_norm, c->n_layer, c->eps);
        op_add(r, &t->ple, &t->ple_proj);
        op_times(r, &t->ple, sqrtf(0.5f));
    }
    op_rope_table(r, &t->rope_global, &m->rope_global, 0);
    if (m->rope_swa.n_pair) op_rope_table(r, &t->rope_swa, &m->rope_swa, 0);
}

/* ---- one layer forward, everything kept ---- */

struct pass {
    struct run *r;
    struct trace *t;
    const struct model *m;
    const struct layer *l;
    const struct layer_config *lc;
    struct kept *k;
    uint32_t il, n;
    float eps;
};

static struct pass pass_of(struct run *r, struct trace *t, uint32_t il, uint32_t n)
{
    const struct model *m = t->m;
    return (struct pass) {
        r,
        t,
        m,
        &m->layers[il],
        &m->config.layers[il],
        &t->kept[t->keep_all ? il : 0],
        il,
        n,
        m->config.eps,
    };
}

/* y = x; y may have been made for a wider layer. */
static void copy(struct run *r, struct tensor *y, const struct tensor *x)
{
    y->cols = x->cols;
    y->rows = x->rows;
    op_copy_rows(r, y, x, 0);
}

/* y = W x (and adapters), with y as wide as W is high. */
static void linear(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w)
{
    y->cols = w->rows;
    op_linear(r, y, x, w);
}

/* The same for weights that read the same x. */
static void linears(struct run *r, struct tensor *const *y, const struct tensor *x,
                    const struct weight *const *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) y[i]->cols = w[i]->rows;
    op_linears(r, y, x, w, n);
}

static const struct tensor *turns(const struct pass *p)
{
    return p->lc->swa ? &p->t->rope_swa : &p->t->rope_global;
}

/* In place: each head normed, then rotated. */
static void norm_and_turn(const struct pass *p, struct tensor *x, const struct weight *w,
                          uint32_t n_head)
{
    op_head_norm(p->r, x, w, n_head, p->eps);
    op_rope(p->r, x, turns(p), n_head);
}

/* x += rms(branch) */
static void add_norm(const struct pass *p, struct tensor *x, const struct tensor *branch,
                     const struct weight *w)
{
    op_rms_norm(p->r, &p->t->normed, branch, w, p->eps);
    op_add(p->r, x, &p->t->normed);
}

/* The raw values: of a V = K layer those of the keys. */
static const struct tensor *raw_values(const struct pass *p)
{
    return weight_exists(&p->l->attn_v) ? &p->k->v_raw : &p->k->k_raw;
}

static void keep_queries_keys_values(const struct pass *p)
{
    struct kept *k = p->k;
    const struct layer *l = p->l;
    struct tensor *y[] = { &k->q_raw, &k->k_raw, &k->v_raw };
    const struct weight *w[] = { &l->attn_q, &l->attn_k, &l->attn_v };
    uint32_t n = p->il >= p->m->config.n_own ? 1 : weight_exists(&l->attn_v) ? 3 : 2;
    linears(p->r, y, &k->norm, w, n);
}

static void keep_attention(const struct pass *p, const struct tensor *x)
{
    struct run *r = p->r;
    struct trace *t = p->t;
    struct kept *k = p->k;
    const struct layer *l = p->l;
    struct kv *kv = kv_of(&t->kv, p->il);
    uint32_t n_head = p->m->config.n_head;
    op_rms_norm(r, &k->norm, x, &l->attn_norm, p->eps);
    keep_queries_keys_values(p);
    if (p->il < p->m->config.n_own) {
        copy(r, &t->k, &k->k_raw);
        copy(r, &t->v, raw_values(p));
        norm_and_turn(p, &t->k, &l->attn_k_norm, kv->n_kv_head);
        op_head_norm(r, &t->v, &none, kv->n_kv_head, p->eps);
        op_kv_write(r, kv, &t->k, &t->v, 0);
    }
    copy(r, &k->q, &k->q_raw);
    norm_and_turn(p, &k->q, &l->attn_q_norm, n_head);
    k->attn.cols = k->q.cols;
    op_attention(r, &k->attn, &k->q, kv, n_head, p->lc->swa ? p->m->config.n_swa : 0, 0);
    op_linear(r, &k->branch, &k->attn, &l->attn_output);
    copy(r, &k->x_mid, x);
    add_norm(p, &k->x_mid, &k->branch, &l->attn_post_norm);
}

static struct experts experts_of(const struct layer *l)
{
    return (struct experts) { &l->exp_gate_up, &l->exp_gate, &l->exp_up, &l->exp_down,
                              &l->exp_scale };
}

/* k->f = rms(mlp) + rms(experts) */
static void keep_experts(const struct pass *p)
{
    struct run *r = p->r;
    struct kept *k = p->k;
    const struct layer *l = p->l;
    const struct experts e = experts_of(l);
    op_rms_norm(r, &p->t->normed, &k->x_mid, &l->router_scale, p->eps);
    op_linear(r, &p->t->scores, &p->t->normed, &l->router);
    op_times(r, &p->t->scores, 1.0f / sqrtf((float)p->m->config.n_embd));
    op_route(r, &k->routing, &p->t->scores);
    op_rms_norm(r, &k->exp_in, &k->x_mid, &l->exp_norm, p->eps);
    op_experts(r, &k->exp_out, &k->exp_in, &k->routing, &e);
    op_rms_norm(r, &k->f, &k->mlp, &l->dense_post_norm, p->eps);
    add_norm(p, &k->f, &k->exp_out, &l->exp_post_norm);
}

static const struct tensor *ffn_result(const struct pass *p)
{
    return weight_exists(&p->l->router) ? &p->k->f : &p->k->mlp;
}

static void keep_feed_forward(const struct pass *p)
{
    struct run *r = p->r;
    struct kept *k = p->k;
    const struct layer *l = p->l;
    op_rms_norm(r, &k->ffn_in, &k->x_mid, &l->ffn_norm, p->eps);
    struct tensor *y[] = { &k->gate, &k->up };
    const struct weight *w[] = { &l->ffn_gate, &l->ffn_up };
    linears(r, y, &k->ffn_in, w, 2);
    copy(r, &k->act, &k->gate);
    op_gelu_mul(r, &k->act, &k->up, 0);
    op_linear(r, &k->mlp, &k->act, &l->ffn_down);
    if (weight_exists(&l->router)) keep_experts(p);
    copy(r, &k->x_ffn, &k->x_mid);
    add_norm(p, &k->x_ffn, ffn_result(p), &l->ffn_post_norm);
}

static void keep_per_layer_input(const struct pass *p, struct tensor *out)
{
    struct run *r = p->r;
    struct kept *k = p->k;
    uint32_t n_ple = p->m->config.n_ple;
    linear(r, &k->ple_gate, &k->x_ffn, &p->l->ple_gate);
    copy(r, &k->ple_act, &k->ple_gate);
    op_gelu_mul(r, &k->ple_act, &p->t->ple, p->il * n_ple);
    op_linear(r, &k->ple_branch, &k->ple_act, &p->l->ple_out);
    add_norm(p, out, &k->ple_branch, &p->l->ple_post_norm);
}

static void keep_layer(const struct pass *p)
{
    struct tensor *out = &p->t->inputs[p->il + 1];
    keep_attention(p, &p->t->inputs[p->il]);
    keep_feed_forward(p);
    copy(p->r, out, &p->k->x_ffn);
    if (p->m->config.n_ple) keep_per_layer_input(p, out);
    op_scale(p->r, out, &p->l->out_scale);
}

/* ---- one layer back ---- */

/* A gradient to be summed from nothing, `cols` wide. */
static struct tensor *fresh(const struct pass *p, struct tensor *d, uint32_t cols)
{
    d->cols = cols;
    op_zero(p->r, d, p->n);
    return d;
}

static void per_layer_input_bwd(const struct pass *p)
{
    struct run *r = p->r;
    struct trace *t = p->t;
    struct kept *k = p->k;
    const struct layer *l = p->l;
    uint32_t n_ple = p->m->config.n_ple;
    struct tensor *d_branch = fresh(p, &t->d_branch, p->m->config.n_embd);
    op_rms_norm_bwd(r, d_branch, &t->dx, &k->ple_branch, &l->ple_post_norm, p->eps);
    struct tensor *d_gate = fresh(p, &t->d_wide, n_ple);
    op_linear_bwd(r, d_gate, d_branch, &k->ple_act, &l->ple_out);
    op_gelu_mul_bwd(r, d_gate, NULL, &k->ple_gate, &t->ple, p->il * n_ple);
    op_linear_bwd(r, &t->dx, d_gate, &k->x_ffn, &l->ple_gate);
}

/* df, the gradient of the sum of both halves, goes back through the experts and the router into dx.
 * What is left for the dense half is in t->d_branch afterwards. */
static void experts_bwd(const struct pass *p, struct tensor *df)
{
    struct run *r = p->r;
    struct trace *t = p->t;
    struct kept *k = p->k;
    const struct layer *l = p->l;
    const struct experts e = experts_of(l);
    uint32_t d = p->m->config.n_embd;
    struct tensor *d_out = fresh(p, &t->d_branch, d);
    op_rms_norm_bwd(r, d_out, df, &k->exp_out, &l->exp_post_norm, p->eps);
    struct tensor *d_in = fresh(p, &t->d_exp, d);
    op_experts_bwd(r, d_in, &t->d_weights, d_out, &k->exp_in, &k->routing, &e);
    op_rms_norm_bwd(r, &t->dx, d_in, &k->x_mid, &l->exp_norm, p->eps);
    op_router_bwd(r, &t->dx, &t->d_weights, &k->x_mid, &k->routing, &l->router, &l->router_scale,
                  p->eps);
    op_rms_norm_bwd(r, fresh(p, &t->d_branch, d), df, &k->mlp, &l->dense_post_norm, p->eps);
}

static void feed_forward_bwd(const struct pass *p)
{
    struct run *r = p->r;
    struct trace *t = p->t;
    struct kept *k = p->k;
    const struct layer *l = p->l;
    uint32_t d = p->m->config.n_embd;
    struct tensor *d_mlp = fresh(p, &t->d_embd, d);
    op_rms_norm_bwd(r, d_mlp, &t->dx, ffn_result(p), &l->ffn_post_norm, p->eps);
    if (weight_exists(&l->router)) {
        experts_bwd(p, d_mlp);
        d_mlp = &t->d_branch;
    }
    struct tensor *d_gate = fresh(p, &t->d_wide, k->gate.cols);
    op_linear_bwd(r, d_gate, d_mlp, &k->act, &l->ffn_down);
    t->d_up.cols = k->gate.cols;
    op_gelu_mul_bwd(r, d_gate, &t->d_up, &k->gate, &k->up, 0);
    struct tensor *d_in = fresh(p, &t->d_embd, d);
    op_linear_bwd(r, d_in, d_gate, &k->ffn_in, &l->ffn_gate);
    op_linear_bwd(r, d_in, &t->d_up, &k->ffn_in, &l->ffn_up);
    op_rms_norm_bwd(r, &t->dx, d_in, &k->x_mid, &l->ffn_norm, p->eps);
}

/* dkv has the gradients from this layer and from the layers that share its keys and values. */
static void keys_values_bwd(const struct pass *p, struct tensor *d_norm)
{
    struct run *r = p->r;
    struct kept *k = p->k;
    const struct layer *l = p->l;
    struct kv *dkv = &p->t->dkv[p->il];
    dkv->k.rows = dkv->v.rows = p->n;
    op_head_norm_rope_bwd(r, &dkv->k, &k->k_raw, &l->attn_k_norm, turns(p), dkv->n_kv_head, p->eps);
    op_head_norm_rope_bwd(r, &dkv->v, raw_values(p), &none, NULL, dkv->n_kv_head, p->eps);
    if (weight_exists(&l->attn_v)) op_linear_bwd(r, d_norm, &dkv->v, &k->norm, &l->attn_v);
    else op_add(r, &dkv->k, &dkv->v);
    op_linear_bwd(r, d_norm, &dkv->k, &k->norm, &l->attn_k);
}

static void attention_bwd(const struct pass *p)
{
    struct run *r = p->r;
    struct trace *t = p->t;
    struct kept *k = p->k;
    const struct layer *l = p->l;
    const struct config *c = &p->m->config;
    struct tensor *d_branch = fresh(p, &t->d_branch, c->n_embd);
    op_rms_norm_bwd(r, d_branch, &t->dx, &k->branch, &l->attn_post_norm, p->eps);
    struct tensor *d_attn = fresh(p, &t->d_attn, k->attn.cols);
    op_linear_bwd(r, d_attn, d_branch, &k->attn, &l->attn_output);
    t->d_q.cols = k->q.cols;
    op_attention_bwd(r, &t->d_q, &t->dkv[p->lc->donor], d_attn, &k->q, kv_of(&t->kv, p->il),
                     c->n_head, p->lc->swa ? c->n_swa : 0);
    op_head_norm_rope_bwd(r, &t->d_q, &k->q_raw, &l->attn_q_norm, turns(p), c->n_head, p->eps);
    struct tensor *d_norm = fresh(p, &t->d_embd, c->n_embd);
    op_linear_bwd(r, d_norm, &t->d_q, &k->norm, &l->attn_q);
    if (p->il < c->n_own) keys_values_bwd(p, d_norm);
    op_rms_norm_bwd(r, &t->dx, d_norm, &t->inputs[p->il], &l->attn_norm, p->eps);
}

static void layer_bwd(const struct pass *p)
{
    op_scale(p->r, &p->t->dx, &p->l->out_scale);
    if (p->m->config.n_ple) per_layer_input_bwd(p);
    feed_forward_bwd(p);
    attention_bwd(p);
}

/* ---- the whole ---- */

void trace_pack(struct run *r, struct trace *t, const int32_t *starts, uint32_t n)
{
    if (starts) {
        t->starts.rows = n;
        op_write(r, &t->starts, 0, starts, n);
    }
    for (uint32_t il = 0; il < t->m->config.n_own; il++)
        t->kv.layers[il].starts = starts ? &t->starts : NULL;
}

static void forward_kept(struct run *r, struct trace *t, uint32_t n)
{
    keep_input(r, t, n);
    for (uint32_t il = 0; il < t->m->config.n_layer; il++) {
        struct pass p = pass_of(r, t, il, n);
        keep_layer(&p);
    }
    const struct tensor *last = &t->inputs[t->m->config.n_layer];
    op_rms_norm(r, &t->result, last, &t->m->output_norm, t->m->config.eps);
}

/* Loss and the gradient of the final norm's result, which lands in t->d_embd. */
static void losses(struct run *r, struct trace *t, uint32_t n, float weight)
{
    t->targets.rows = n;
    t->d_embd.cols = t->m->config.n_embd;
    op_head_loss(r, &t->loss, &t->d_embd, &t->result, model_head(t->m), &t->targets,
                 t->m->config.softcap, weight);
}

void trace_put(struct run *r, struct trace *t, const int32_t *ids, const int32_t *targets,
               uint32_t n)
{
    t->ids.rows = t->targets.rows = n;
    op_write(r, &t->ids, 0, ids, n);
    op_write(r, &t->targets, 0, targets, n);
}

void trace_losses(struct run *r, struct trace *t, uint32_t n)
{
    forward_kept(r, t, n);
    losses(r, t, n, 0);
}

void trace_gradients(struct run *r, struct trace *t, uint32_t n, float weight)
{
    const struct config *c = &t->m->config;
    forward_kept(r, t, n);
    losses(r, t, n, weight);
    op_zero(r, &t->dx, n);
    op_rms_norm_bwd(r, &t->dx, &t->d_embd, &t->inputs[c->n_layer], &t->m->output_norm, c->eps);
    for (uint32_t il = 0; il < c->n_own; il++) {
        op_zero(r, &t->dkv[il].k, n);
        op_zero(r, &t->dkv[il].v, n);
    }
    for (uint32_t il = c->n_layer; il-- > 0;) {
        struct pass p = pass_of(r, t, il, n);
        if (!t->keep_all) keep_layer(&p);
        layer_bwd(&p);
    }
}

void model_losses(struct run *r, struct trace *t, const int32_t *ids, const int32_t *targets,
                  uint32_t n)
{
    trace_put(r, t, ids, targets, n);
    trace_losses(r, t, n);
}

void model_train_step(struct run *r, struct trace *t, const int32_t *ids, const int32_t *targets,
                      uint32_t n, float weight)
{
    trace_put(r, t, ids, targets, n);
    trace_gradients(r, t, n, weight);
}
