/* test_repack.c - weights on their way to the GPU: a second reader, written from the table in
 * gpu/repack.h, must find in the buffer the bits that quant decode finds in the file.
 *
 * The reader asks for "weight i of the buffer", one at a time, and knows nothing of GGUF's formats.
 */
#include <math.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "gpu/repack.h"

/* ---- weight i of a buffer, from the text ---- */

static float half_at(const uint8_t *part, uint64_t i)
{
    return f16_to_f32(load_u16(part + 2 * i));
}

static float float_at(const uint8_t *part, uint64_t i)
{
    return f32_from_bits(load_u32(part + 4 * i));
}

static int nibble(const uint8_t *qs, uint32_t j)
{
    return j < 16 ? qs[j] % 16 : qs[j - 16] / 16;
}

/* Pair g of the twelve bytes of Q4_K and Q5_K. */
static void six_bits(const uint8_t *s, uint32_t g, int *sc, int *mn)
{
    *sc = g < 4 ? s[g] & 63 : (s[g + 4] & 15) + (s[g - 4] >> 6) * 16;
    *mn = g < 4 ? s[g + 4] & 63 : (s[g + 4] >> 4) + (s[g] >> 6) * 16;
}

static float affine_value(const uint8_t *block, uint32_t g, int q)
{
    int sc, mn;
    six_bits(block + 4, g, &sc, &mn);
    float step = half_at(block, 0) * (float)sc, offset = half_at(block, 1) * (float)mn;
    float product = step * (float)q;
    return product - offset;
}

static float value_q4_k(const uint8_t *block, uint32_t j)
{
    return affine_value(block, j / 32, nibble(block + 16 + 16 * (j / 32), j % 32));
}

static float value_q5_k(const uint8_t *block, uint32_t j)
{
    uint32_t g = j / 32, l = j % 32;
    int byte = block[48 + 32 * (g / 2) + l], high = block[16 + l] >> g & 1;
    return affine_value(block, g, (g % 2 ? byte / 16 : byte % 16) + 16 * high);
}

/* A scale serves 16 weights. The two upper bits of weights 4c + b are in byte b from bit 2c on. */
static float value_q6_k(const uint8_t *codes, const uint8_t *scales, float d, uint32_t j)
{
    int low = nibble(codes + 16 * (j / 32), j % 32);
    int high = codes[128 + 4 * (j / 16) + j % 4] >> (2 * (j % 16 / 4)) & 3;
    float step = d * (float)(int8_t)scales[j / 16];
    return step * (float)(low + 16 * high - 32);
}

static float value_at(const struct gpu_layout *l, const uint8_t *buf, uint64_t i)
{
    const uint8_t *scales = buf + 4 * (uint64_t)l->scales, *high = buf + 4 * (uint64_t)l->high;
    const uint8_t *d = buf + 4 * (uint64_t)l->d;
    uint64_t n32 = i / 32, n256 = i / 256, n16 = i / 16;
    uint32_t j = (uint32_t)(i % 32);
    switch (l->shape) {
    case GPU_F32: return float_at(buf, i);
    case GPU_F16: return half_at(buf, i);
    case GPU_BF16: return bf16_to_f32(load_u16(buf + 2 * i));
    case GPU_Q4_0: return (float)(nibble(buf + 16 * n32, j) - 8) * half_at(scales, n32);
    case GPU_Q5_0: {
        int bit = (int)(load_u32(high + 4 * n32) >> j & 1);
        return (float)(nibble(buf + 16 * n32, j) + 16 * bit - 16) * half_at(scales, n32);
    }
    case GPU_Q8_0: return (float)(int8_t)buf[i] * half_at(scales, n32);
    case GPU_Q4_K: return value_q4_k(buf + 144 * n256, (uint32_t)(i % 256));
    case GPU_Q5_K: return value_q5_k(buf + 176 * n256, (uint32_t)(i % 256));
    case GPU_Q6_K:
        return value_q6_k(buf + 192 * n256, scales + 16 * n256, half_at(d, n256),
                          (uint32_t)(i % 256));
    case GPU_Q8_A: {
        float product = float_at(scales, 2 * n16) * (float)(int8_t)buf[i];
        return product + float_at(scales, 2 * n16 + 1);
    }
    case N_GPU_SHAPES: break;
    }
    return NAN;
}

