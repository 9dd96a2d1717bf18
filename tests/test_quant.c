/* test_quant.c - the table of weight formats, the 16-bit floats, and every decoder against a second
 * one. The encoders are in test_quant_encode.c.
 *
 * The second decoder is written another way on purpose: "the value of weight j of this block", one
 * weight at a time, straight from the description of the format. The first one works on whole
 * blocks, in loops shaped for vector units.
 */
#include <math.h>

#include "base/half.h"
#include "base/rng.h"
#include "check.h"
#include "quant/quant.h"

#define MAX_WEIGHTS 8192

/* ---- weight j of block b, from the text ---- */

static float half_at(const uint8_t *b, int at)
{
    return f16_to_f32((uint16_t)(b[at] | b[at + 1] << 8));
}

/* Nibble j of 16 bytes: 0..15 are the low ones, 16..31 the high ones. */
static int nibble(const uint8_t *qs, int j)
{
    return j < 16 ? qs[j] % 16 : qs[j - 16] / 16;
}

static int bit(const uint8_t *bits, int j)
{
    return bits[j / 8] >> (j % 8) & 1;
}

static float value_f32(const uint8_t *b, int j)
{
    uint32_t u = 0;
    for (int i = 3; i >= 0; i--) u = u * 256 + b[i];
    return f32_from_bits(u + (uint32_t)j);
}

static float value_f16(const uint8_t *b, int j)
{
    int exponent = b[1] >> 2 & 31, fraction = (b[1] & 3) << 8 | b[0];
    float sign = b[1] & 128 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexpf((float)(fraction + j), -24);
    return sign * ldexpf((float)(1024 + fraction + j), exponent - 25);
}

static float value_bf16(const uint8_t *b, int j)
{
    return f32_from_bits((uint32_t)b[1] << 24 | (uint32_t)(b[0] + j) << 16);
}

static float value_q4_0(const uint8_t *b, int j)
{
    return (float)(nibble(b + 2, j) - 8) * half_at(b, 0);
}

static float value_q4_1(const uint8_t *b, int j)
{
    float product = (float)nibble(b + 4, j) * half_at(b, 0);
    return product + half_at(b, 2);
}

static float value_q5_0(const uint8_t *b, int j)
{
    return (float)(nibble(b + 6, j) + 16 * bit(b + 2, j) - 16) * half_at(b, 0);
}

static float value_q5_1(const uint8_t *b, int j)
{
    float product = (float)(nibble(b + 8, j) + 16 * bit(b + 4, j)) * half_at(b, 0);
    return product + half_at(b, 2);
}

static float value_q8_0(const uint8_t *b, int j)
{
    int q = b[2 + j];
    return (float)(q < 128 ? q : q - 256) * half_at(b, 0);
}

/* Two bits of weight j where each half of 128 has 32 bytes and each byte four weights 32 apart. */
static int crumb(const uint8_t *qs, int j)
{
    int l = j % 32, k = j / 32 % 4, half = j / 128;
    return qs[32 * half + l] / (1 << (2 * k)) % 4;
}

static float value_q2_k(const uint8_t *b, int j)
{
    int scale = b[j / 16];
    float step = half_at(b, 80) * (float)(scale % 16),
          offset = half_at(b, 82) * (float)(scale / 16);
    float product = step * (float)crumb(b + 16, j);
    return product - offset;
}

static float value_q3_k(const uint8_t *b, int j)
{
    static const int low_byte[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7 };
    int g = j / 16;
    const uint8_t *s = b + 96;
    int low = g < 8 ? s[low_byte[g]] % 16 : s[low_byte[g]] / 16;
    int high = s[8 + g % 4] / (1 << (2 * (g / 4))) % 4;
    int upper = b[j % 32] >> (j / 32) & 1;
    int q = crumb(b + 32, j) - (upper ? 0 : 4);
    float step = half_at(b, 108) * (float)(low + 16 * high - 32);
    return step * (float)q;
}

/* The six-bit pair of group g in Q4_K and Q5_K. */
static void pair(const uint8_t *q, int g, int *sc, int *mn)
{
    if (g < 4) {
        *sc = q[g] & 63;
        *mn = q[g + 4] & 63;
    } else {
        *sc = (q[g + 4] & 15) | (q[g - 4] >> 6) << 4;
        *mn = (q[g + 4] >> 4) | (q[g] >> 6) << 4;
    }
}

