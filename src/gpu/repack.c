/* repack.c - from the blocks of a file to the parts of a shape; see repack.h.
 *
 * It owns the shapes' sizes and the loops that split blocks. It knows neither kernels nor buffers:
 * a window of rows goes in, a few pieces with their offsets come out.
 */
#include "gpu/repack.h"

#include <assert.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/simd.h"
#include "quant/iq4_table.h"

/* A block of each shape: weights, and bytes of its parts. */
static const struct {
    uint32_t block, bytes[REPACK_PARTS];
} shapes[N_GPU_SHAPES] = {
    [GPU_F32] = { 8, { 32 } },
    [GPU_F16] = { 8, { 16 } },
    [GPU_BF16] = { 8, { 16 } },
    [GPU_Q4_0] = { 32, { 16, 2 } },
    [GPU_Q5_0] = { 32, { 16, 4, 2 } },
    [GPU_Q8_0] = { 32, { 32, 2 } },
    [GPU_Q4_K] = { 256, { 144 } },
    [GPU_Q5_K] = { 256, { 176 } },
    [GPU_Q6_K] = { 256, { 192, 16, 2 } },
    [GPU_Q8_A] = { 16, { 16, 8 } },
};

enum gpu_shape gpu_shape_of(const struct quant_format *f)
{
    switch (f->id) {
    case QUANT_F32: return GPU_F32;
    case QUANT_F16: return GPU_F16;
    case QUANT_BF16: return GPU_BF16;
    case QUANT_Q4_0: return GPU_Q4_0;
    case QUANT_Q5_0: return GPU_Q5_0;
    case QUANT_Q8_0:
    case QUANT_IQ4_NL: return GPU_Q8_0; /* its sixteen steps are whole and below 128 */
    case QUANT_Q4_K: return GPU_Q4_K;
    case QUANT_Q5_K: return GPU_Q5_K;
    case QUANT_Q6_K: return GPU_Q6_K;
    case QUANT_Q4_1:
    case QUANT_Q5_1:
    case QUANT_Q2_K:
    case QUANT_Q3_K:
    case QUANT_IQ4_XS:
    case QUANT_MXFP4: return GPU_Q8_A;
    }
    assert(false && "a format without a shape");
    return GPU_F32;
}

/* ---- splitting: n blocks of the file to the parts ---- */

struct parts {
    uint8_t *p[REPACK_PARTS];
};

static const struct block_layout layout_q4_0 = { 18, 2, { { 2, 16 }, { 0, 2 } }, REPACK_NOTHING };
static const struct block_layout layout_q5_0 = {
    22, 3, { { 6, 16 }, { 2, 4 }, { 0, 2 } }, REPACK_NOTHING
};
static const struct block_layout layout_q8_0 = { 34, 2, { { 2, 32 }, { 0, 2 } }, REPACK_NOTHING };
static const struct block_layout layout_q6_k = {
    210, 3, { { 0, 192 }, { 192, 16 }, { 208, 2 } }, REPACK_Q6_K
};

/* Called with constants only, so that each copy is a move or two. */
BZ_INLINE void split_blocks(const uint8_t *restrict b, size_t n, struct parts o,
                            const struct block_layout *c)
{
    uint8_t *restrict p0 = o.p[0], *restrict p1 = o.p[1], *restrict p2 = o.p[2];
    for (; n > 0; n--, b += c->block) {
        memcpy(p0, b + c->part[0].at, c->part[0].bytes);
        p0 += c->part[0].bytes;
        memcpy(p1, b + c->part[1].at, c->part[1].bytes);
        p1 += c->part[1].bytes;
        if (c->n < 3) continue;
        memcpy(p2, b + c->part[2].at, c->part[2].bytes);
        p2 += c->part[2].bytes;
    }
}

static void split_q4_0(const uint8_t *b, size_t n, struct parts o)
{
    split_blocks(b, n, o, &layout_q4_0);
}

static void split_q5_0(const uint8_t *b, size_t n, struct parts o)
{
    split_blocks(b, n, o, &layout_q5_0);
}

static void split_q8_0(const uint8_t *b, size_t n, struct parts o)
{
    split_blocks(b, n, o, &layout_q8_0);
}

