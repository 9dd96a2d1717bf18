/* ops_cpu_dot.c - weight rows times one activation row, straight from the bits.
 *
 * A vector of 32-bit words is loaded, and each field is masked where it stands:
 *
 *     (float)(word & 15 << 4k) = q 16^k    exactly,
 *
 * so the activation that it is multiplied with is x 16^-k, exactly too. That is four operations for
 * a vector of weights: and, convert, multiply, add. The scale of a group multiplies the group's
 * sum, and an offset multiplies the sum of the group's activations. ROWS rows go together and share
 * the loads of x. Sums are f32; this file is compiled with -ffp-contract=fast.
 */
#include "ops/ops_cpu_dot.h"

#include "base/half.h"
#include "ops/ops_cpu_vec.h"

enum { ROWS = 2, PREPARED = 256 + 16 };

typedef uint32_t vu __attribute__((vector_size(4 * LANES), aligned(1), may_alias));
typedef int32_t vi4 __attribute__((vector_size(16)));
typedef int8_t vb4 __attribute__((vector_size(4), aligned(1), may_alias));

/* Fields of words, none of which reaches the sign. */
#define AS_FLOAT(v) __builtin_convertvector((vi)(v), vf)

/* Shifted as signed numbers, for the same reason as below. */
#define DOWN(v, n) ((vu)((vi)(v) >> (n)))

/* A number that the compiler cannot see through. If the compiler knew that no field is negative, it
 * would use the unsigned conversion of wasm, which is one instruction there but eight on x86. */
BZ_INLINE uint32_t opaque(uint32_t v)
{
    __asm__("" : "+r"(v));
    return v;
}