static float value_affine(const uint8_t *b, int g, int q)
{
    int sc, mn;
    pair(b + 4, g, &sc, &mn);
    float step = half_at(b, 0) * (float)sc, offset = half_at(b, 2) * (float)mn;
    float product = step * (float)q;
    return product - offset;
}

/* Nibble of weight j where group 2p is the low and 2p+1 the high half of the same 32 bytes. */
static int paired_nibble(const uint8_t *qs, int j)
{
    int g = j / 32, byte = qs[32 * (g / 2) + j % 32];
    return g % 2 ? byte / 16 : byte % 16;
}

static float value_q4_k(const uint8_t *b, int j)
{
    return value_affine(b, j / 32, paired_nibble(b + 16, j));
}

static float value_q5_k(const uint8_t *b, int j)
{
    int upper = b[16 + j % 32] >> (j / 32) & 1;
    return value_affine(b, j / 32, paired_nibble(b + 48, j) + 16 * upper);
}

static float value_q6_k(const uint8_t *b, int j)
{
    int half = j / 128, r = j % 128, k = r / 32, l = r % 32;
    int low = b[64 * half + l + 32 * (k % 2)];
    low = k < 2 ? low % 16 : low / 16;
    int high = b[128 + 32 * half + l] / (1 << (2 * k)) % 4;
    int sc = b[192 + j / 16];
    if (sc > 127) sc -= 256;
    float step = half_at(b, 208) * (float)sc;
    return step * (float)(low + 16 * high - 32);
}

static const float steps[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113 };

static float value_iq4_nl(const uint8_t *b, int j)
{
    return half_at(b, 0) * steps[nibble(b + 2, j)];
}

static float value_iq4_xs(const uint8_t *b, int j)
{
    int g = j / 32, low = b[4 + g / 2];
    low = g % 2 ? low / 16 : low % 16;
    int high = (b[2] | b[3] << 8) >> (2 * g) & 3;
    float step = half_at(b, 0) * (float)(low + 16 * high - 32);
    return step * steps[nibble(b + 8 + 16 * g, j % 32)];
}

