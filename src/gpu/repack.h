/* repack.h - weights of a file as the kernels want them: in parts, every load aligned to 16 bytes.
 *
 * GGUF has sixteen formats that Bezel reads; kernels know ten shapes. Nothing is lost on the way:
 * a weight decoded from its shape has the bits that quant decode gives. A row is blocks of a fixed
 * number of weights; a shape splits a block into one to three parts, and the buffer holds all first
 * parts, then all second ones, then all third ones. Blocks are counted through all rows, and each
 * part begins at a multiple of 16 bytes.
 *
 *     shape   block  first part             second part          third part      value
 *     F32     8      8 f32                                                       w
 *     F16     8      8 halves                                                    w
 *     BF16    8      8 bf16                                                      w
 *     Q4_0    32     qs[16]                 d: half                              d (q - 8)
 *     Q5_0    32     qs[16]                 qh: u32              d: half         d (q - 16)
 *     Q8_0    32     q[32]: i8              d: half                              d q
 *     Q4_K    256    header[16], qs[8][16]                                       d sc q - dmin mn
 *     Q5_K    256    the file's 176 bytes                                        d sc q - dmin mn
 *     Q6_K    256    ql[8][16], qh[8][8]    scales[16]: i8       d: half         d sc (q - 32)
 *     Q8_A    16     q[16]: i8              s, o: two f32                        s q + o
 *
 * What the letters mean inside a block is in the file of the format in src/quant/; the bits of
 * Q4_K's and Q6_K's groups, which share bytes there, are rearranged so that each group has its own
 * (kernels/load/repack_q4_k.wgsl, kernels/load/repack_q6_k.wgsl). F32, F16 and BF16 rows end with
 * zeros up to a whole block. A kernel gets the parts' offsets as `scales` (d of Q4_0, Q5_0, Q8_0;
 * scales of Q6_K; s and o of Q8_A), `high` (qh of Q5_0) and `d` (d of Q6_K).
 *
 * A tensor may be split by rows over several buffers; each is laid out for itself.
 */
#ifndef BEZEL_GPU_REPACK_H
#define BEZEL_GPU_REPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quant/quant.h"

/* In the order of the lists in kernels/. */
enum gpu_shape {
    GPU_F32,
    GPU_F16,
    GPU_BF16,
    GPU_Q4_0,
    GPU_Q5_0,
    GPU_Q8_0,
    GPU_Q4_K,
    GPU_Q5_K,
    GPU_Q6_K,
    GPU_Q8_A,
    N_GPU_SHAPES
};

enum { REPACK_PARTS = 3 };

struct gpu_layout {
    enum gpu_shape shape;
    uint64_t bytes;            /* of the buffer, a multiple of 16 */
    uint32_t scales, high, d;  /* in u32 words from the buffer's start; 0: no such part */
    uint64_t at[REPACK_PARTS]; /* the parts' offsets in bytes */
};

/* A window of rows on its way: what to write where. Every offset and size is a multiple of 4. */
struct repack_out {
    void *mem; /* set by the caller: gpu_repack_scratch() bytes */
    uint32_t n;
    struct {
        uint64_t offset; /* in the buffer */
        size_t bytes;
        const void *data; /* in mem, or in the caller's rows */
    } piece[REPACK_PARTS];
};

/* How the bits of a block's first part are rearranged. */
enum repack_bits { REPACK_NOTHING, REPACK_Q4_K, REPACK_Q6_K };

/* Formats whose bits are only moved: where part k of the shape lies in each block of the file. A
 * shape that is the file's own bytes has one part, the block; so has Q4_K. */
struct block_layout {
    uint32_t block; /* bytes, even as all of these */
    uint32_t n;
    struct block_part {
        uint32_t at, bytes;
    } part[REPACK_PARTS];
    enum repack_bits bits;
};

enum gpu_shape gpu_shape_of(const struct quant_format *f);

/* False where a window must go through gpu_repack: weights are converted, or rows padded. */
bool gpu_block_layout(const struct quant_format *f, uint32_t cols, struct block_layout *out);

/* The buffer of rows x cols weights; cols are whole blocks of f. False when it has 16 GiB or more.
 */
bool gpu_layout_of(const struct quant_format *f, uint32_t rows, uint32_t cols,
                   struct gpu_layout *out);

/* The same for a reader that begins at row `first`, a multiple of 64: *l gets the parts' offsets
 * from there. Returns how many bytes of the buffer come before, a multiple of 256. */
uint32_t gpu_layout_from(struct gpu_layout *l, uint32_t cols, uint32_t first);

/* Windows begin at a multiple of this many rows (1 or 2), so that no u32 is written twice. */
uint32_t gpu_repack_step(const struct quant_format *f, uint32_t cols);

/* Bytes of repack_out.mem for a window of n_rows; 0 where the file's own bytes are used. */
size_t gpu_repack_scratch(const struct quant_format *f, uint32_t cols, uint32_t n_rows);

/* Rows [first_row, first_row + n_rows) of total_rows, whose bytes as in the file are rows_in.
 * n_rows is a multiple of the step unless the window is the last. */
void gpu_repack(const struct quant_format *f, uint32_t cols, const void *rows_in,
                uint32_t first_row, uint32_t n_rows, uint32_t total_rows, struct repack_out *out);

/* Where the pieces of such a window go, without their data. */
void gpu_repack_pieces(const struct quant_format *f, uint32_t cols, uint32_t first_row,
                       uint32_t n_rows, uint32_t total_rows, struct repack_out *out);

#endif