/* The nibbles of each group together: see kernels/load/repack_q4_k.wgsl. */
BZ_CLONES static void repack_q4_k(const uint8_t *restrict b, size_t n, struct parts o)
{
    uint8_t *restrict out = o.p[0];
    for (; n > 0; n--, b += 144, out += 144) {
        memcpy(out, b, 16);
        for (int p = 0; p < 4; p++) {
            const uint8_t *first = b + 16 + 32 * p, *second = first + 16;
            uint8_t *low = out + 16 + 32 * p, *high = low + 16;
            BZ_VECTOR
            for (int l = 0; l < 16; l++)
                low[l] = (uint8_t)((first[l] & 15) | (second[l] & 15) << 4);
            BZ_VECTOR
            for (int l = 0; l < 16; l++) high[l] = (uint8_t)(first[l] >> 4 | (second[l] & 0xf0));
        }
    }
}

/* Group g of 32 weights: their low bits to low[16], the two above them to high[8]. See
 * kernels/load/repack_q6_k.wgsl. */
BZ_INLINE void repack_group(const uint8_t *restrict b, int g, uint8_t *restrict low,
                            uint8_t *restrict high)
{
    const uint8_t *ql = b + 64 * (g / 4) + 32 * (g % 2), *qh = b + 128 + 32 * (g / 4);
    int low_at = g & 2 ? 4 : 0, high_at = 2 * (g % 4);
    BZ_VECTOR
    for (int l = 0; l < 16; l++)
        low[l] = (uint8_t)((ql[l] >> low_at & 15) | (ql[l + 16] >> low_at & 15) << 4);
    for (int r = 0; r < 2; r++, qh += 16, high += 4)
        for (int l = 0; l < 4; l++)
            high[l] = (uint8_t)((qh[l] >> high_at & 3) | (qh[l + 4] >> high_at & 3) << 2 |
                                (qh[l + 8] >> high_at & 3) << 4 | (qh[l + 12] >> high_at & 3) << 6);
}

BZ_CLONES static void repack_q6_k(const uint8_t *restrict b, size_t n, struct parts o)
{
    uint8_t *restrict codes = o.p[0], *restrict scales = o.p[1], *restrict d = o.p[2];
    for (; n > 0; n--, b += 210, codes += 192, scales += 16, d += 2) {
        for (int g = 0; g < 8; g++) repack_group(b, g, codes + 16 * g, codes + 128 + 8 * g);
        memcpy(scales, b + 192, 16);
        memcpy(d, b + 208, 2);
    }
}

/* ---- widening: n blocks of the file to eight-bit codes ---- */

/* -0 and not 0: adding it leaves every product as it is, also a product of -0. */
static const float no_offset = -0.0f;

/* The scale and offset of n groups of 16 in a row. */
BZ_INLINE uint8_t *put_pairs(uint8_t *p, int n, float scale, float offset)
{
    float pair[2] = { scale, offset };
    for (; n > 0; n--, p += 8) memcpy(p, pair, 8);
    return p;
}

BZ_INLINE void put_nibbles(uint8_t *restrict codes, const uint8_t *restrict qs)
{
    BZ_VECTOR
    for (int j = 0; j < 16; j++) codes[j] = qs[j] & 15;
    BZ_VECTOR
    for (int j = 0; j < 16; j++) codes[j + 16] = qs[j] >> 4;
}

/* Nibbles through a table of sixteen whole numbers. */
BZ_INLINE void put_steps(uint8_t *restrict codes, const uint8_t *restrict qs, const int8_t *table)
{
    for (int j = 0; j < 16; j++) {
        codes[j] = (uint8_t)table[qs[j] & 15];
        codes[j + 16] = (uint8_t)table[qs[j] >> 4];
    }
}