static float value_mxfp4(const uint8_t *b, int j)
{
    static const float magnitude[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    int q = nibble(b + 1, j);
    /* + 0.0f: level 8 is "minus 0" by its bits and plain 0 by ggml's table. */
    float v = (q < 8 ? magnitude[q] : -magnitude[q - 8]) + 0.0f;
    return (float)ldexp((double)v, b[0] - 127);
}

typedef float (*value_fn)(const uint8_t *b, int j);

static value_fn value_of(enum quant_id id)
{
    switch (id) {
    case QUANT_F32: return value_f32;
    case QUANT_F16: return value_f16;
    case QUANT_BF16: return value_bf16;
    case QUANT_Q4_0: return value_q4_0;
    case QUANT_Q4_1: return value_q4_1;
    case QUANT_Q5_0: return value_q5_0;
    case QUANT_Q5_1: return value_q5_1;
    case QUANT_Q8_0: return value_q8_0;
    case QUANT_Q2_K: return value_q2_k;
    case QUANT_Q3_K: return value_q3_k;
    case QUANT_Q4_K: return value_q4_k;
    case QUANT_Q5_K: return value_q5_k;
    case QUANT_Q6_K: return value_q6_k;
    case QUANT_IQ4_NL: return value_iq4_nl;
    case QUANT_IQ4_XS: return value_iq4_xs;
    case QUANT_MXFP4: return value_mxfp4;
    }
    return NULL;
}

static float y[MAX_WEIGHTS + 8];
static uint8_t packed[MAX_WEIGHTS * 4 + 8];

static bool same_bits(float a, float b)
{
    return (isnan(a) && isnan(b)) || f32_bits(a) == f32_bits(b);
}

/* ---- the table ---- */

static void test_table(void)
{
    TEST("a format is found by id, by name in any case, and by index")
    {
        size_t n = 0;
        for (; quant_at(n); n++) {
            const struct quant_format *f = quant_at(n);
            char lower[16] = { 0 };
            for (size_t i = 0; f->name[i]; i++)
                lower[i] =
                    (char)(f->name[i] >= 'A' && f->name[i] <= 'Z' ? f->name[i] + 32 : f->name[i]);
            CHECK(quant_find((uint32_t)f->id) == f);
            CHECK(quant_find_name(f->name) == f);
            CHECK(quant_find_name(lower) == f);
            CHECK(f->decode != NULL && value_of(f->id) != NULL);
            CHECK_STR(quant_type_name((uint32_t)f->id), f->name);
        }
        CHECK(n == 16);
        CHECK(quant_at(n + 100) == NULL);
        CHECK(quant_find(9) == NULL && quant_find(4) == NULL && quant_find(0xffffffff) == NULL);
        CHECK(quant_find_name("") == NULL && quant_find_name("Q4") == NULL);
        CHECK(quant_find_name("Q4_KK") == NULL);
    }
    TEST("every GGUF type has a name and a size, and the unknown has none")
    {
        static const struct {
            uint32_t id, block, bytes;
            const char *name;
        } want[] = {
            { 0, 1, 4, "F32" },         { 1, 1, 2, "F16" },         { 2, 32, 18, "Q4_0" },
            { 3, 32, 20, "Q4_1" },      { 6, 32, 22, "Q5_0" },      { 7, 32, 24, "Q5_1" },
            { 8, 32, 34, "Q8_0" },      { 9, 32, 36, "Q8_1" },      { 10, 256, 84, "Q2_K" },
            { 11, 256, 110, "Q3_K" },   { 12, 256, 144, "Q4_K" },   { 13, 256, 176, "Q5_K" },
            { 14, 256, 210, "Q6_K" },   { 15, 256, 292, "Q8_K" },   { 16, 256, 66, "IQ2_XXS" },
            { 17, 256, 74, "IQ2_XS" },  { 18, 256, 98, "IQ3_XXS" }, { 19, 256, 50, "IQ1_S" },
            { 20, 32, 18, "IQ4_NL" },   { 21, 256, 110, "IQ3_S" },  { 22, 256, 82, "IQ2_S" },
            { 23, 256, 136, "IQ4_XS" }, { 24, 1, 1, "I8" },         { 25, 1, 2, "I16" },
            { 26, 1, 4, "I32" },        { 27, 1, 8, "I64" },        { 28, 1, 8, "F64" },
            { 29, 256, 56, "IQ1_M" },   { 30, 1, 2, "BF16" },       { 34, 256, 54, "TQ1_0" },
            { 35, 256, 66, "TQ2_0" },   { 39, 32, 17, "MXFP4" },    { 40, 64, 36, "NVFP4" },
            { 41, 128, 18, "Q1_0" },    { 42, 64, 18, "Q2_0" },
        };
        uint32_t block = 7, bytes = 7;
        for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
            CHECK(quant_type_size(want[i].id, &block, &bytes));
            CHECK_MSG(block == want[i].block && bytes == want[i].bytes, "type %u", want[i].id);
            CHECK_STR(quant_type_name(want[i].id), want[i].name);
        }
        block = bytes = 7;
        CHECK(!quant_type_size(4, &block, &bytes) && !quant_type_size(43, &block, &bytes));
        CHECK(!quant_type_size(0xffffffff, &block, &bytes));
        CHECK(block == 7 && bytes == 7);
        CHECK_STR(quant_type_name(43), "unknown");
        CHECK(quant_row_bytes(quant_find(QUANT_Q6_K), 1536) == 1260);
    }
}

/* ---- halves ---- */

static uint16_t f16_by_search(float f)
{
    /* The nearest of all halves by exact f64 distance; of two equally near, the even one. */
    uint32_t lo = 0, hi = 0x7bff; /* magnitudes of finite halves grow with their bits */
    double a = fabs((double)f);
    while (lo < hi) {
        uint32_t mid = (lo + hi + 1) / 2;
        if ((double)f16_to_f32((uint16_t)mid) <= a) lo = mid;
        else hi = mid - 1;
    }
    double below = f16_to_f32((uint16_t)lo);
    double above = lo == 0x7bff ? 65536.0 : (double)f16_to_f32((uint16_t)(lo + 1));
    double down = a - below, up = above - a;
    uint32_t h = up < down || (up == down && lo % 2) ? lo + 1 : lo;
    return (uint16_t)(h | (signbit(f) ? 0x8000u : 0));
}

