#include "gpu/adapt.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

void gpu_adapted_free(struct gpu_adapted *d)
{
    if (d->a) gpu_buffer_free(d->a);
    if (d->b) gpu_buffer_free(d->b);
    *d = (struct gpu_adapted) { 0 };
}

/* f32 from row to row of A. */
static uint32_t padded(uint32_t cols)
{
    return (cols + 7) / 8 * 8;
}

static void write_scales(const struct gpu_adapted *d, const struct weight *w)
{
    float eight[8];
    for (int canvas = 0; canvas < 2; canvas++) {
        uint32_t at = gpu_adapted_scales(d, w, canvas), i = 0;
        for (const struct lora *l = w->lora; l; l = l->next, i++)
            for (uint32_t k = 0; k < lora_rank(l); k += 8) {
                for (int j = 0; j < 8; j++) eight[j] = lora_scale(l, canvas);
                gpu_buffer_write(d->b, (at + d->at[i] + k) * 4, eight, sizeof eight);
            }
    }
}

/* The rows of an adapter that `old` has, matrix by matrix. */
static void copy_rows(const struct gpu_adapted *d, uint32_t i, const struct gpu_adapted *old,
                      uint32_t k, const struct lora *l, const struct weight *w)
{
    uint32_t cols = padded(w->cols), rank = lora_rank(l);
    for (uint32_t mat = 0; mat < w->n_mat; mat++) {
        uint32_t from = mat * old->rank + old->at[k], to = mat * d->rank + d->at[i];
        gpu_buffer_copy(old->a, from * cols * 4, d->a, to * cols * 4, rank * cols * 4);
        gpu_buffer_copy(old->b, from * w->rows * 4, d->b, to * w->rows * 4, rank * w->rows * 4);
    }
}

/* The rows of a new one. What is past its own rank stays zero, as buffers begin. */
static enum bz_status write_rows(const struct gpu_adapted *d, uint32_t i, const struct lora *l,
                                 const struct weight *w, struct bz_err *err)
{
    uint32_t rank = l->a.rows, cols = w->cols, rows = w->rows;
    size_t n_a = (size_t)rank * cols, n_b = (size_t)rank * rows;
    float *a = mem_alloc(n_a, sizeof *a), *b = mem_alloc(n_b, sizeof *b);
    float *transposed = mem_alloc(n_b, sizeof *transposed);
    enum bz_status st =
        a && b && transposed ? BZ_OK : fail_memory(err, (n_a + 2 * n_b) * sizeof(float));
    for (uint32_t mat = 0; st == BZ_OK && mat < w->n_mat; mat++) {
        st = source_read(l->a.src, l->a.offset + mat * n_a * 4, a, n_a * 4, err);
        if (st == BZ_OK) st = source_read(l->b.src, l->b.offset + mat * n_b * 4, b, n_b * 4, err);
        if (st) break;
        uint32_t to = mat * d->rank + d->at[i];
        for (uint32_t k = 0; k < rank; k++)
            gpu_buffer_write(d->a, (to + k) * padded(cols) * 4, a + (size_t)k * cols, cols * 4);
        for (uint32_t row = 0; row < rows; row++)
            for (uint32_t k = 0; k < rank; k++)
                transposed[(size_t)k * rows + row] = b[(size_t)row * rank + k];
        gpu_buffer_write(d->b, to * rows * 4, transposed, (uint32_t)n_b * 4);
    }
    mem_free(a);
    mem_free(b);
    mem_free(transposed);
    return st;
}

/* Which adapters, and where each begins. */
static enum bz_status lay_out(struct gpu_adapted *d, const struct weight *w,
                              const struct gpu_limits *limits, struct bz_err *err)
{
    for (const struct lora *l = w->lora; l; l = l->next) {
        if (d->n == MAX_ADAPTED)
            return fail(err, BZ_ERR_UNSUPPORTED, "more than %d adapters on one matrix",
                        MAX_ADAPTED);
        d->which[d->n] = l;
        d->at[d->n++] = d->rank;
        d->rank += lora_rank(l);
    }
    uint64_t rows = (uint64_t)w->n_mat * d->rank,
             wide = padded(w->cols) > w->rows ? padded(w->cols) : w->rows;
    uint64_t n_bytes = (rows * wide + 2 * d->rank) * 4;
    if (n_bytes > limits->max_binding || n_bytes > limits->max_buffer)
        return fail(err, BZ_ERR_LIMIT,
                    "the adapters of a matrix take %" PRIu64 " MB; this device binds %u MB",
                    n_bytes / 1000000, limits->max_binding / 1000000);
    return BZ_OK;
}

enum bz_status gpu_adapt(struct gpu_adapted *d, const struct weight *w,
                         const struct gpu_limits *limits, struct bz_err *err)
{
    struct gpu_adapted made = { 0 };
    enum bz_status st = lay_out(&made, w, limits, err);
    if (st) return st;
    if (made.n == d->n && memcmp(made.which, d->which, made.n * sizeof *made.which) == 0) {
        write_scales(d, w);
        return BZ_OK;
    }
    if (made.n) {
        uint32_t rows = w->n_mat * made.rank;
        made.a = gpu_buffer_new(rows * padded(w->cols) * 4, GPU_STORAGE);
        made.b = gpu_buffer_new((rows * w->rows + 2 * made.rank) * 4, GPU_STORAGE);
    }
    uint32_t i = 0;
    for (const struct lora *l = w->lora; st == BZ_OK && l; l = l->next, i++) {
        uint32_t k = 0;
        while (k < d->n && d->which[k] != l) k++;
        if (k < d->n) copy_rows(&made, i, d, k, l, w);
        else st = write_rows(&made, i, l, w, err);
    }
    if (st) {
        gpu_adapted_free(&made);
        return st;
    }
    write_scales(&made, w);
    gpu_adapted_free(d);
    *d = made;
    return BZ_OK;
}
