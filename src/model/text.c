/* text.c - Gemma 4's text network. This file is the model's definition: MODEL.md says the same in
 * words, step by step; tape_at gives its step numbers.
 *
 * Which of its tensors exist decides what a layer computes. Steps of one row and of many are the
 * same. Each statement makes one call: C leaves the order of arguments open, and compilers differ.
 */
#include "model/text.h"

#include <math.h>

static const struct weight none;

float text_ple_scale(const struct model *m)
{
    return sqrtf((float)m->config.n_ple);
}

/* 2. Per-layer inputs, for all layers at once: table row and projection of the input, mixed. */
static struct value *per_layer_inputs(struct tape *t, struct text_step *s, struct value *ids,
                                      struct value *x)
{
    const struct model *m = s->m;
    tape_at(t, -1, 2);
    s->ple_rows = tape_embed(t, &m->ple_embd, ids, text_ple_scale(m));
    struct value *b = tape_linear(t, x, &m->ple_proj);
    b = tape_times(t, b, 1.0f / sqrtf((float)m->config.n_embd));
    b = tape_head_norm(t, b, &m->ple_proj_norm, m->config.n_ple);
    b = tape_add(t, s->ple_rows, b);
    b = tape_times(t, b, sqrtf(0.5f));
    return tape_tap(t, "ple", -1, b);
}

/* 1. Input: the token's row of the table, times sqrt(n_embd). */
static struct value *input(struct tape *t, struct text_step *s, struct value *ids)
{
    const struct model *m = s->m;
    tape_at(t, -1, 1);
    struct value *x = tape_embed(t, &m->token_embd, ids, sqrtf((float)m->config.n_embd));
    tape_tap(t, "embd", -1, x);
    if (m->config.n_ple) s->ple = per_layer_inputs(t, s, ids, x);
    return x;
}

/* The angles of a value's rows. */
static void rotate_like(struct tape *t, struct text_step *s, const struct value *x)
{
    s->angles[0] = tape_angles(t, &s->m->rope_global, x->row0, x->at.rows);
    if (s->m->rope_swa.n_pair) s->angles[1] = tape_angles(t, &s->m->rope_swa, x->row0, x->at.rows);
}

/* After the last layer that writes a cache, rows without logits are finished. On E2B they skip 20
 * of 35 layers, and those are the widest. */
static void drop_finished_rows(struct tape *t, struct text_step *s, struct value **x,
                               struct value **h)
{
    uint32_t leaving = (*x)->at.rows - s->n_out;
    if (!leaving) return;
    *x = tape_rows(t, *x, leaving, s->n_out);
    *h = tape_rows(t, *h, leaving, s->n_out);
    if (s->ple) s->ple = tape_rows(t, s->ple, leaving, s->n_out);
    rotate_like(t, s, *x);
}

/* 4. Keys and values of the normed state h, for the attention `to`. Without attn_v the raw key
 * projection is the values. Those of a canvas go to its attention alone, not into the cache. */
static void keys_and_values(struct tape *t, const struct text_step *s, uint32_t il, struct value *h,
                            struct attend *to)
{
    const struct layer_config *lc = &s->m->config.layers[il];
    const struct layer *l = &s->m->layers[il];
    uint32_t size = lc->head_dim;
    tape_at(t, (int)il, 4);
    struct value *k = tape_linear(t, h, &l->attn_k), *v = k;
    if (weight_exists(&l->attn_v)) v = tape_linear(t, h, &l->attn_v);
    k = tape_head_norm(t, k, &l->attn_k_norm, size);
    k = tape_rope(t, k, s->angles[lc->swa], size);
    v = tape_head_norm(t, v, &none, size);
    tape_tap(t, "k", (int)il, k);
    tape_tap(t, "v", (int)il, v);
    if (s->canvas) to->k = k, to->v = v;
    else tape_kv_write(t, to->kv, k, v);
}

/* 3, 4 and 5. Attention of the rows that go on over the layer's (or its donor's) cache. A canvas
 * has another mask. */
static struct value *attention(struct tape *t, struct text_step *s, uint32_t il, struct value **x)
{
    const struct config *c = &s->m->config;
    const struct layer_config *lc = &c->layers[il];
    const struct layer *l = &s->m->layers[il];
    struct attend seen = { .kv = kv_of(s->kv, il),
                           .mask = { s->canvas ? MASK_PREFIX : MASK_CAUSAL,
                                     lc->swa ? c->n_swa : 0 },
                           .n_head = c->n_head,
                           .scale = 1 };
    tape_at(t, (int)il, 3);
    struct value *h = tape_rms_norm(t, *x, &l->attn_norm);
    tape_tap(t, "attn_norm", (int)il, h);
    if (il < c->n_own) keys_and_values(t, s, il, h, &seen);
    if (il + 1 == c->n_own) drop_finished_rows(t, s, x, &h);
    tape_at(t, (int)il, 5);
    struct value *q = tape_linear(t, h, &l->attn_q);
    q = tape_head_norm(t, q, &l->attn_q_norm, lc->head_dim);
    q = tape_rope(t, q, s->angles[lc->swa], lc->head_dim);
    tape_tap(t, "q", (int)il, q);
    struct value *o = tape_attend(t, q, &seen);
    tape_tap(t, "attn", (int)il, o);
    return tape_linear(t, o, &l->attn_output);
}

