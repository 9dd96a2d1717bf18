/* gguf_place.c - see gguf_place.h. */
#include "io/gguf_place.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "io/quote.h"
#include "quant/quant.h"

/* Bytes of the tensor from its shape and type; 0 when the type is unknown. */
static enum bz_status measure_tensor(struct gguf_tensor *t, const char *file, struct bz_err *err)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < 4; i++) {
        if (t->ne[i] == 0)
            return fail(err, BZ_ERR_FORMAT,
                        "%s: tensor '%s' is empty: its dimension %" PRIu32 " is 0", file,
                        quote(t->name).z, i);
        if (!size_mul(n, t->ne[i], &n) || n > INT64_MAX)
            return fail(err, BZ_ERR_FORMAT, "%s: tensor '%s' has more weights than 64 bits count",
                        file, quote(t->name).z);
    }
    uint32_t block, bytes;
    if (!quant_type_size(t->type, &block, &bytes)) return BZ_OK;
    if (t->ne[0] % block)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: tensor '%s' has rows of %" PRIu64
                    " weights, but %s comes in blocks of %" PRIu32,
                    file, quote(t->name).z, t->ne[0], quant_type_name(t->type), block);
    if (!size_mul(n / block, bytes, &t->n_bytes))
        return fail(err, BZ_ERR_FORMAT, "%s: tensor '%s' has more bytes than 64 bits count", file,
                    quote(t->name).z);
    return BZ_OK;
}

static enum bz_status place_tensor(struct gguf_tensor *t, const struct source *src, uint64_t base,
                                   uint64_t align, struct bz_err *err)
{
    const char *file = src->name;
    enum bz_status st = measure_tensor(t, file, err);
    if (st) return st;
    if (t->offset & (align - 1))
        return fail(err, BZ_ERR_FORMAT,
                    "%s: tensor '%s' starts at offset %" PRIu64
                    ", which is not a multiple of %" PRIu64,
                    file, quote(t->name).z, t->offset, align);
    uint64_t end;
    if (!size_add(t->offset, base, &t->offset) || !size_add(t->offset, t->n_bytes, &end) ||
        end > src->size)
        return fail(err, BZ_ERR_FORMAT,
                    "%s: tensor '%s' (%" PRIu64
                    " bytes) reaches past the end of the file at byte %" PRIu64
                    ": it is cut off or damaged",
                    file, quote(t->name).z, t->n_bytes, src->size);
    return BZ_OK;
}

/* ---- overlaps ---- */

static int by_offset(const void *pa, const void *pb)
{
    const struct gguf_tensor *a = *(const struct gguf_tensor *const *)pa;
    const struct gguf_tensor *b = *(const struct gguf_tensor *const *)pb;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static bool is_sorted(const struct gguf_tensor *tensors, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++)
        if (tensors[i].offset < tensors[i - 1].offset) return false;
    return true;
}

/* Tensors that share bytes are refused: with a thousand names for a few megabytes, a small file
 * could ask for any amount of memory, and no writer makes such files. Files usually list tensors in
 * the order of their offsets; the sort is for the others. */
static enum bz_status check_overlap(const struct gguf_tensor *tensors, uint64_t n, const char *file,
                                    struct bz_err *err)
{
    const struct gguf_tensor **order = mem_alloc((size_t)n, sizeof *order), *last = NULL;
    enum bz_status st = order ? BZ_OK : fail_memory(err, n * sizeof *order);
    for (uint64_t i = 0; order && i < n; i++) order[i] = &tensors[i];
    if (order && !is_sorted(tensors, n)) qsort(order, (size_t)n, sizeof *order, by_offset);
    for (uint64_t i = 0; i < n && st == BZ_OK; i++) {
        const struct gguf_tensor *t = order[i];
        if (!t->n_bytes) continue; /* of an unknown type: nobody reads it */
        if (last && t->offset < last->offset + last->n_bytes)
            st = fail(err, BZ_ERR_FORMAT, "%s: tensors '%s' and '%s' overlap: the file is damaged",
                      file, quote(last->name).z, quote(t->name).z);
        last = t;
    }
    mem_free(order);
    return st;
}

enum bz_status gguf_place_tensors(struct gguf_tensor *tensors, uint64_t n, const struct source *src,
                                  uint64_t base, uint64_t align, struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    for (uint64_t i = 0; i < n && st == BZ_OK; i++)
        st = place_tensor(&tensors[i], src, base, align, err);
    return st ? st : check_overlap(tensors, n, src->name, err);
}