/* The levels of mxfp4.c. */
static const int8_t mxfp4_steps[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

BZ_INLINE void iq4_steps(int8_t *table)
{
    for (int i = 0; i < 16; i++) table[i] = (int8_t)iq4_table[i];
}

BZ_CLONES static void widen_q4_1(const uint8_t *restrict b, size_t n, struct parts o)
{
    uint8_t *restrict codes = o.p[0], *restrict second = o.p[1];
    for (; n > 0; n--, b += 20, codes += 32) {
        put_nibbles(codes, b + 4);
        second = put_pairs(second, 2, f16_to_f32(load_u16(b)), f16_to_f32(load_u16(b + 2)));
    }
}

BZ_CLONES static void widen_q5_1(const uint8_t *restrict b, size_t n, struct parts o)
{
    uint8_t *restrict codes = o.p[0], *restrict second = o.p[1];
    for (; n > 0; n--, b += 24, codes += 32) {
        uint32_t high = load_u32(b + 4);
        put_nibbles(codes, b + 8);
        for (int j = 0; j < 32; j++) codes[j] |= (uint8_t)((high >> j & 1) << 4);
        second = put_pairs(second, 2, f16_to_f32(load_u16(b)), f16_to_f32(load_u16(b + 2)));
    }
}

BZ_CLONES static void widen_q2_k(const uint8_t *restrict b, size_t n, struct parts o)
{
    uint8_t *restrict codes = o.p[0], *restrict second = o.p[1];
    for (; n > 0; n--, b += 84, codes += 256) {
        float d = f16_to_f32(load_u16(b + 80)), dmin = f16_to_f32(load_u16(b + 82));
        for (int k = 0; k < 8; k++) {
            const uint8_t *qs = b + 16 + 32 * (k / 4);
            for (int l = 0; l < 32; l++) codes[32 * k + l] = qs[l] >> (2 * (k % 4)) & 3;
        }
        for (int g = 0; g < 16; g++) {
            float offset = -(dmin * (float)(b[g] >> 4));
            second = put_pairs(second, 1, d * (float)(b[g] & 15), offset);
        }
    }
}

BZ_CLONES static void widen_q3_k(const uint8_t *restrict b, size_t n, struct parts o)
{
    uint8_t *restrict codes = o.p[0], *restrict second = o.p[1];
    for (; n > 0; n--, b += 110, codes += 256) {
        const uint8_t *hmask = b, *s = b + 96;
        float d = f16_to_f32(load_u16(b + 108));
        for (int k = 0; k < 8; k++) {
            const uint8_t *qs = b + 32 + 32 * (k / 4);
            for (int l = 0; l < 32; l++)
                codes[32 * k + l] =
                    (uint8_t)((qs[l] >> (2 * (k % 4)) & 3) + ((hmask[l] >> k & 1) << 2) - 4);
        }
        for (int g = 0; g < 16; g++) {
            int low = s[g % 8] >> (g / 8 * 4) & 15, high = s[8 + g % 4] >> (g / 4 * 2) & 3;
            second = put_pairs(second, 1, d * (float)((low | high << 4) - 32), no_offset);
        }
    }
}

static void widen_iq4_xs(const uint8_t *restrict b, size_t n, struct parts o)
{
    uint8_t *restrict codes = o.p[0], *restrict second = o.p[1];
    int8_t steps[16];
    iq4_steps(steps);
    for (; n > 0; n--, b += 136, codes += 256) {
        float d = f16_to_f32(load_u16(b));
        int scales_h = load_u16(b + 2);
        for (int g = 0; g < 8; g++) {
            int low = b[4 + g / 2] >> (4 * (g % 2)) & 15, high = scales_h >> (2 * g) & 3;
            put_steps(codes + 32 * g, b + 8 + 16 * g, steps);
            second = put_pairs(second, 2, d * (float)((low | high << 4) - 32), no_offset);
        }
    }
}

static void widen_mxfp4(const uint8_t *restrict b, size_t n, struct parts o)
{
    uint8_t *restrict codes = o.p[0], *restrict second = o.p[1];
    for (; n > 0; n--, b += 17, codes += 32) {
        uint32_t e = b[0]; /* 2^(e - 128); the two smallest are below f32's normal range */
        float d = f32_from_bits(e < 2 ? (uint32_t)0x00200000 << e : (e - 1) << 23);
        put_steps(codes, b + 1, mxfp4_steps);
        second = put_pairs(second, 2, d, no_offset);
    }
}

static void widen_iq4_nl(const uint8_t *restrict b, size_t n, struct parts o)
{
    uint8_t *restrict codes = o.p[0], *restrict second = o.p[1];
    int8_t steps[16];
    iq4_steps(steps);
    for (; n > 0; n--, b += 18, codes += 32, second += 2) {
        put_steps(codes, b + 2, steps);
        memcpy(second, b, 2);
    }
}

/* NULL where the file's bytes are the shape's only part. */
static void (*repacker(enum quant_id id))(const uint8_t *, size_t, struct parts)
{
    switch (id) {
    case QUANT_Q4_0: return split_q4_0;
    case QUANT_Q5_0: return split_q5_0;
    case QUANT_Q8_0: return split_q8_0;
    case QUANT_Q6_K: return repack_q6_k;
    case QUANT_Q4_K: return repack_q4_k;
    case QUANT_Q4_1: return widen_q4_1;
    case QUANT_Q5_1: return widen_q5_1;
    case QUANT_Q2_K: return widen_q2_k;
    case QUANT_Q3_K: return widen_q3_k;
    case QUANT_IQ4_XS: return widen_iq4_xs;
    case QUANT_MXFP4: return widen_mxfp4;
    case QUANT_IQ4_NL: return widen_iq4_nl;
    case QUANT_F32:
    case QUANT_F16:
    case QUANT_BF16:
    case QUANT_Q5_K: break;
    }
    return NULL;
}

/* ---- sizes ---- */

/* Blocks of the shape in a row. */
static uint64_t row_blocks(enum gpu_shape s, uint32_t cols)
{
    return ((uint64_t)cols + shapes[s].block - 1) / shapes[s].block;
}

/* Rows whose last block is not whole are copied and padded. */
static bool is_padded(enum gpu_shape s, uint32_t cols)
{
    return cols % shapes[s].block != 0;
}

bool gpu_layout_of(const struct quant_format *f, uint32_t rows, uint32_t cols,
                   struct gpu_layout *out)
{
    struct gpu_layout l = { .shape = gpu_shape_of(f) };
    const uint32_t *bytes = shapes[l.shape].bytes;
    const uint64_t limit = (uint64_t)1 << 34; /* offsets are u32 words */
    uint64_t n = row_blocks(l.shape, cols) * rows;
    for (int k = 0; k < REPACK_PARTS && bytes[k]; k++) {
        uint64_t part;
        if (!size_mul(n, bytes[k], &part) || part >= limit) return false;
        l.at[k] = l.bytes;
        l.bytes += (part + 15) / 16 * 16;
        if (l.bytes >= limit) return false;
    }
    uint32_t second = (uint32_t)(l.at[1] / 4), third = (uint32_t)(l.at[2] / 4);
    l.scales = l.shape == GPU_Q5_0 ? third : second;
    l.high = l.shape == GPU_Q5_0 ? second : 0;
    l.d = l.shape == GPU_Q6_K ? third : 0;
    *out = l;
    return true;
}

/* A part's offset in words where all parts begin `n` blocks later. */
static uint32_t words_from(enum gpu_shape s, int part, uint32_t at, uint64_t n)
{
    if (!at) return 0; /* there is none */
    return (uint32_t)(at + n * shapes[s].bytes[part] / 4 - n * shapes[s].bytes[0] / 4);
}

uint32_t gpu_layout_from(struct gpu_layout *l, uint32_t cols, uint32_t first)
{
    uint64_t n = row_blocks(l->shape, cols) * first;
    bool q5_0 = l->shape == GPU_Q5_0;
    assert(first % 64 == 0);
    l->scales = words_from(l->shape, q5_0 ? 2 : 1, l->scales, n);
    l->high = words_from(l->shape, 1, l->high, n);
    l->d = words_from(l->shape, 2, l->d, n);
    return (uint32_t)(n * shapes[l->shape].bytes[0]);
}

uint32_t gpu_repack_step(const struct quant_format *f, uint32_t cols)
{
    enum gpu_shape s = gpu_shape_of(f);
    uint64_t n = row_blocks(s, cols);
    for (int k = 0; k < REPACK_PARTS; k++)
        if (n * shapes[s].bytes[k] % 4) return 2;
    return 1;
}

/* Bytes of part k of n blocks, as they are written: whole u32s. */
static size_t part_bytes(enum gpu_shape s, int k, uint64_t n)
{
    return (size_t)((n * shapes[s].bytes[k] + 3) / 4 * 4);
}

size_t gpu_repack_scratch(const struct quant_format *f, uint32_t cols, uint32_t n_rows)
{
    enum gpu_shape s = gpu_shape_of(f);
    if (!repacker(f->id) && !is_padded(s, cols)) return 0;
    size_t sum = 0;
    for (int k = 0; k < REPACK_PARTS; k++) sum += part_bytes(s, k, row_blocks(s, cols) * n_rows);
    return sum;
}

/* ---- a window ---- */

bool gpu_block_layout(const struct quant_format *f, uint32_t cols, struct block_layout *out)
{
    switch (f->id) {
    case QUANT_Q4_0: *out = layout_q4_0; return true;
    case QUANT_Q5_0: *out = layout_q5_0; return true;
    case QUANT_Q8_0: *out = layout_q8_0; return true;
    case QUANT_Q6_K: *out = layout_q6_k; return true;
    case QUANT_Q4_K:
        *out = (struct block_layout) { f->bytes, 1, { { 0, f->bytes } }, REPACK_Q4_K };
        return true;
    default: break;
    }
    if (repacker(f->id) || is_padded(gpu_shape_of(f), cols)) return false;
    *out = (struct block_layout) { f->bytes, 1, { { 0, f->bytes } }, REPACK_NOTHING };
    return true;
}

void gpu_repack_pieces(const struct quant_format *f, uint32_t cols, uint32_t first_row,
                       uint32_t n_rows, uint32_t total_rows, struct repack_out *out)
{
    struct gpu_layout l;
    bool fits = gpu_layout_of(f, total_rows, cols, &l);
    uint32_t step = gpu_repack_step(f, cols);
    assert(fits && first_row % step == 0 && n_rows <= total_rows - first_row);
    assert(n_rows % step == 0 || first_row + n_rows == total_rows);
    (void)fits;
    (void)step;

    const uint32_t *bytes = shapes[l.shape].bytes;
    uint64_t blocks = row_blocks(l.shape, cols), n = blocks * n_rows;
    for (out->n = 0; out->n < REPACK_PARTS && bytes[out->n]; out->n++) {
        int k = (int)out->n;
        out->piece[k].offset = l.at[k] + blocks * first_row * bytes[k];
        out->piece[k].bytes = part_bytes(l.shape, k, n);
        out->piece[k].data = NULL;
    }
}

static void pad_rows(uint8_t *dst, size_t dst_bytes, const uint8_t *src, size_t src_bytes,
                     uint32_t n_rows)
{
    for (; n_rows > 0; n_rows--, dst += dst_bytes, src += src_bytes) {
        memcpy(dst, src, src_bytes);
        memset(dst + src_bytes, 0, dst_bytes - src_bytes);
    }
}

void gpu_repack(const struct quant_format *f, uint32_t cols, const void *rows_in,
                uint32_t first_row, uint32_t n_rows, uint32_t total_rows, struct repack_out *out)
{
    enum gpu_shape shape = gpu_shape_of(f);
    const uint32_t *bytes = shapes[shape].bytes;
    uint64_t blocks = row_blocks(shape, cols), n = blocks * n_rows;
    struct parts parts = { 0 };
    uint8_t *mem = out->mem;
    gpu_repack_pieces(f, cols, first_row, n_rows, total_rows, out);
    for (uint32_t k = 0; k < out->n; k++) {
        size_t exact = (size_t)(n * bytes[k]), whole = out->piece[k].bytes;
        if (whole > exact) memset(mem + exact, 0, whole - exact);
        parts.p[k] = mem;
        out->piece[k].data = mem;
        if (mem) mem += whole;
    }
    size_t row_bytes = quant_row_bytes(f, cols);
    if (repacker(f->id)) repacker(f->id)(rows_in, row_bytes * n_rows / f->bytes, parts);
    else if (is_padded(shape, cols))
        pad_rows(parts.p[0], (size_t)(blocks * bytes[0]), rows_in, row_bytes, n_rows);
    else out->piece[0].data = rows_in;
}