/* ---- a tensor and its buffer ---- */

enum { FILL = 0xa5 };

struct tensor_case {
    const struct quant_format *f;
    uint32_t rows, cols, pad_cols; /* pad_cols: weights of a row in the buffer */
    uint8_t *file;
    struct gpu_layout layout;
    uint8_t *buffer;
};

/* Every block gets every bit at random; sometimes all zeros, which makes zeros of both signs. */
static void fill(struct tensor_case *c, struct rng *rng)
{
    size_t n = quant_row_bytes(c->f, c->cols) * c->rows;
    c->file = mem_alloc(n, 1);
    for (size_t i = 0; i < n; i++) c->file[i] = (uint8_t)(rng_next(rng) >> 40);
    for (size_t at = 0; at + c->f->bytes <= n; at += c->f->bytes)
        if (rng_below(rng, 8) == 0) memset(c->file + at, 0, c->f->bytes / 2);
}

/* All rows in windows of at most `window`; false when a piece lies outside of the buffer, off the
 * grid of u32s, or over bytes that were already written. */
static bool upload(struct tensor_case *c, uint32_t window)
{
    size_t row_bytes = quant_row_bytes(c->f, c->cols);
    uint8_t *written = mem_alloc(c->layout.bytes, 1);
    bool ok = true;
    c->buffer = mem_alloc(c->layout.bytes, 1);
    memset(c->buffer, FILL, c->layout.bytes);
    for (uint32_t first = 0; first < c->rows; first += window) {
        uint32_t n = c->rows - first < window ? c->rows - first : window;
        /* Copies of exactly the promised sizes, so that a sanitizer sees one byte too far. */
        uint8_t *in = mem_alloc(row_bytes * n, 1);
        memcpy(in, c->file + row_bytes * first, row_bytes * n);
        size_t scratch = gpu_repack_scratch(c->f, c->cols, n);
        struct repack_out out = { .mem = scratch ? mem_alloc(scratch, 1) : NULL };
        gpu_repack(c->f, c->cols, in, first, n, c->rows, &out);
        for (uint32_t k = 0; k < out.n; k++) {
            uint64_t at = out.piece[k].offset;
            size_t bytes = out.piece[k].bytes;
            ok &= at % 4 == 0 && bytes % 4 == 0 && at + bytes <= c->layout.bytes;
            if (!ok) break;
            for (size_t i = 0; i < bytes; i++) ok &= !written[at + i]++;
            memcpy(c->buffer + at, out.piece[k].data, bytes);
        }
        mem_free(out.mem);
        mem_free(in);
    }
    mem_free(written);
    return ok;
}

static struct tensor_case make_case(const struct quant_format *f, uint32_t rows, uint32_t cols,
                                    struct rng *rng)
{
    struct tensor_case c = { .f = f, .rows = rows, .cols = cols };
    c.pad_cols = (cols + 7) / 8 * 8;
    fill(&c, rng);
    CHECK(gpu_layout_of(f, rows, cols, &c.layout));
    return c;
}

static void free_case(struct tensor_case *c)
{
    mem_free(c->file);
    mem_free(c->buffer);
}

static bool same_bits(float a, float b)
{
    return f32_bits(a) == f32_bits(b) || (isnan(a) && isnan(b));
}

/* Weights whose bits differ; the padding must be zeros. */
static uint64_t count_wrong(const struct tensor_case *c)
{
    uint64_t wrong = 0;
    float *want = mem_alloc(c->pad_cols, sizeof *want);
    for (uint32_t r = 0; r < c->rows; r++) {
        c->f->decode(c->file + quant_row_bytes(c->f, c->cols) * r, want, c->cols);
        for (uint32_t j = 0; j < c->pad_cols; j++) {
            uint64_t i = (uint64_t)r * c->pad_cols + j;
            wrong += !same_bits(value_at(&c->layout, c->buffer, i), j < c->cols ? want[j] : 0);
        }
    }
    mem_free(want);
    return wrong;
}

