/* synth_shapes.c - the members of the family, and the tensors each of them has.
 *
 * Knows names, shapes and what scale of weights keeps activations near 1; knows nothing of bytes.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "cli/synth.h"

/* clang-format off */
static const struct synth_tower tower_small = {
    .n_layer = 16, .n_embd = 768, .n_ff = 3072, .head_dim = 64, .n_pos = 10240, .clamps = true,
    .a_layer = 12, .a_embd = 1024, .a_ff = 4096, .a_head_dim = 128, .a_out = 1536,
};

static const struct synth_tower tower_large = {
    .n_layer = 27, .n_embd = 1152, .n_ff = 4304, .head_dim = 72, .n_pos = 10240,
};

static const struct synth_tower tower_tiny_av = {
    .n_layer = 2, .n_embd = 64, .n_ff = 128, .head_dim = 32, .n_pos = 64, .clamps = true,
    .a_layer = 2, .a_embd = 64, .a_ff = 128, .a_head_dim = 16, .a_out = 96,
};

static const struct synth_tower tower_tiny = {
    .n_layer = 2, .n_embd = 64, .n_ff = 144, .head_dim = 32, .n_pos = 64,
};

/* The tiny ones keep what makes each kind special: rows of 256 weights where K-quants are wanted,
 * widths that force the fallback where the real model has them, windows shorter than a prompt. */
static const struct synth_size sizes[] = {
    { .name = "e2b", .label = "E2B", .n_layer = 35, .n_embd = 1536, .n_head = 8, .n_kv_swa = 1,
      .n_kv_global = 1, .dim_swa = 256, .dim_global = 512, .period = 5, .n_swa = 512,
      .n_ctx = 131072, .n_vocab = 262144, .n_ff = 6144, .n_ff_shared = 12288, .n_shared = 20,
      .n_ple = 256, .tower = &tower_small },
    { .name = "e4b", .label = "E4B", .n_layer = 42, .n_embd = 2560, .n_head = 8, .n_kv_swa = 2,
      .n_kv_global = 2, .dim_swa = 256, .dim_global = 512, .period = 6, .n_swa = 512,
      .n_ctx = 131072, .n_vocab = 262144, .n_ff = 10240, .n_ff_shared = 10240, .n_shared = 18,
      .n_ple = 256, .tower = &tower_small },
    { .name = "12b", .label = "12B", .n_layer = 48, .n_embd = 3840, .n_head = 16, .n_kv_swa = 8,
      .n_kv_global = 1, .dim_swa = 256, .dim_global = 512, .period = 6, .n_swa = 1024,
      .n_ctx = 262144, .n_vocab = 262144, .n_ff = 15360, .v_is_k = true },
    { .name = "26b-a4b", .label = "26B-A4B", .n_layer = 30, .n_embd = 2816, .n_head = 16,
      .n_kv_swa = 8, .n_kv_global = 2, .dim_swa = 256, .dim_global = 512, .period = 6,
      .n_swa = 1024, .n_ctx = 262144, .n_vocab = 262144, .n_ff = 2112, .n_expert = 128,
      .n_expert_used = 8, .n_ff_expert = 704, .v_is_k = true, .tower = &tower_large },
    { .name = "diffusion", .label = "Diffusion 26B-A4B", .n_layer = 30, .n_embd = 2816,
      .n_head = 16, .n_kv_swa = 8, .n_kv_global = 2, .dim_swa = 256, .dim_global = 512,
      .period = 6, .n_swa = 1024, .n_ctx = 262144, .n_vocab = 262144, .n_ff = 2112,
      .n_expert = 128, .n_expert_used = 8, .n_ff_expert = 704, .v_is_k = true, .n_canvas = 256 },
    { .name = "31b", .label = "31B", .n_layer = 60, .n_embd = 5376, .n_head = 32, .n_kv_swa = 16,
      .n_kv_global = 4, .dim_swa = 256, .dim_global = 512, .period = 6, .n_swa = 1024,
      .n_ctx = 262144, .n_vocab = 262144, .n_ff = 21504, .v_is_k = true, .tower = &tower_large },
    { .name = "tiny-e2b", .label = "tiny E2B", .n_layer = 8, .n_embd = 256, .n_head = 4,
      .n_kv_swa = 1, .n_kv_global = 1, .dim_swa = 64, .dim_global = 128, .period = 4, .n_swa = 32,
      .n_ctx = 4096, .n_vocab = 1024, .n_ff = 256, .n_ff_shared = 512, .n_shared = 4,
      .n_ple = 256, .tower = &tower_tiny_av },
    { .name = "tiny-e4b", .label = "tiny E4B", .n_layer = 6, .n_embd = 256, .n_head = 4,
      .n_kv_swa = 2, .n_kv_global = 2, .dim_swa = 64, .dim_global = 128, .period = 3, .n_swa = 48,
      .n_ctx = 4096, .n_vocab = 1024, .n_ff = 768, .n_ff_shared = 768, .n_shared = 3,
      .n_ple = 128, .tower = &tower_tiny_av },
    { .name = "tiny-dense", .label = "tiny dense", .n_layer = 6, .n_embd = 512, .n_head = 4,
      .n_kv_swa = 2, .n_kv_global = 1, .dim_swa = 64, .dim_global = 128, .period = 3, .n_swa = 64,
      .n_ctx = 4096, .n_vocab = 1024, .n_ff = 512, .v_is_k = true, .tower = &tower_tiny },
    { .name = "tiny-wide", .label = "tiny wide", .n_layer = 2, .n_embd = 2816, .n_head = 2,
      .n_kv_swa = 1, .n_kv_global = 1, .dim_swa = 64, .dim_global = 128, .period = 2, .n_swa = 32,
      .n_ctx = 4096, .n_vocab = 512, .n_ff = 512, .v_is_k = true, .tower = &tower_tiny },
    { .name = "tiny-widest", .label = "tiny widest", .n_layer = 2, .n_embd = 5376, .n_head = 2,
      .n_kv_swa = 1, .n_kv_global = 1, .dim_swa = 64, .dim_global = 128, .period = 2, .n_swa = 32,
      .n_ctx = 4096, .n_vocab = 512, .n_ff = 512, .v_is_k = true, .tower = &tower_tiny },
    { .name = "tiny-moe", .label = "tiny MoE", .n_layer = 6, .n_embd = 256, .n_head = 4,
      .n_kv_swa = 2, .n_kv_global = 1, .dim_swa = 64, .dim_global = 128, .period = 3, .n_swa = 40,
      .n_ctx = 4096, .n_vocab = 1024, .n_ff = 160, .n_expert = 16, .n_expert_used = 4,
      .n_ff_expert = 96, .v_is_k = true, .tower = &tower_tiny },
    { .name = "tiny-moe-split", .label = "tiny MoE, old names", .n_layer = 4, .n_embd = 256,
      .n_head = 4, .n_kv_swa = 2, .n_kv_global = 2, .dim_swa = 64, .dim_global = 128, .period = 2,
      .n_swa = 24, .n_ctx = 4096, .n_vocab = 1024, .n_ff = 96, .n_expert = 12, .n_expert_used = 3,
      .n_ff_expert = 160, .v_is_k = true, .old_experts = true, .tower = &tower_tiny },
    { .name = "tiny-diffusion", .label = "tiny Diffusion", .n_layer = 6, .n_embd = 256,
      .n_head = 4, .n_kv_swa = 2, .n_kv_global = 1, .dim_swa = 64, .dim_global = 128, .period = 3,
      .n_swa = 40, .n_ctx = 4096, .n_vocab = 1024, .n_ff = 160, .n_expert = 16,
      .n_expert_used = 4, .n_ff_expert = 96, .v_is_k = true, .n_canvas = 48 },
};
/* clang-format on */