/* 6. Feed-forward: down(gelu(gate h) * up h). */
static struct value *feed_forward(struct tape *t, const struct layer *l, int il, struct value *x)
{
    tape_at(t, il, 6);
    struct value *h = tape_rms_norm(t, x, &l->ffn_norm);
    struct value *gate = tape_linear(t, h, &l->ffn_gate);
    struct value *up = tape_linear(t, h, &l->ffn_up);
    h = tape_gelu_mul(t, gate, up);
    return tape_linear(t, h, &l->ffn_down);
}

/* 7. Experts of x, the state after attention; f is the dense branch, to which they are added. */
static struct value *experts(struct tape *t, const struct config *c, const struct layer *l, int il,
                             struct value *x, struct value *f)
{
    const struct experts e = { &l->exp_gate_up, &l->exp_gate, &l->exp_up, &l->exp_down,
                               &l->exp_scale };
    tape_at(t, il, 7);
    struct value *u = tape_rms_norm(t, x, &l->router_scale);
    u = tape_linear(t, u, &l->router);
    u = tape_times(t, u, 1.0f / sqrtf((float)c->n_embd));
    struct chosen by = tape_route(t, u, c->n_expert_used);
    tape_tap(t, "router_ids", il, by.ids);
    tape_tap(t, "router_weights", il, by.weights);
    struct value *y = tape_rms_norm(t, x, &l->exp_norm);
    y = tape_experts(t, y, by, &e);
    y = tape_rms_norm(t, y, &l->exp_post_norm);
    tape_tap(t, "moe_out", il, y);
    f = tape_rms_norm(t, f, &l->dense_post_norm);
    return tape_add(t, y, f);
}

/* 8. The per-layer input gates a narrow detour. */
static struct value *per_layer_branch(struct tape *t, const struct text_step *s, uint32_t il,
                                      struct value *x)
{
    const struct layer *l = &s->m->layers[il];
    uint32_t n_ple = s->m->config.n_ple;
    tape_at(t, (int)il, 8);
    struct value *by = tape_cols(t, s->ple, il * n_ple, n_ple);
    struct value *g = tape_linear(t, x, &l->ple_gate);
    g = tape_gelu_mul(t, g, by);
    return tape_linear(t, g, &l->ple_out);
}

/* The residual: a branch is added through a norm of its own. */
static struct value *residual(struct tape *t, struct value *x, struct value *branch,
                              const struct weight *norm)
{
    branch = tape_rms_norm(t, branch, norm);
    return tape_add(t, x, branch);
}

/* The encoder of a diffusion model has scales of its own. */
static const struct weight *out_scale(const struct text_step *s, uint32_t il)
{
    const struct layer *l = &s->m->layers[il];
    return !s->canvas && weight_exists(&l->enc_out_scale) ? &l->enc_out_scale : &l->out_scale;
}

static struct value *layer(struct tape *t, struct text_step *s, uint32_t il, struct value *x)
{
    const struct layer *l = &s->m->layers[il];
    struct value *b = attention(t, s, il, &x);
    x = residual(t, x, b, &l->attn_post_norm);
    tape_tap(t, "attn_out", (int)il, x);
    b = feed_forward(t, l, (int)il, x);
    if (weight_exists(&l->router)) b = experts(t, &s->m->config, l, (int)il, x, b);
    tape_tap(t, "ffn", (int)il, b);
    x = residual(t, x, b, &l->ffn_post_norm);
    tape_tap(t, "ffn_out", (int)il, x);
    if (s->ple) {
        b = per_layer_branch(t, s, il, x);
        x = residual(t, x, b, &l->ple_post_norm);
        tape_tap(t, "ple_out", (int)il, x);
    }
    tape_at(t, (int)il, 9);
    x = tape_scale(t, x, out_scale(s, il));
    return tape_tap(t, "out", (int)il, x);
}

struct value *text_layers(struct tape *t, struct text_step *s, struct value *x)
{
    tape_at(t, -1, 5);
    rotate_like(t, s, x);
    for (uint32_t il = 0; il < s->m->config.n_layer; il++) {
        tape_checkpoint(t);
        x = layer(t, s, il, x);
    }
    tape_at(t, -1, 10);
    x = tape_rms_norm(t, x, &s->m->output_norm);
    return tape_tap(t, "result_norm", -1, x);
}

struct value *text_forward(struct tape *t, struct text_step *s, struct value *ids)
{
    struct value *x = input(t, s, ids);
    return text_layers(t, s, x);
}

/* 11. Logits. */
struct value *text_logits(struct tape *t, const struct model *m, struct value *x)
{
    tape_at(t, -1, 11);
    struct value *z = tape_linear(t, x, model_head(m));
    z = tape_softcap(t, z, m->config.softcap);
    return tape_tap(t, "logits", -1, z);
}