static const uint32_t widths[] = { 1, 3, 8, 32, 96, 256, 512, 768, 1536 };

int main(void)
{
    struct rng rng = { 1 };

    TEST("every format decodes from its shape to the same bits, in windows of any size")
    {
        for (size_t k = 0; quant_at(k); k++)
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
                const struct quant_format *f = quant_at(k);
                if (widths[w] % f->block) continue;
                for (uint32_t rows = 1; rows <= 17; rows += rows == 1 ? 1 : 5) {
                    uint32_t step = gpu_repack_step(f, widths[w]);
                    struct tensor_case c = make_case(f, rows, widths[w], &rng);
                    for (uint32_t window = step; window <= rows + step; window += 2 * step) {
                        mem_free(c.buffer);
                        CHECK_MSG(upload(&c, window), "%s %u x %u by %u: a piece is misplaced",
                                  f->name, rows, c.cols, window);
                        uint64_t wrong = count_wrong(&c);
                        CHECK_MSG(wrong == 0, "%s %u x %u by %u: %llu weights differ", f->name,
                                  rows, c.cols, window, (unsigned long long)wrong);
                    }
                    free_case(&c);
                }
            }
    }

    TEST("a window of one row is allowed unless rows end in half a u32")
    {
        for (size_t k = 0; quant_at(k); k++) {
            CHECK(gpu_repack_step(quant_at(k), 1536) == 1);
            CHECK(gpu_repack_step(quant_at(k), 12288) == 1);
        }
        CHECK(gpu_repack_step(quant_find(QUANT_Q8_0), 96) == 2);
        CHECK(gpu_repack_step(quant_find(QUANT_Q6_K), 256) == 2);
        CHECK(gpu_repack_step(quant_find(QUANT_Q4_K), 256) == 1);
    }

    TEST("parts begin at multiples of 16 bytes and follow each other without overlap")
    {
        for (size_t k = 0; quant_at(k); k++)
            for (uint32_t rows = 1; rows < 20; rows++) {
                struct gpu_layout l;
                CHECK(gpu_layout_of(quant_at(k), rows, 768, &l));
                CHECK(l.scales % 4 == 0 && l.high % 4 == 0 && l.d % 4 == 0 && l.bytes % 16 == 0);
                CHECK((uint64_t)l.scales * 4 < l.bytes && (uint64_t)l.d * 4 < l.bytes);
                CHECK(l.at[1] <= l.bytes && l.at[2] <= l.bytes);
            }
    }

    TEST("formats that the kernels read as they are need no scratch memory")
    {
        CHECK(gpu_repack_scratch(quant_find(QUANT_Q5_K), 1536, 100) == 0);
        CHECK(gpu_repack_scratch(quant_find(QUANT_Q4_K), 1536, 100) == 100 * 6 * 144);
        CHECK(gpu_repack_scratch(quant_find(QUANT_F32), 64, 3) == 0);
        CHECK(gpu_repack_scratch(quant_find(QUANT_F32), 63, 3) == 64 * 3 * 4);
        CHECK(gpu_repack_scratch(quant_find(QUANT_Q8_0), 32, 3) == 3 * 32 + 8);
    }

    TEST("a buffer that no u32 offset could reach is refused")
    {
        struct gpu_layout l = { .bytes = 7 };
        CHECK(!gpu_layout_of(quant_find(QUANT_F32), 1u << 31, 1u << 31, &l));
        CHECK(!gpu_layout_of(quant_find(QUANT_F32), UINT32_MAX, UINT32_MAX, &l));
        CHECK(!gpu_layout_of(quant_find(QUANT_F32), 1u << 16, 1u << 16, &l));
        CHECK(!gpu_layout_of(quant_find(QUANT_Q2_K), 1u << 20, 1u << 14, &l));
        CHECK(l.bytes == 7);
        CHECK(gpu_layout_of(quant_find(QUANT_Q6_K), 262144, 1536, &l));
        CHECK(l.bytes == (uint64_t)262144 * 6 * 210);
    }

    CHECK(mem_live() == 0);
    return check_done();
}
