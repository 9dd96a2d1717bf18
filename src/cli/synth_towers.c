/* synth_towers.c - the image and sound towers of a single-file model, under the names that Ollama's
 * converter gives them. The text engine only has to step over them. */
#include <math.h>

#include "cli/synth.h"

/* The sound front end: two 3 x 3 convolutions over 128 mel bins. */
enum { CONV_1 = 128, CONV_2 = 32, CONV_TAPS = 5, PATCH = 16 };

static void add_vector(struct synth_plan *p, uint32_t n, const char *prefix, uint32_t il,
                       const char *name)
{
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { n }, 1.0f, 0.1f, "%s%u.%s", prefix, il, name);
}

/* The four limits of a linear, each a tensor of one number. */
static void add_clamps(struct synth_plan *p, const char *prefix, uint32_t il, const char *name)
{
    static const struct {
        const char *name;
        float value;
    } limits[] = {
        { "input_min", -8 }, { "input_max", 8 }, { "output_min", -16 }, { "output_max", 16 }
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        synth_plan_add(p, QUANT_F32, (uint64_t[4]) { 1 }, limits[i].value, 0.5f, "%s%u.%s.%s",
                       prefix, il, name, limits[i].name);
}

static void add_linear(struct synth_plan *p, uint32_t type, uint32_t n_in, uint32_t n_out,
                       const char *prefix, uint32_t il, const char *name, bool clamps)
{
    synth_plan_add(p, type, (uint64_t[4]) { n_in, n_out }, 0, 1.0f / sqrtf((float)n_in),
                   "%s%u.%s.weight", prefix, il, name);
    if (clamps) add_clamps(p, prefix, il, name);
}

static void plan_vision(struct synth_plan *p, const struct synth_tower *t)
{
    const char *blk = "v.blk.";
    uint32_t d = t->n_embd, ff = t->n_ff;
    synth_plan_add(p, QUANT_F16, (uint64_t[4]) { PATCH, PATCH, 3, d }, 0, 0.04f,
                   "v.patch_embd.weight");
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { d, t->n_pos, 2 }, 0, 0.1f,
                   "v.position_embd.weight");
    for (uint32_t il = 0; il < t->n_layer; il++) {
        add_vector(p, d, blk, il, "ln1.weight");
        add_linear(p, QUANT_F16, d, d, blk, il, "attn_q", t->clamps);
        add_linear(p, QUANT_F16, d, d, blk, il, "attn_k", t->clamps);
        add_linear(p, QUANT_F16, d, d, blk, il, "attn_v", t->clamps);
        add_linear(p, QUANT_F16, d, d, blk, il, "attn_out", t->clamps);
        add_vector(p, t->head_dim, blk, il, "attn_q_norm.weight");
        add_vector(p, t->head_dim, blk, il, "attn_k_norm.weight");
        add_vector(p, d, blk, il, "attn_post_norm.weight");
        add_vector(p, d, blk, il, "ln2.weight");
        add_linear(p, QUANT_F16, d, ff, blk, il, "ffn_gate", t->clamps);
        add_linear(p, QUANT_F16, d, ff, blk, il, "ffn_up", t->clamps);
        add_linear(p, QUANT_F16, ff, d, blk, il, "ffn_down", t->clamps);
        add_vector(p, d, blk, il, "ffn_post_norm.weight");
    }
    if (!t->clamps) {
        synth_plan_add(p, QUANT_F32, (uint64_t[4]) { d }, 0, 0.1f, "v.std_bias");
        synth_plan_add(p, QUANT_F32, (uint64_t[4]) { d }, 1.0f, 0.1f, "v.std_scale");
    }
    synth_plan_add(p, QUANT_F16, (uint64_t[4]) { d, p->options.size->n_embd }, 0,
                   1.0f / sqrtf((float)d), "mm.input_projection.weight");
}

static void plan_audio_layer(struct synth_plan *p, const struct synth_tower *t, uint32_t il)
{
    const char *blk = "a.blk.";
    uint32_t d = t->a_embd, ff = t->a_ff;
    add_vector(p, d, blk, il, "ffn_norm.weight");
    add_linear(p, QUANT_BF16, d, ff, blk, il, "ffn_up", true);
    add_linear(p, QUANT_BF16, ff, d, blk, il, "ffn_down", true);
    add_vector(p, d, blk, il, "ffn_post_norm.weight");
    add_vector(p, d, blk, il, "ln1.weight");
    add_linear(p, QUANT_BF16, d, d, blk, il, "attn_q", true);
    add_linear(p, QUANT_BF16, d, d, blk, il, "attn_k", true);
    add_linear(p, QUANT_BF16, d, d, blk, il, "attn_v", true);
    add_linear(p, QUANT_BF16, d, d, blk, il, "attn_out", true);
    add_vector(p, t->a_head_dim, blk, il, "per_dim_scale.weight");
    add_linear(p, QUANT_BF16, d, d, blk, il, "linear_pos", false);
    add_vector(p, d, blk, il, "ln2.weight");
    add_vector(p, d, blk, il, "conv_norm.weight");
    add_linear(p, QUANT_BF16, d, 2 * d, blk, il, "conv_pw1", true);
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { CONV_TAPS, d }, 0, 0.4f, "%s%u.conv_dw.weight",
                   blk, il);
    add_vector(p, d, blk, il, "norm_conv.weight");
    add_linear(p, QUANT_BF16, d, d, blk, il, "conv_pw2", true);
    add_vector(p, d, blk, il, "ffn_norm_1.weight");
    add_linear(p, QUANT_BF16, d, ff, blk, il, "ffn_up_1", true);
    add_linear(p, QUANT_BF16, ff, d, blk, il, "ffn_down_1", true);
    add_vector(p, d, blk, il, "ffn_post_norm_1.weight");
    add_vector(p, d, blk, il, "layer_pre_norm.weight");
}

static void plan_audio(struct synth_plan *p, const struct synth_tower *t)
{
    uint32_t d = t->a_embd;
    float std = 1.0f / sqrtf((float)d);
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { 3, 3, 1, CONV_1 }, 0, 0.3f, "a.conv1d.0.weight");
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { CONV_1 }, 1.0f, 0.1f, "a.conv1d.0.norm.weight");
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { 3, 3, CONV_1, CONV_2 }, 0, 0.03f,
                   "a.conv1d.1.weight");
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { CONV_2 }, 1.0f, 0.1f, "a.conv1d.1.norm.weight");
    /* 128 bins halved twice, times the channels: 1024 numbers a frame. */
    synth_plan_add(p, QUANT_BF16, (uint64_t[4]) { 32 * CONV_2, d }, 0, 0.03f,
                   "a.pre_encode.out.weight");
    for (uint32_t il = 0; il < t->a_layer; il++) plan_audio_layer(p, t, il);
    synth_plan_add(p, QUANT_BF16, (uint64_t[4]) { d, t->a_out }, 0, std, "mm.a.fc.weight");
    synth_plan_add(p, QUANT_F32, (uint64_t[4]) { t->a_out }, 0, 0.1f, "mm.a.fc.bias");
    synth_plan_add(p, QUANT_BF16, (uint64_t[4]) { t->a_out, p->options.size->n_embd }, 0,
                   1.0f / sqrtf((float)t->a_out), "mm.a.input_projection.weight");
}

void synth_plan_towers(struct synth_plan *p)
{
    const struct synth_tower *t = p->options.size->tower;
    if (t->a_layer) plan_audio(p, t);
    plan_vision(p, t);
}