static void test_halves(void)
{
    TEST("all 65536 halves and bfloats survive the way to f32 and back")
    {
        int bad = 0, wrong = 0;
        for (uint32_t h = 0; h < 65536; h++) {
            uint8_t b[2] = { (uint8_t)h, (uint8_t)(h >> 8) };
            float f = f16_to_f32((uint16_t)h), g = bf16_to_f32((uint16_t)h);
            bool nan16 = (h & 0x7fff) > 0x7c00, nanb = (h & 0x7fff) > 0x7f80;
            if (nan16) bad += !isnan(f) || !isnan(f16_to_f32(f32_to_f16(f)));
            else bad += f32_to_f16(f) != h;
            if (nanb) bad += !isnan(g) || !isnan(bf16_to_f32(f32_to_bf16(g)));
            else bad += f32_to_bf16(g) != h;
            wrong += !same_bits(f, value_f16(b, 0));
        }
        CHECK(bad == 0);
        CHECK(wrong == 0);
    }
    TEST("f32 to half rounds to nearest, ties to even, everywhere")
    {
        int bad = 0;
        for (uint32_t h = 0; h < 0x7bff; h++) { /* the tie above each half, and its neighbours */
            float tie = (float)(0.5 * ((double)f16_to_f32((uint16_t)h) +
                                       (double)f16_to_f32((uint16_t)(h + 1))));
            bad += f32_to_f16(tie) != (h % 2 ? h + 1 : h);
            bad += f32_to_f16(f32_from_bits(f32_bits(tie) - 1)) != h;
            bad += f32_to_f16(f32_from_bits(f32_bits(tie) + 1)) != h + 1;
            bad += f32_to_f16(-tie) != ((h % 2 ? h + 1 : h) | 0x8000);
        }
        CHECK(bad == 0);
        struct rng r = { 5 };
        for (int i = 0; i < 20000; i++) {
            float f = f32_from_bits((uint32_t)rng_next(&r) & 0xc7ffffff); /* below 2^17 */
            if (fabsf(f) < 65520.0f) bad += f32_to_f16(f) != f16_by_search(f);
            else bad += (f32_to_f16(f) & 0x7fff) != 0x7c00;
        }
        CHECK(bad == 0);
        CHECK(f32_to_f16(65519.996f) == 0x7bff && f32_to_f16(65520.0f) == 0x7c00);
        CHECK(f32_to_f16(0x1p-25f) == 0 && f32_to_f16(0x1.8p-25f) == 1);
        CHECK(f32_to_f16(-0.0f) == 0x8000 && f32_to_f16(0x1p-149f) == 0);
        CHECK(f32_to_f16(-INFINITY) == 0xfc00 && isnan(f16_to_f32(f32_to_f16(NAN))));
    }
    TEST("f32 to bfloat rounds to nearest, ties to even")
    {
        CHECK(f32_to_bf16(f32_from_bits(0x3f808000)) == 0x3f80);
        CHECK(f32_to_bf16(f32_from_bits(0x3f818000)) == 0x3f82);
        CHECK(f32_to_bf16(f32_from_bits(0x3f808001)) == 0x3f81);
        CHECK(f32_to_bf16(f32_from_bits(0x3f807fff)) == 0x3f80);
        CHECK(f32_to_bf16(f32_from_bits(0x00008001)) == 1);
        CHECK(f32_to_bf16(INFINITY) == 0x7f80 && f32_to_bf16(-INFINITY) == 0xff80);
        /* The payload of this NaN lies in the lower half only: plain truncation gives infinity. */
        CHECK(isnan(bf16_to_f32(f32_to_bf16(f32_from_bits(0x7f800001)))));
    }
}

/* ---- decoders ---- */

static void decode_one(enum quant_id id, const uint8_t *b)
{
    const struct quant_format *f = quant_find((uint32_t)id);
    f->decode(b, y, f->block);
}