const struct synth_size *synth_size_at(size_t i)
{
    return i < sizeof sizes / sizeof *sizes ? &sizes[i] : NULL;
}

const struct synth_size *synth_size_find(const char *name)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(name, sizes[i].name) == 0) return &sizes[i];
    return NULL;
}

struct synth_tensor *synth_plan_add(struct synth_plan *p, uint32_t type, const uint64_t ne[4],
                                    float mean, float std, const char *fmt, ...)
{
    if (p->n == p->cap && !p->failed) {
        size_t cap = p->cap ? 2 * p->cap : 256;
        struct synth_tensor *grown = mem_grow(p->tensors, cap, sizeof *grown);
        p->failed = !grown;
        if (grown) p->tensors = grown;
        if (grown) p->cap = cap;
    }
    if (p->failed) return NULL;
    struct synth_tensor *t = &p->tensors[p->n++];
    *t = (struct synth_tensor) { .type = type, .mean = mean, .std = std, .n_weights = 1 };
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->name, sizeof t->name, fmt, ap);
    va_end(ap);
    for (uint32_t i = 0; i < 4; i++) {
        t->ne[i] = ne[i] ? ne[i] : 1;
        if (ne[i]) t->n_dims = i + 1;
        t->n_weights *= t->ne[i];
    }
    return t;
}

/* ---- the text model ----
 *
 * Scales. The embedding has 1/sqrt(n_embd), so that the scaled input and, through the tied head,
 * the logits have deviation 1; a matrix 1/sqrt(inputs), which keeps the size of what it is given.
 * Norms are near 1: every branch then adds about 1 to a stream that layer_output_scale shrinks, so
 * that it settles instead of growing. Over all layers the input fades to a fiftieth: a model whose
 * last state is still its input says the same token for ever. */