static float sum_of(const float *x, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* ---- Q4_K: word w has weights 4w .. 4w + 3 of group 2p (even nibbles) and 2p + 1 (odd) ---- */

static const float byte_unit[4] = { 1, 0x1p-8f, 0x1p-16f, 0x1p-24f };

static void q4_k_prepare(float *out, const float *x, uint32_t cols)
{
    /* The topmost nibble is shifted down by one place, away from the sign. */
    static const float unit[8] = { 1,        0x1p-4f,  0x1p-8f,  0x1p-12f,
                                   0x1p-16f, 0x1p-20f, 0x1p-24f, 0x1p-24f };
    for (uint32_t b = 0; b < cols; b += 256, x += 256, out += PREPARED) {
        for (int p = 0; p < 4; p++)
            for (int k = 0; k < 8; k++) {
                const float *from = x + 64 * p + 32 * (k & 1) + (k >> 1);
                for (int w = 0; w < 8; w++) out[64 * p + 8 * k + w] = from[4 * w] * unit[k];
            }
        for (int g = 0; g < 8; g++) out[256 + g] = sum_of(x + 32 * g, 32) * byte_unit[g & 3];
    }
}

/* The four bytes of a word, six bits each: times 1, 256, 256^2, 256^3. */
BZ_INLINE void sixes(vf4 *out, uint32_t word)
{
    const int mask = (int)opaque(63), all = (int)opaque(word);
    vi4 each = { mask, mask << 8, mask << 16, mask << 24 };
    *out = __builtin_convertvector((vi4) { all, all, all, all } & each, vf4);
}

/* The scales of a block, and its offsets times the sums of x. */
BZ_INLINE void q4_k_scales(vf4 scale[2], vf4 *offset, const uint8_t *b, const vf4 *sums)
{
    float d = f16_to_f32(load_u16(b)), dmin = f16_to_f32(load_u16(b + 2));
    uint32_t s0 = load_u32(b + 4), s1 = load_u32(b + 8), s2 = load_u32(b + 12);
    vf4 sc0, sc1, mn0, mn1, unit = d * *(const vf4 *)byte_unit;
    sixes(&sc0, s0);
    sixes(&mn0, s1);
    sixes(&sc1, (s2 & 0x0f0f0f0f) | (s0 >> 2 & 0x30303030)); /* as affine.h draws them */
    sixes(&mn1, (s2 >> 4 & 0x0f0f0f0f) | (s1 >> 2 & 0x30303030));
    scale[0] = sc0 * unit;
    scale[1] = sc1 * unit;
    *offset += dmin * (mn0 * sums[0] + mn1 * sums[1]);
}

/* 64 weights of n rows, plus the sums of both groups. */
BZ_INLINE void q4_k_pair(vf even[ROWS], vf odd[ROWS], const uint8_t *w, size_t row_bytes,
                         const float *x, int n)
{
    const uint32_t mask = opaque(15);
    BZ_VECTOR
    for (int v = 0; v < 8; v += LANES) {
        vu q[ROWS];
        for (int r = 0; r < n; r++) q[r] = *(const vu *)(w + (size_t)r * row_bytes + 4 * v);
        for (int k = 0; k < 8; k += 2) {
            vf x0 = *(const vf *)(x + 8 * k + v), x1 = *(const vf *)(x + 8 * k + 8 + v);
            for (int r = 0; r < n; r++) {
                vu high = k < 6 ? q[r] & (mask << (4 * k + 4)) : DOWN(q[r], 4) & (mask << 24);
                even[r] += AS_FLOAT(q[r] & (mask << 4 * k)) * x0;
                odd[r] += AS_FLOAT(high) * x1;
            }
        }
    }
}

BZ_INLINE void q4_k_n(float *y, const uint8_t *w, size_t row_bytes, const float *x, uint32_t cols,
                      int n)
{
    vf total[ROWS] = { 0 };
    vf4 offset[ROWS] = { 0 };
    for (uint32_t at = 0; at < cols; at += 256, w += 144, x += PREPARED) {
        vf4 scale[ROWS][2];
        for (int r = 0; r < n; r++)
            q4_k_scales(scale[r], &offset[r], w + (size_t)r * row_bytes, (const vf4 *)(x + 256));
        BZ_VECTOR
        for (int p = 0; p < 4; p++) {
            vf even[ROWS] = { 0 }, odd[ROWS] = { 0 };
            q4_k_pair(even, odd, w + 16 + 32 * p, row_bytes, x + 64 * p, n);
            for (int r = 0; r < n; r++) {
                const float *s = (const float *)scale[r] + 2 * p;
                total[r] += even[r] * s[0] + odd[r] * s[1];
            }
        }
    }
    for (int r = 0; r < n; r++) y[r] = sum_lanes(&total[r]) - sum4(&offset[r]);
}

BZ_CLONES static void q4_k_rows(float *y, const uint8_t *w, uint32_t n_row, const float *x,
                                uint32_t cols)
{
    size_t row_bytes = (size_t)cols / 256 * 144;
    uint32_t r = 0;
    for (; r + ROWS <= n_row; r += ROWS) q4_k_n(y + r, w + r * row_bytes, row_bytes, x, cols, ROWS);
    for (; r < n_row; r++) q4_k_n(y + r, w + r * row_bytes, row_bytes, x, cols, 1);
}

/* ---- Q6_K: the six bits of a weight are combined, four weights in the bytes of a word ---- */

static void q6_k_prepare(float *out, const float *x, uint32_t cols)
{
    for (uint32_t b = 0; b < cols; b += 256, x += 256, out += PREPARED) {
        for (int g = 0; g < 8; g++)
            for (int k = 0; k < 4; k++) {
                const float *from = x + 32 * g + k;
                for (int w = 0; w < 8; w++) out[32 * g + 8 * k + w] = from[4 * w] * byte_unit[k];
            }
        for (int g = 0; g < 16; g++) out[256 + g] = 32 * sum_of(x + 16 * g, 16);
    }
}

/* Scales for a vector of words from `s` on: 16 weights, four words, have one. */
BZ_INLINE void spread(vf *out, const float *s)
{
#if defined(__wasm_simd128__)
    *out = (vf) { s[0], s[0], s[0], s[0] };
#else
    *out = (vf) { s[0], s[0], s[0], s[0], s[1], s[1], s[1], s[1] };
#endif
}

/* One vector's part of the 128 weights of n rows, whose lower bits are at w and upper two at qh. */
BZ_INLINE void q6_k_part(vf total[ROWS], const uint8_t *w, const uint8_t *qh, size_t row_bytes,
                         const float *scale, const float *x, int n)
{
    const uint32_t low = opaque(0x0f0f0f0f), high = opaque(0x30303030), mask = opaque(63);
    for (int j = 0; j < 4; j++) {
        vf sum[ROWS] = { 0 }, s;
        vu q[ROWS];
        for (int r = 0; r < n; r++) {
            vu lower = *(const vu *)(w + (size_t)r * row_bytes + 32 * (j & 1));
            vu upper = *(const vu *)(qh + (size_t)r * row_bytes);
            if (j >= 2) lower = DOWN(lower, 4);
            upper = j == 0 ? upper << 4 : j == 1 ? upper << 2 : j == 2 ? upper : DOWN(upper, 2);
            q[r] = (lower & low) | (upper & high);
        }
        for (int k = 0; k < 4; k++) {
            vf xk = *(const vf *)(x + 32 * j + 8 * k);
            for (int r = 0; r < n; r++) sum[r] += AS_FLOAT(q[r] & (mask << 8 * k)) * xk;
        }
        for (int r = 0; r < n; r++) {
            spread(&s, scale + 16 * r + 2 * j);
            total[r] += sum[r] * s;
        }
    }
}

BZ_INLINE void q6_k_n(float *y, const uint8_t *w, size_t row_bytes, const float *x, uint32_t cols,
                      int n)
{
    vf total[ROWS] = { 0 };
    vf4 offset[ROWS] = { 0 };
    for (uint32_t at = 0; at < cols; at += 256, w += 210, x += PREPARED) {
        vf4 scale[ROWS][4];
        for (int r = 0; r < n; r++) {
            const uint8_t *b = w + (size_t)r * row_bytes;
            float d = f16_to_f32(load_u16(b + 208));
            for (int i = 0; i < 4; i++) {
                vb4 sc = *(const vb4 *)(b + 192 + 4 * i);
                scale[r][i] = __builtin_convertvector(sc, vf4) * d;
                offset[r] += scale[r][i] * *(const vf4 *)(x + 256 + 4 * i);
            }
        }
        BZ_VECTOR
        for (int i = 0; i < 16; i += LANES) { /* words of both halves */
            int h = i / 8, v = i % 8;
            q6_k_part(total, w + 64 * h + 4 * v, w + 128 + 4 * i, row_bytes,
                      (const float *)scale + 8 * h + v / 4, x + 128 * h + v, n);
        }
    }
    for (int r = 0; r < n; r++) y[r] = sum_lanes(&total[r]) - sum4(&offset[r]);
}

BZ_CLONES static void q6_k_rows(float *y, const uint8_t *w, uint32_t n_row, const float *x,
                                uint32_t cols)
{
    size_t row_bytes = (size_t)cols / 256 * 210;
    uint32_t r = 0;
    for (; r + ROWS <= n_row; r += ROWS) q6_k_n(y + r, w + r * row_bytes, row_bytes, x, cols, ROWS);
    for (; r < n_row; r++) q6_k_n(y + r, w + r * row_bytes, row_bytes, x, cols, 1);
}

/* ---- Q8_0: a byte with its sign is shifted to the top of the word, so that it is 2^24 q ---- */

static void q8_0_prepare(float *out, const float *x, uint32_t cols)
{
    for (uint32_t b = 0; b < cols; b += 32, x += 32, out += 32)
        for (int k = 0; k < 4; k++)
            for (int w = 0; w < 8; w++) out[8 * k + w] = x[4 * w + k] * 0x1p-24f;
}

BZ_INLINE void q8_0_n(float *y, const uint8_t *w, size_t row_bytes, const float *x, uint32_t cols,
                      int n)
{
    vf total[ROWS] = { 0 };
    for (uint32_t at = 0; at < cols; at += 32, w += 34, x += 32) {
        vf sum[ROWS] = { 0 };
        for (int v = 0; v < 8; v += LANES) {
            vu q[ROWS];
            for (int r = 0; r < n; r++) q[r] = *(const vu *)(w + (size_t)r * row_bytes + 2 + 4 * v);
            for (int k = 0; k < 4; k++) {
                vf xk = *(const vf *)(x + 8 * k + v);
                for (int r = 0; r < n; r++)
                    sum[r] += AS_FLOAT((q[r] << (24 - 8 * k)) & 0xff000000u) * xk;
            }
        }
        for (int r = 0; r < n; r++)
            total[r] += sum[r] * f16_to_f32(load_u16(w + (size_t)r * row_bytes));
    }
    for (int r = 0; r < n; r++) y[r] = sum_lanes(&total[r]);
}

BZ_CLONES static void q8_0_rows(float *y, const uint8_t *w, uint32_t n_row, const float *x,
                                uint32_t cols)
{
    size_t row_bytes = (size_t)cols / 32 * 34;
    uint32_t r = 0;
    for (; r + ROWS <= n_row; r += ROWS) q8_0_n(y + r, w + r * row_bytes, row_bytes, x, cols, ROWS);
    for (; r < n_row; r++) q8_0_n(y + r, w + r * row_bytes, row_bytes, x, cols, 1);
}

static const struct dot_format formats[] = {
    { QUANT_Q4_K, q4_k_prepare, q4_k_rows },
    { QUANT_Q6_K, q6_k_prepare, q6_k_rows },
    { QUANT_Q8_0, q8_0_prepare, q8_0_rows },
};

const struct dot_format *dot_find(enum quant_id id)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].id == id) return &formats[i];
    return NULL;
}