static void test_small_blocks_by_hand(void)
{
    TEST("hand-made blocks of 32 decode to the numbers worked out on paper")
    {
        uint8_t b[34] = { 0 };
        const uint8_t half_one[2] = { 0x00, 0x3c }, half_minus_two[2] = { 0x00, 0xc0 };
        memcpy(b, half_one, 2); /* d = 1 */
        b[2] = 0x2f;            /* weight 0: 15, weight 16: 2 */
        b[17] = 0x80;           /* weight 15: 0, weight 31: 8 */
        decode_one(QUANT_Q4_0, b);
        CHECK(y[0] == 7 && y[16] == -6 && y[15] == -8 && y[31] == 0 && y[1] == -8);
        decode_one(QUANT_IQ4_NL, b);
        CHECK(y[0] == 113 && y[16] == -83 && y[15] == -127 && y[31] == 1);

        memset(b, 0, sizeof b);
        memcpy(b, half_one, 2);
        memcpy(b + 2, half_minus_two, 2); /* m = -2 */
        b[4] = 0x51;
        decode_one(QUANT_Q4_1, b);
        CHECK(y[0] == -1 && y[16] == 3 && y[1] == -2);

        memset(b, 0, sizeof b);
        memcpy(b, half_one, 2);
        b[2] = 0x01; /* upper bit of weight 0 */
        b[5] = 0x80; /* upper bit of weight 31 */
        b[6] = 0x03;
        b[21] = 0xf0;
        decode_one(QUANT_Q5_0, b);
        CHECK(y[0] == 3 && y[31] == 15 && y[1] == -16 && y[16] == -16);

        memset(b, 0, sizeof b);
        memcpy(b, half_one, 2);
        memcpy(b + 2, half_minus_two, 2);
        b[6] = 0x01; /* upper bit of weight 16 */
        b[8] = 0x25;
        decode_one(QUANT_Q5_1, b);
        CHECK(y[0] == 3 && y[16] == 16 && y[1] == -2);

        memset(b, 0, sizeof b);
        memcpy(b, half_minus_two, 2);
        b[2] = 0x80;
        b[33] = 0x7f;
        decode_one(QUANT_Q8_0, b);
        CHECK(y[0] == 256 && y[31] == -254 && y[1] == 0 && signbit(y[1]));

        memset(b, 0, sizeof b);
        b[0] = 127;  /* 2^-1, and the table is doubled */
        b[1] = 0xf7; /* 6 and -6 */
        b[2] = 0x91; /* 0.5 and -0.5 */
        decode_one(QUANT_MXFP4, b);
        CHECK(y[0] == 6 && y[16] == -6 && y[1] == 0.5f && y[17] == -0.5f && y[2] == 0);
        b[0] = 0;
        decode_one(QUANT_MXFP4, b);
        CHECK(y[0] == 12 * 0x1p-128f && y[1] == 0x1p-128f);
        b[0] = 1;
        decode_one(QUANT_MXFP4, b);
        CHECK(y[1] == 0x1p-127f);
    }
}