static void add_vector(struct synth_plan *p, uint32_t n, float mean, float std, const char *prefix,
                       const char *name)
{
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { n }, mean, std, "%s%s", prefix, name);
}

static void add_norm(struct synth_plan *p, uint32_t n, const char *prefix, const char *name)
{
    add_vector(p, n, 1.0f, 0.1f, prefix, name);
}

/* n_mat 0: a plain matrix. */
static void add_matrix(struct synth_plan *p, uint32_t n_in, uint32_t n_out, uint32_t n_mat,
                       const char *prefix, const char *name)
{
    float std = 1.0f / sqrtf((float)n_in);
    synth_plan_add(p, QUANT_BF16, (uint64_t[4]) { n_in, n_out, n_mat }, 0, std, "%s%s", prefix,
                   name);
}

/* The gated MLP through which a canvas sees what the step before predicted. */
static void plan_self_conditioning(struct synth_plan *p)
{
    const struct synth_size *s = p->options.size;
    add_norm(p, s->n_embd, "self_cond_", p->options.one_scale ? "norm.weight" : "pre_norm.weight");
    add_matrix(p, s->n_embd, s->n_ff, 0, "self_cond_", "gate.weight");
    add_matrix(p, s->n_embd, s->n_ff, 0, "self_cond_", "up.weight");
    add_matrix(p, s->n_ff, s->n_embd, 0, "self_cond_", "down.weight");
}

static void plan_globals(struct synth_plan *p)
{
    const struct synth_size *s = p->options.size;
    uint32_t n_vocab = p->options.n_vocab, n_ple = s->n_ple * s->n_layer;
    synth_plan_add(p, QUANT_BF16, (uint64_t[4]) { s->n_embd, n_vocab }, 0,
                   1.0f / sqrtf((float)s->n_embd), "token_embd.weight");
    add_norm(p, s->n_embd, "", "output_norm.weight");
    struct synth_tensor *rope = synth_plan_add(p, QUANT_F32, (uint64_t[4]) { s->dim_global / 2 }, 0,
                                               0, "rope_freqs.weight");
    if (rope) rope->is_rope = true;
    if (s->n_canvas) plan_self_conditioning(p);
    if (!n_ple) return;
    /* Rows are multiplied by sqrt(n_ple), and met by a projection of deviation 1. */
    synth_plan_add(p, QUANT_BF16, (uint64_t[4]) { n_ple, n_vocab }, 0,
                   1.0f / sqrtf((float)s->n_ple), "per_layer_token_embd.weight");
    add_matrix(p, s->n_embd, n_ple, 0, "", "per_layer_model_proj.weight");
    add_norm(p, s->n_ple, "", "per_layer_proj_norm.weight");
}

/* Scores are q.k over head_dim numbers of size 1 (the scale is 1): deviation sqrt(head_dim) times
 * both norms' weights. With 3/sqrt(head_dim) on the keys it is 3: some keys win, none alone. */
static void plan_attention(struct synth_plan *p, uint32_t il, const char *blk)
{
    const struct synth_size *s = p->options.size;
    bool swa = synth_is_swa(s, il), owns = il < s->n_layer - s->n_shared;
    uint32_t dim = swa ? s->dim_swa : s->dim_global;
    uint32_t n_kv = (swa ? s->n_kv_swa : s->n_kv_global) * dim, n_q = s->n_head * dim;
    /* Dead on layers that share keys. Most files carry them all the same; Google's Q4_0 do not. */
    bool has_kv = owns || p->options.mix != MIX_Q4_0;
    float k_norm = 3.0f / sqrtf((float)dim);
    add_norm(p, s->n_embd, blk, "attn_norm.weight");
    add_matrix(p, s->n_embd, n_q, 0, blk, "attn_q.weight");
    if (has_kv) add_matrix(p, s->n_embd, n_kv, 0, blk, "attn_k.weight");
    if (has_kv && (swa || !s->v_is_k)) add_matrix(p, s->n_embd, n_kv, 0, blk, "attn_v.weight");
    add_matrix(p, n_q, s->n_embd, 0, blk, "attn_output.weight");
    add_norm(p, dim, blk, "attn_q_norm.weight");
    if (has_kv) add_vector(p, dim, k_norm, k_norm / 8, blk, "attn_k_norm.weight");
    add_norm(p, s->n_embd, blk, "post_attention_norm.weight");
}

