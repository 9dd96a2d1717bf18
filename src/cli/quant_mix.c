#include "cli/quant_mix.h"

#include <strings.h>

/* main: most matrices. more: where more bits pay; the same in mixes that make no difference. */
static const struct {
    const char *name;
    enum quant_id main, more, table;
    uint32_t file_type;
} mixes[N_MIX] = {
    [MIX_F32] = { "F32", QUANT_F32, QUANT_F32, QUANT_F32, 0 },
    [MIX_F16] = { "F16", QUANT_F16, QUANT_F16, QUANT_F16, 1 },
    [MIX_BF16] = { "BF16", QUANT_BF16, QUANT_BF16, QUANT_BF16, 32 },
    [MIX_Q4_0] = { "Q4_0", QUANT_Q4_0, QUANT_Q4_0, QUANT_Q6_K, 2 },
    [MIX_Q8_0] = { "Q8_0", QUANT_Q8_0, QUANT_Q8_0, QUANT_Q8_0, 7 },
    [MIX_Q4_K_M] = { "Q4_K_M", QUANT_Q4_K, QUANT_Q6_K, QUANT_Q6_K, 15 },
    [MIX_Q5_K_M] = { "Q5_K_M", QUANT_Q5_K, QUANT_Q6_K, QUANT_Q6_K, 17 },
    [MIX_Q6_K] = { "Q6_K", QUANT_Q6_K, QUANT_Q6_K, QUANT_Q6_K, 18 },
};

/* Names that a file may say although Bezel makes no such mix. */
static const struct {
    uint32_t file_type;
    const char *name;
} others[] = {
    { 3, "Q4_1" },    { 8, "Q5_0" },    { 9, "Q5_1" },    { 10, "Q2_K" },    { 11, "Q3_K_S" },
    { 12, "Q3_K_M" }, { 13, "Q3_K_L" }, { 14, "Q4_K_S" }, { 16, "Q5_K_S" },  { 19, "IQ2_XXS" },
    { 20, "IQ2_XS" }, { 21, "Q2_K_S" }, { 22, "IQ3_XS" }, { 23, "IQ3_XXS" }, { 24, "IQ1_S" },
    { 25, "IQ4_NL" }, { 26, "IQ3_S" },  { 27, "IQ3_M" },  { 28, "IQ2_S" },   { 29, "IQ2_M" },
    { 30, "IQ4_XS" }, { 31, "IQ1_M" },  { 36, "TQ1_0" },  { 37, "TQ2_0" },   { 38, "MXFP4_MOE" },
};

bool mix_find(const char *name, enum mix_id *out)
{
    for (int i = 0; i < N_MIX; i++)
        if (strcasecmp(name, mixes[i].name) == 0) {
            *out = (enum mix_id)i;
            return true;
        }
    return false;
}

const char *mix_name(enum mix_id id)
{
    return mixes[id].name;
}

uint32_t mix_file_type(enum mix_id id)
{
    return mixes[id].file_type;
}

const char *mix_file_type_name(uint64_t file_type)
{
    for (int i = 0; i < N_MIX; i++)
        if (mixes[i].file_type == file_type) return mixes[i].name;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].file_type == file_type) return others[i].name;
    return NULL;
}

/* N of "blk.N.rest"; -1 for every other name. */
static int layer_of(struct str name)
{
    if (!str_starts(name, "blk.")) return -1;
    int il = 0;
    size_t i = 4;
    for (; i < name.n && name.p[i] >= '0' && name.p[i] <= '9' && il < MAX_LAYERS; i++)
        il = il * 10 + (name.p[i] - '0');
    return i > 4 && i < name.n && name.p[i] == '.' && il < MAX_LAYERS ? il : -1;
}

static bool contains(struct str s, const char *z)
{
    size_t n = strlen(z);
    for (size_t i = 0; i + n <= s.n; i++)
        if (memcmp(s.p + i, z, n) == 0) return true;
    return false;
}

void mix_add(struct mix *m, struct str name)
{
    int il = layer_of(name);
    bool is_v = str_ends(name, ".attn_v.weight");
    /* The quantiser counted every value projection of the file, also those of the towers. That
     * shifts the rule below in Ollama's single files, and their published mixes show it. */
    if (is_v) m->n_attn_v++;
    if (il < 0) return;
    if ((uint32_t)il >= m->n_layer) m->n_layer = (uint32_t)il + 1;
    if (is_v) m->has_v[il] = true;
}

/* The first and the last eighth, and every third in between. */
static bool more_bits(uint32_t i, uint32_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static bool is_plain(uint32_t type)
{
    return type == QUANT_F32 || type == QUANT_F16 || type == QUANT_BF16;
}

static bool is_text(struct str name)
{
    return !str_starts(name, "v.") && !str_starts(name, "a.") && !str_starts(name, "mm.");
}

/* Vectors, norms and the router keep full precision: they are small and much hangs on them. */
static bool is_kept(struct str name, uint32_t n_dims)
{
    return n_dims < 2 || !str_ends(name, "weight") || contains(name, "_norm.weight") ||
           contains(name, "ffn_gate_inp.weight");
}

/* Formats of 256-weight blocks need rows of such blocks; shorter ones take the nearest 32-weight
 * format that is not worse. (For Q5_K llama.cpp takes Q5_1, which Bezel only reads.) */
static uint32_t fit_row(uint32_t type, uint64_t n_cols)
{
    uint32_t block = quant_find(type)->block;
    if (n_cols % block == 0) return type;
    if (block == 256 && n_cols % 32 == 0) return type == QUANT_Q4_K ? QUANT_Q5_0 : QUANT_Q8_0;
    return QUANT_F16;
}

uint32_t mix_type(const struct mix *m, struct str name, uint32_t n_dims, const uint64_t *ne,
                  uint32_t now)
{
    enum quant_id type = mixes[m->id].main;
    int il = layer_of(name);
    if (!is_text(name)) return now;
    if (is_kept(name, n_dims)) return quant_find(now) ? QUANT_F32 : now;
    if (is_plain(type)) return type;

    if (str_is(name, "per_layer_model_proj.weight") && !m->ollama)
        return is_plain(now) ? now : QUANT_BF16;
    if (str_is(name, "per_layer_token_embd.weight") && m->ollama) return QUANT_BF16;
    if (str_is(name, "token_embd.weight") || str_is(name, "output.weight") ||
        str_is(name, "per_layer_token_embd.weight")) {
        type = mixes[m->id].table;
    } else if (il >= 0 && str_ends(name, ".attn_v.weight")) {
        uint32_t i = 0;
        for (int k = 0; k < il; k++) i += m->has_v[k];
        if (more_bits(i, m->n_attn_v)) type = mixes[m->id].more;
    } else if (il >= 0 && contains(name, "ffn_down")) {
        if (more_bits((uint32_t)il, m->n_layer)) type = mixes[m->id].more;
    }
    return fit_row(type, ne[0]);
}
