/* quant.c - the table of formats that Bezel reads, and the sizes of those that it does not.
 *
 * It owns names, ids and block shapes. What a block means is in the file of its format.
 */
#include "quant/quant.h"

#include "quant/formats.h"

static const struct quant_format formats[] = {
    { QUANT_F32, "F32", 1, 4, f32_decode, f32_encode },
    { QUANT_F16, "F16", 1, 2, f16_decode, f16_encode },
    { QUANT_BF16, "BF16", 1, 2, bf16_decode, bf16_encode },
    { QUANT_Q4_0, "Q4_0", 32, 18, q4_0_decode, q4_0_encode },
    { QUANT_Q4_1, "Q4_1", 32, 20, q4_1_decode, NULL },
    { QUANT_Q5_0, "Q5_0", 32, 22, q5_0_decode, q5_0_encode },
    { QUANT_Q5_1, "Q5_1", 32, 24, q5_1_decode, NULL },
    { QUANT_Q8_0, "Q8_0", 32, 34, q8_0_decode, q8_0_encode },
    { QUANT_Q2_K, "Q2_K", 256, 84, q2_k_decode, NULL },
    { QUANT_Q3_K, "Q3_K", 256, 110, q3_k_decode, NULL },
    { QUANT_Q4_K, "Q4_K", 256, 144, q4_k_decode, q4_k_encode },
    { QUANT_Q5_K, "Q5_K", 256, 176, q5_k_decode, q5_k_encode },
    { QUANT_Q6_K, "Q6_K", 256, 210, q6_k_decode, q6_k_encode },
    { QUANT_IQ4_NL, "IQ4_NL", 32, 18, iq4_nl_decode, NULL },
    { QUANT_IQ4_XS, "IQ4_XS", 256, 136, iq4_xs_decode, NULL },
    { QUANT_MXFP4, "MXFP4", 32, 17, mxfp4_decode, NULL },
};

#define N_FORMATS (sizeof formats / sizeof formats[0])

/* GGUF tensor types that Bezel can name and measure but not read. Ids 4 and 5 (Q4_2, Q4_3) died
 * before GGUF was born and stay unknown. The repacked types 31..33 and 36..38 interleave rows of
 * Q4_0 and IQ4_NL blocks; a whole tensor has the size of the plain type. */
static const struct {
    uint32_t id;
    const char *name;
    uint32_t block, bytes;
} unread[] = {
    { 9, "Q8_1", 32, 36 },        { 15, "Q8_K", 256, 292 },     { 16, "IQ2_XXS", 256, 66 },
    { 17, "IQ2_XS", 256, 74 },    { 18, "IQ3_XXS", 256, 98 },   { 19, "IQ1_S", 256, 50 },
    { 21, "IQ3_S", 256, 110 },    { 22, "IQ2_S", 256, 82 },     { 24, "I8", 1, 1 },
    { 25, "I16", 1, 2 },          { 26, "I32", 1, 4 },          { 27, "I64", 1, 8 },
    { 28, "F64", 1, 8 },          { 29, "IQ1_M", 256, 56 },     { 31, "Q4_0_4_4", 32, 18 },
    { 32, "Q4_0_4_8", 32, 18 },   { 33, "Q4_0_8_8", 32, 18 },   { 34, "TQ1_0", 256, 54 },
    { 35, "TQ2_0", 256, 66 },     { 36, "IQ4_NL_4_4", 32, 18 }, { 37, "IQ4_NL_4_8", 32, 18 },
    { 38, "IQ4_NL_8_8", 32, 18 }, { 40, "NVFP4", 64, 36 },      { 41, "Q1_0", 128, 18 },
    { 42, "Q2_0", 64, 18 },
};

#define N_UNREAD (sizeof unread / sizeof unread[0])

/* ASCII only, so that the locale has no say. */
static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        int x = *a >= 'a' && *a <= 'z' ? *a - 32 : *a;
        int y = *b >= 'a' && *b <= 'z' ? *b - 32 : *b;
        if (x != y) return false;
        if (!x) return true;
    }
}

const struct quant_format *quant_find(uint32_t id)
{
    for (size_t i = 0; i < N_FORMATS; i++)
        if ((uint32_t)formats[i].id == id) return &formats[i];
    return NULL;
}

const struct quant_format *quant_find_name(const char *name)
{
    for (size_t i = 0; i < N_FORMATS; i++)
        if (same_name(formats[i].name, name)) return &formats[i];
    return NULL;
}

const struct quant_format *quant_at(size_t index)
{
    return index < N_FORMATS ? &formats[index] : NULL;
}

const char *quant_type_name(uint32_t id)
{
    const struct quant_format *f = quant_find(id);
    if (f) return f->name;
    for (size_t i = 0; i < N_UNREAD; i++)
        if (unread[i].id == id) return unread[i].name;
    return "unknown";
}

bool quant_type_size(uint32_t id, uint32_t *block, uint32_t *bytes)
{
    const struct quant_format *f = quant_find(id);
    if (f) {
        *block = f->block;
        *bytes = f->bytes;
        return true;
    }
    for (size_t i = 0; i < N_UNREAD; i++) {
        if (unread[i].id != id) continue;
        *block = unread[i].block;
        *bytes = unread[i].bytes;
        return true;
    }
    return false;
}