static void test_super_blocks_by_hand(void)
{
    TEST("hand-made blocks of 256 decode to the numbers worked out on paper")
    {
        uint8_t b[210] = { 0 };
        b[81] = 0x3c;      /* d = 1 */
        b[83] = 0x40;      /* dmin = 2 */
        b[0] = 0x13;       /* group 0: sc 3, mn 1 */
        b[15] = 0x25;      /* group 15: sc 5, mn 2 */
        b[16] = 0x02;      /* weight 0: 2 */
        b[16 + 63] = 0xc0; /* weight 255: 3 */
        decode_one(QUANT_Q2_K, b);
        CHECK(y[0] == 4 && y[1] == -2 && y[255] == 11 && y[254] == -4 && y[16] == 0);

        memset(b, 0, sizeof b);
        b[109] = 0x3c; /* d = 1 */
        b[96] = 0x21;  /* low bits: group 0 = 1, group 8 = 2 */
        b[104] = 0x32; /* upper bits: group 0 = 2, group 8 = 3 */
        b[0] = 0x10;   /* upper bit of weight 128, not of weight 0 */
        b[32] = 0x03;  /* weight 0 */
        b[64] = 0x01;  /* weight 128 */
        decode_one(QUANT_Q3_K, b);
        CHECK(y[0] == -1);   /* (33 - 32) * (3 - 4) */
        CHECK(y[128] == 18); /* (50 - 32) * 1 */
        CHECK(y[16] == 128); /* (0 - 32) * (0 - 4) */

        memset(b, 0, sizeof b);
        b[1] = 0x3c;       /* d = 1 */
        b[3] = 0x3c;       /* dmin = 1 */
        b[4] = 0xc5;       /* group 0: sc 5; upper bits of group 4: 3 */
        b[8] = 0x47;       /* group 0: mn 7; upper bits of group 4: 1 */
        b[12] = 0x21;      /* group 4: low sc 1, low mn 2 */
        b[16] = 0x0f;      /* weight 0: 15 */
        b[16 + 64] = 0x02; /* weight 128: 2 */
        decode_one(QUANT_Q4_K, b);
        CHECK(y[0] == 68 && y[1] == -7 && y[32] == 0);
        CHECK(y[128] == 2 * 49 - 18 && y[129] == -18);

        memset(b + 16, 0, sizeof b - 16);
        b[16] = 0x11; /* upper bits of weights 0 and 128 */
        b[48] = 0x0f;
        b[48 + 64] = 0x02;
        decode_one(QUANT_Q5_K, b);
        CHECK(y[0] == 31 * 5 - 7 && y[128] == 18 * 49 - 18 && y[1] == -7);

        memset(b, 0, sizeof b);
        b[209] = 0x3c; /* d = 1 */
        b[192] = 2;    /* weights 0..15 */
        b[207] = 0xff; /* weights 240..255: -1 */
        b[0] = 0x05;   /* low bits of weights 0 and 64 */
        b[128] = 0x03; /* upper bits of weight 0 */
        b[127] = 0xa0; /* low bits of weight 255: 10 */
        b[191] = 0x80; /* upper bits of weight 255: 2 */
        decode_one(QUANT_Q6_K, b);
        CHECK(y[0] == 2 * (53 - 32) && y[1] == -64 && y[64] == 0);
        CHECK(y[255] == -(42 - 32) && y[254] == 32);

        memset(b, 0, sizeof b);
        b[1] = 0x3c;       /* d = 1 */
        b[3] = 0xc0;       /* upper bits of group 7: 3 */
        b[7] = 0x50;       /* low bits of group 7: 5, so sc - 32 = 21 */
        b[8] = 0x0f;       /* weight 0 */
        b[8 + 127] = 0x80; /* weight 255 */
        decode_one(QUANT_IQ4_XS, b);
        CHECK(y[0] == -32 * 113 && y[16] == -32 * -127 && y[255] == 21);
    }
}

static void test_decoders(void)
{
    TEST("any bytes decode to the same bits as the one-weight-at-a-time decoder")
    {
        struct rng r = { 42 };
        for (size_t k = 0; quant_at(k); k++) {
            const struct quant_format *f = quant_at(k);
            value_fn value = value_of(f->id);
            size_t bad = 0, total = 0;
            for (size_t blocks = 1; blocks <= 29; blocks += 2) {
                size_t n = blocks * f->block, bytes = blocks * f->bytes;
                size_t skew = blocks % 4; /* rows in a file are not aligned */
                uint8_t *src = packed + skew;
                for (size_t i = 0; i < bytes; i++) src[i] = (uint8_t)rng_next(&r);
                for (size_t i = 0; i < n + 8; i++) y[i] = 12345.0f;
                f->decode(src, y, n);
                for (size_t i = 0; i < n; i++, total++)
                    bad +=
                        !same_bits(y[i], value(src + i / f->block * f->bytes, (int)(i % f->block)));
                for (size_t i = n; i < n + 8; i++) bad += y[i] != 12345.0f;
            }
            CHECK_MSG(bad == 0, "%s: %zu of %zu differ", f->name, bad, total);
            y[0] = 5;
            f->decode(packed, y, 0);
            CHECK(y[0] == 5);
        }
    }
}

int main(void)
{
    test_table();
    test_halves();
    test_small_blocks_by_hand();
    test_super_blocks_by_hand();
    test_decoders();
    return check_done();
}