static void plan_experts(struct synth_plan *p, const char *blk)
{
    const struct synth_size *s = p->options.size;
    uint32_t n_ff = s->n_ff_expert, n_exp = s->n_expert;
    /* The router's input has length 1, so its logits have the deviation of its rows: 2 makes some
     * experts clearly preferred, and which ones depends on the token. */
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { s->n_embd, n_exp }, 0, 2.0f,
                   "%sffn_gate_inp.weight", blk);
    add_vector(p, s->n_embd, 1.0f, 0.2f, blk, "ffn_gate_inp.scale");
    if (s->old_experts) {
        add_matrix(p, s->n_embd, n_ff, n_exp, blk, "ffn_gate_exps.weight");
        add_matrix(p, s->n_embd, n_ff, n_exp, blk, "ffn_up_exps.weight");
    } else {
        add_matrix(p, s->n_embd, 2 * n_ff, n_exp, blk, "ffn_gate_up_exps.weight");
    }
    add_matrix(p, n_ff, s->n_embd, n_exp, blk, "ffn_down_exps.weight");
    add_vector(p, n_exp, 1.0f, 0.2f, blk,
               s->old_experts ? "ffn_gate_inp.per_expert_scale" : "ffn_down_exps.scale");
    add_norm(p, s->n_embd, blk, "pre_ffw_norm_2.weight");
    add_norm(p, s->n_embd, blk, "post_ffw_norm_1.weight");
    add_norm(p, s->n_embd, blk, "post_ffw_norm_2.weight");
}

static void plan_layer(struct synth_plan *p, uint32_t il)
{
    const struct synth_size *s = p->options.size;
    uint32_t n_ff = il < s->n_layer - s->n_shared ? s->n_ff : s->n_ff_shared;
    char blk[24];
    snprintf(blk, sizeof blk, "blk.%u.", il);
    plan_attention(p, il, blk);
    add_norm(p, s->n_embd, blk, "ffn_norm.weight");
    add_matrix(p, s->n_embd, n_ff, 0, blk, "ffn_gate.weight");
    add_matrix(p, s->n_embd, n_ff, 0, blk, "ffn_up.weight");
    add_matrix(p, n_ff, s->n_embd, 0, blk, "ffn_down.weight");
    add_norm(p, s->n_embd, blk, "post_ffw_norm.weight");
    if (s->n_expert) plan_experts(p, blk);
    if (s->n_ple) {
        add_matrix(p, s->n_embd, s->n_ple, 0, blk, "inp_gate.weight");
        add_matrix(p, s->n_ple, s->n_embd, 0, blk, "proj.weight");
        add_norm(p, s->n_embd, blk, "post_norm.weight");
    }
    float fade = fmaxf(0.5f, powf(0.02f, 1.0f / (float)s->n_layer));
    add_vector(p, 1, fade, 0.03f, blk, "layer_output_scale.weight");
    if (s->n_canvas && !p->options.one_scale)
        add_vector(p, 1, fade, 0.03f, blk, "enc_layer_output_scale.weight");
}

/* Give every tensor its type, now that the whole list is known. */
static void choose_types(struct synth_plan *p)
{
    struct mix mix = { .id = p->options.mix, .ollama = p->options.ollama };
    for (size_t i = 0; i < p->n; i++) mix_add(&mix, str_of(p->tensors[i].name));
    for (size_t i = 0; i < p->n; i++) {
        struct synth_tensor *t = &p->tensors[i];
        t->type = mix_type(&mix, str_of(t->name), t->n_dims, t->ne, t->type);
        const struct quant_format *f = quant_find(t->type);
        t->n_bytes = t->n_weights / f->block * f->bytes;
        p->n_params += t->n_weights;
        p->n_bytes += (t->n_bytes + 31) / 32 * 32;
    }
}

enum bz_status synth_plan_make(struct synth_plan *out, const struct synth_options *options,
                               struct bz_err *err)
{
    struct synth_plan p = { .options = *options };
    const struct synth_size *s = options->size;
    if (!p.options.n_ctx) p.options.n_ctx = s->n_ctx;
    if (!p.options.n_vocab) p.options.n_vocab = s->n_vocab;
    if (options->ollama && !s->tower)
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "%s is not published with its towers in one file; there is no such layout of "
                    "it",
                    s->name);
    plan_globals(&p);
    for (uint32_t il = 0; il < s->n_layer; il++) plan_layer(&p, il);
    if (options->ollama) synth_plan_towers(&p);
    if (p.failed) {
        enum bz_status st = fail_memory(err, (p.cap + 128) * 2 * sizeof *p.tensors);
        synth_plan_free(&p);
        return st;
    }
    choose_types(&p);
    *out = p;
    return BZ_OK;
}

void synth_plan_free(struct synth_plan *p)
{
    mem_free(p->tensors);
    *p = (struct synth_plan) { 0 };
}
