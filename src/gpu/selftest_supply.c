/* selftest_supply.c - the random numbers that the self-test's inputs are made of. */
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "gpu/selftest_impl.h"

enum { FEW = 4096 }; /* numbers of a supply; whole blocks of any format */

static float normal(struct rng *rng)
{
    uint64_t bits = rng_next(rng);
    float sum = -2;
    for (int i = 0; i < 64; i += 16) sum += (float)(bits >> i & 0xffff) * 0x1p-16f;
    return sum * 1.7320508f;
}

/* n random numbers as bytes. Q4_1 has no encoder: any codes will do, with scales that are numbers.
 */
static void encode(struct rng *rng, const struct quant_format *f, const float *values,
                   uint8_t *bytes, size_t n, float size)
{
    if (f->encode) {
        f->encode(values, bytes, n);
        return;
    }
    uint16_t scales[] = { f32_to_f16(size / 5), f32_to_f16(-size) };
    for (size_t i = 0, n_bytes = quant_row_bytes(f, n); i < n_bytes; i++)
        bytes[i] = (uint8_t)rng_next(rng);
    for (size_t b = 0; b < n / f->block; b++) memcpy(bytes + b * f->bytes, scales, sizeof scales);
}

/* FEW numbers as bytes, and the same again behind them. NULL: memory is short. */
static const uint8_t *blocks_of(struct stage_supply *y, const struct quant_format *f, float size)
{
    for (uint32_t i = 0; i < y->n; i++)
        if (y->blocks[i].f == f && y->blocks[i].size == size) return y->blocks[i].bytes;
    if (y->n == y->cap) {
        uint32_t cap = y->cap ? 2 * y->cap : 16;
        struct stage_blocks *grown = mem_grow(y->blocks, cap, sizeof *grown);
        if (!grown) return NULL;
        y->blocks = grown;
        y->cap = cap;
    }
    struct rng rng = { y->n };
    size_t n_bytes = quant_row_bytes(f, FEW);
    float *values = mem_alloc(FEW, sizeof *values);
    uint8_t *bytes = mem_alloc(n_bytes, 2);
    if (values && bytes) {
        for (size_t i = 0; i < FEW; i++) values[i] = size * normal(&rng);
        encode(&rng, f, values, bytes, FEW, size);
        memcpy(bytes + n_bytes, bytes, n_bytes);
        y->blocks[y->n++] = (struct stage_blocks) { f, size, bytes };
    } else {
        mem_free(bytes);
        bytes = NULL;
    }
    mem_free(values);
    return bytes;
}

void stage_supply_free(struct stage_supply *y)
{
    for (uint32_t i = 0; i < y->n; i++) mem_free(y->blocks[i].bytes);
    mem_free(y->blocks);
}

/* n random numbers near `size`, as bytes: runs of the supply, each from some place on. A supply
 * has few blocks, so a run has four of them, or many matrices would be alike; numbers that are
 * alone come in runs as long as the supply, and a row of logits has none twice. */
bool stage_fill(struct stage *s, const struct quant_format *f, uint8_t *to, size_t n, float size)
{
    const uint8_t *from = blocks_of(s->supply, f, size);
    if (!from) return false;
    size_t run = f->block > 1 ? 4 * f->bytes : FEW * f->bytes;
    for (size_t left = quant_row_bytes(f, n); left > 0; left -= run, to += run) {
        if (run > left) run = left;
        memcpy(to, from + rng_below(&s->rng, FEW / f->block) * f->bytes, run);
    }
    return true;
}
