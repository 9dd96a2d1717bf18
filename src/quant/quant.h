/* quant.h - the table of weight formats.
 *
 * A format is a block of `block` weights in `bytes` bytes; a row is whole blocks. Every format has
 * its own file with the layout drawn on top. decode is the definition that kernels are tested
 * against; it is bit-exact: products and sums in the order written, no fused multiply-add.
 */
#ifndef BEZEL_QUANT_QUANT_H
#define BEZEL_QUANT_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values are GGUF's. */
enum quant_id {
    QUANT_F32 = 0,
    QUANT_F16 = 1,
    QUANT_Q4_0 = 2,
    QUANT_Q4_1 = 3,
    QUANT_Q5_0 = 6,
    QUANT_Q5_1 = 7,
    QUANT_Q8_0 = 8,
    QUANT_Q2_K = 10,
    QUANT_Q3_K = 11,
    QUANT_Q4_K = 12,
    QUANT_Q5_K = 13,
    QUANT_Q6_K = 14,
    QUANT_IQ4_NL = 20,
    QUANT_IQ4_XS = 23,
    QUANT_BF16 = 30,
    QUANT_MXFP4 = 39,
};

struct quant_format {
    enum quant_id id;
    const char *name; /* "Q4_K" */
    uint32_t block;   /* weights in a block */
    uint32_t bytes;   /* bytes of a block */
    /* n weights (whole blocks) from src to dst. */
    void (*decode)(const void *src, float *dst, size_t n);
    /* The reverse, as close as the format allows; NULL where Bezel only reads the format. */
    void (*encode)(const float *src, void *dst, size_t n);
};

/* NULL when the id is not one of ours. */
const struct quant_format *quant_find(uint32_t id);
const struct quant_format *quant_find_name(const char *name); /* case-insensitive */
const struct quant_format *quant_at(size_t index);            /* NULL past the last */

/* The name of any GGUF tensor type, also of those that Bezel does not read; never NULL. */
const char *quant_type_name(uint32_t id);

/* Block shape of any GGUF tensor type (so that a file with an unread type still has sizes);
 * false when the id is unknown altogether. */
bool quant_type_size(uint32_t id, uint32_t *block, uint32_t *bytes);

/* Bytes of a row of n weights; n must be whole blocks. */
static inline size_t quant_row_bytes(const struct quant_format *f, size_t n)
{
    return n / f->block * f->bytes;
}

#endif
