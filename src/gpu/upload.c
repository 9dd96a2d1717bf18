#include "gpu/upload.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- buffers ---- */

enum {
    VECTORS_BYTES = 64 << 10, /* of a page for vectors that were not announced */
    VECTORS_MOST = 16 << 20,  /* of any page, whatever a file promises */
    VECTOR_ALIGN = 256,       /* where a binding may begin */
};

/* Bytes of a page that a vector takes. */
static uint32_t vector_bytes(uint32_t cols)
{
    return (uint32_t)(((uint64_t)cols * 4 + VECTOR_ALIGN - 1) / VECTOR_ALIGN * VECTOR_ALIGN);
}

void upload_expect_vector(struct upload *u, uint32_t cols)
{
    u->vectors_expected += vector_bytes(cols);
}

static void leave_page(struct vector_page *page)
{
    if (!page || --page->n_vectors) return;
    if (*page->current == page) *page->current = NULL;
    gpu_buffer_free(page->buffer);
    mem_free(page);
}

/* A page with room for so many bytes. NULL: memory is short. */
static struct vector_page *page_for(struct upload *u, uint32_t n_bytes)
{
    struct vector_page *page = u->vectors;
    if (page && page->bytes - page->used >= n_bytes) return page;
    page = mem_alloc(1, sizeof *page);
    if (!page) return NULL;
    uint64_t expected = u->vectors_expected ? u->vectors_expected : VECTORS_BYTES;
    uint32_t bytes = expected < VECTORS_MOST ? (uint32_t)expected : VECTORS_MOST;
    if (bytes < n_bytes) bytes = n_bytes;
    u->vectors_expected = 0;
    *page = (struct vector_page) { .buffer = gpu_buffer_new(bytes, GPU_STORAGE),
                                   .bytes = bytes,
                                   .current = &u->vectors };
    u->vectors = page;
    return page;
}

void gpu_weight_free(struct gpu_weight *w)
{
    if (!w) return;
    for (uint32_t i = 0; !w->page && i < w->n_parts; i++)
        if (w->parts[i].buffer) gpu_buffer_free(w->parts[i].buffer);
    leave_page(w->page);
    gpu_adapted_free(&w->adapted);
    mem_free(w->parts);
    mem_free(w);
}

/* How many rows fit one binding: whole experts where there are several, else a multiple of 64. */
static uint32_t rows_a_part(const struct weight *w, uint32_t total, uint64_t most)
{
    struct gpu_layout layout;
    if (gpu_layout_of(w->fmt, total, w->cols, &layout) && layout.bytes <= most) return total;
    uint32_t unit = w->n_mat > 1 ? w->rows : 64;
    if (!gpu_layout_of(w->fmt, unit, w->cols, &layout) || layout.bytes > most) return 0;
    /* Parts of a layout are padded to 16 bytes each, so n units take at most n times one. */
    return (uint32_t)(most / layout.bytes) * unit;
}

static uint64_t device_bytes(const struct gpu_weight *g)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->n_parts; i++) n += g->parts[i].layout.bytes;
    return n;
}

static struct gpu_weight *make_parts(const struct weight *w, const struct gpu_limits *limits,
                                     struct bz_err *err)
{
    uint64_t total = (uint64_t)w->rows * w->n_mat;
    uint64_t most =
        limits->max_binding < limits->max_buffer ? limits->max_binding : limits->max_buffer;
    uint32_t step = total <= UINT32_MAX ? rows_a_part(w, (uint32_t)total, most) : 0;
    if (!step) {
        fail(err, BZ_ERR_LIMIT,
             "a tensor of %u x %" PRIu64 " does not fit this device's buffers of "
             "%" PRIu64 " bytes",
             w->cols, total, most);
        return NULL;
    }
    struct gpu_weight *g = mem_alloc(1, sizeof *g);
    uint32_t n = (uint32_t)((total + step - 1) / step);
    struct gpu_part *parts = g ? mem_alloc(n, sizeof *parts) : NULL;
    if (!parts) {
        mem_free(g);
        fail_memory(err, n * sizeof *parts);
        return NULL;
    }
    *g = (struct gpu_weight) { .shape = gpu_shape_of(w->fmt), .n_parts = n, .parts = parts };
    for (uint32_t i = 0; i < n; i++) {
        struct gpu_part *p = &parts[i];
        p->row0 = i * step;
        p->rows = total - p->row0 < step ? (uint32_t)total - p->row0 : step;
        gpu_layout_of(w->fmt, p->rows, w->cols, &p->layout);
        p->buffer = gpu_buffer_new((uint32_t)p->layout.bytes, GPU_STORAGE);
    }
    return g;
}

/* A vector as f32, whole vec4s of a page. */
static enum bz_status load_vector(struct upload *u, struct weight *w, struct bz_err *err)
{
    size_t n_bytes = quant_row_bytes(w->fmt, w->cols);
    uint32_t padded = (w->cols + 3) / 4 * 4;
    uint32_t taken = vector_bytes(w->cols);
    void *bytes = mem_alloc(n_bytes, 1);
    float *values = mem_alloc(padded, sizeof *values);
    struct gpu_weight *g = mem_alloc(1, sizeof *g);
    struct gpu_part *part = mem_alloc(1, sizeof *part);
    enum bz_status st = bytes && values && g && part
                            ? source_read(w->src, w->offset, bytes, n_bytes, err)
                            : fail_memory(err, n_bytes + padded * sizeof *values);
    struct vector_page *page = st == BZ_OK ? page_for(u, taken) : NULL;
    if (st == BZ_OK && !page) st = fail_memory(err, sizeof *page);
    if (st == BZ_OK) {
        w->fmt->decode(bytes, values, w->cols);
        *part = (struct gpu_part) {
            .buffer = page->buffer, .rows = 1, .first = page->used, .layout = { .bytes = taken }
        };
        gpu_buffer_write(part->buffer, part->first, values, padded * 4);
        *g = (struct gpu_weight) { .shape = GPU_F32, .n_parts = 1, .parts = part, .page = page };
        page->used += taken;
        page->n_vectors++;
        w->mem = g;
    } else {
        mem_free(g);
        mem_free(part);
    }
    mem_free(values);
    mem_free(bytes);
    return st;
}

static uint64_t source_bytes(const struct weight *w)
{
    return quant_row_bytes(w->fmt, w->cols) * w->rows * w->n_mat;
}

enum bz_status upload_add(struct upload *u, struct weight *w, const struct gpu_limits *limits,
                          struct bz_err *err)
{
    if (w->rows == 1 && w->n_mat == 1) {
        enum bz_status st = load_vector(u, w, err);
        if (st == BZ_OK) u->bytes_on_device += device_bytes(w->mem);
        return st;
    }
    if (u->n_jobs == u->cap_jobs) {
        uint32_t cap = u->cap_jobs ? 2 * u->cap_jobs : 256;
        struct weight *grown = mem_grow(u->jobs, cap, sizeof *grown);
        if (!grown) return fail_memory(err, cap * sizeof *grown);
        u->jobs = grown;
        u->cap_jobs = cap;
    }
    w->mem = make_parts(w, limits, err);
    if (!w->mem) return BZ_ERR_LIMIT;
    u->jobs[u->n_jobs++] = *w;
    u->bytes_total += source_bytes(w);
    u->bytes_on_device += device_bytes(w->mem);
    return BZ_OK;
}

/* It then lies behind the last. */
static void take_off(struct upload *u, const struct weight *w)
{
    struct weight job = *w;
    uint32_t at = 0;
    while (at < u->n_jobs && u->jobs[at].mem != w->mem) at++;
    if (at == u->n_jobs) return;
    u->n_jobs--;
    for (; at < u->n_jobs; at++) u->jobs[at] = u->jobs[at + 1];
    u->jobs[at] = job;
    u->bytes_total -= source_bytes(w);
}

void upload_postpone(struct upload *u, const struct weight *w)
{
    assert(u->next.job == 0 && u->next.part == 0 && u->next.row == 0);
    take_off(u, w);
    ((struct gpu_weight *)w->mem)->away = true;
}

void upload_resume(struct upload *u)
{
    u->bytes_total += source_bytes(&u->jobs[u->n_jobs++]);
}

void upload_leave(struct upload *u, struct weight *w)
{
    struct gpu_weight *g = w->mem;
    take_off(u, w);
    u->bytes_on_device -= device_bytes(g);
    for (uint32_t i = 0; i < g->n_parts; i++) gpu_buffer_free(g->parts[i].buffer);
    g->n_parts = 0;
}

/* Room for n bytes in the scratch. */
static enum bz_status need_scratch(struct upload *u, size_t n, struct bz_err *err)
{
    if (n <= u->scratch_bytes) return BZ_OK;
    void *grown = mem_grow(u->scratch, n, 1);
    if (!grown) return fail_memory(err, n);
    u->scratch = grown;
    u->scratch_bytes = n;
    return BZ_OK;
}

enum bz_status upload_row(struct upload *u, const struct weight *w, const void *bytes, float scale,
                          const float **out, struct bz_err *err)
{
    enum bz_status st = need_scratch(u, w->cols * sizeof(float), err);
    if (st) return st;
    float *values = u->scratch;
    w->fmt->decode(bytes, values, w->cols);
    for (uint32_t i = 0; i < w->cols; i++) values[i] *= scale;
    *out = values;
    return BZ_OK;
}

/* ---- windows ---- */

enum { MOST_BETWEEN = 64 << 10 }; /* bytes between two matrices that are read along with them */

static const struct gpu_part *part_at(const struct upload *u, const struct upload_at *at)
{
    const struct gpu_weight *g = u->jobs[at->job].mem;
    return &g->parts[at->part];
}

static uint64_t row_bytes_at(const struct upload *u, const struct upload_at *at)
{
    return quant_row_bytes(u->jobs[at->job].fmt, u->jobs[at->job].cols);
}

/* Of the source. */
static uint64_t offset_of(const struct upload *u, const struct upload_at *at)
{
    return u->jobs[at->job].offset + (part_at(u, at)->row0 + at->row) * row_bytes_at(u, at);
}

/* Rows of this part from here on that so many bytes have room for: whole steps, unless they are the
 * last. */
static uint32_t rows_within(const struct upload *u, const struct upload_at *at, uint64_t n_bytes)
{
    uint32_t step = gpu_repack_step(u->jobs[at->job].fmt, u->jobs[at->job].cols);
    uint32_t left = part_at(u, at)->rows - at->row;
    uint64_t fit = n_bytes / row_bytes_at(u, at);
    return fit >= left ? left : (uint32_t)(fit / step * step);
}

static void step_over(const struct upload *u, struct upload_at *at, uint32_t n_rows)
{
    const struct gpu_weight *g = u->jobs[at->job].mem;
    at->row += n_rows;
    if (at->row < g->parts[at->part].rows) return;
    at->row = 0;
    if (++at->part < g->n_parts) return;
    at->part = 0;
    at->job++;
}

static bool is_placed(const struct upload *u, const struct upload_at *at, uint32_t max_placed)
{
    const struct weight *w = &u->jobs[at->job];
    struct block_layout of;
    uint32_t step = gpu_repack_step(w->fmt, w->cols);
    return step * row_bytes_at(u, at) <= max_placed && gpu_block_layout(w->fmt, w->cols, &of);
}

/* Can a window to be placed go on with the rows at u->next? */
static bool goes_on(const struct upload *u, const struct upload_window *w, uint32_t max_placed)
{
    const struct upload_at *at = &u->next;
    if (at->job == u->n_jobs || u->jobs[at->job].src != w->src) return false;
    uint64_t end = w->offset + w->n_bytes, begin = offset_of(u, at);
    return begin >= end && begin - end <= MOST_BETWEEN && begin - w->offset < max_placed &&
           (begin - w->offset) % 4 == 0 && is_placed(u, at, max_placed);
}

static void place_window(struct upload *u, uint32_t max_placed, struct upload_window *out)
{
    do {
        uint64_t begin = offset_of(u, &u->next) - out->offset;
        uint32_t n = rows_within(u, &u->next, max_placed - begin);
        if (n == 0) return;
        out->n_bytes = (uint32_t)(begin + n * row_bytes_at(u, &u->next));
        step_over(u, &u->next, n);
    } while (goes_on(u, out, max_placed));
}

static int by_offset(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;
    if (x->src != y->src) return (uintptr_t)x->src < (uintptr_t)y->src ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

bool upload_next(struct upload *u, uint32_t max_bytes, uint32_t max_placed,
                 struct upload_window *out)
{
    struct upload_at *at = &u->next;
    if (at->job >= u->n_jobs) return false;
    if (!at->job && !at->part && !at->row) qsort(u->jobs, u->n_jobs, sizeof *u->jobs, by_offset);
    *out = (struct upload_window) { .src = u->jobs[at->job].src,
                                    .offset = offset_of(u, at),
                                    .first = *at,
                                    .placed = is_placed(u, at, max_placed) };
    if (out->placed) {
        place_window(u, max_placed, out);
        return true;
    }
    uint32_t step = gpu_repack_step(u->jobs[at->job].fmt, u->jobs[at->job].cols);
    uint64_t row_bytes = row_bytes_at(u, at);
    out->n_rows = rows_within(u, at, max_bytes < step * row_bytes ? step * row_bytes : max_bytes);
    out->n_bytes = (uint32_t)(out->n_rows * row_bytes);
    step_over(u, at, out->n_rows);
    return true;
}

enum bz_status upload_give(struct upload *u, const struct upload_window *win, const void *bytes,
                           struct bz_err *err)
{
    const struct weight *w = &u->jobs[win->first.job];
    const struct gpu_part *p = part_at(u, &win->first);
    enum bz_status st = need_scratch(u, gpu_repack_scratch(w->fmt, w->cols, win->n_rows), err);
    if (st) return st;
    struct repack_out out = { .mem = u->scratch };
    gpu_repack(w->fmt, w->cols, bytes, win->first.row, win->n_rows, p->rows, &out);
    for (uint32_t i = 0; i < out.n; i++)
        gpu_buffer_write(p->buffer, (uint32_t)out.piece[i].offset, out.piece[i].data,
                         (uint32_t)out.piece[i].bytes);
    u->bytes_done += win->n_bytes;
    return BZ_OK;
}

/* ---- placing: the device repacks ---- */

enum { REPACK_WG = 256 }; /* WG of repack_blocks, repack_q4_k and repack_q6_k in kernels/ */

/* Is a window copied as it is, without a kernel? */
static bool is_copied(const struct block_layout *of)
{
    return of->n == 1 && of->bits == REPACK_NOTHING;
}

/* The first part of n blocks. */
static void repack_first_part(struct recorder *rec, const struct block_layout *of, uint32_t n,
                              const struct repack_out *pieces, gpu_buffer from, uint32_t at,
                              gpu_buffer to)
{
    struct gpu_binding bind[] = { { from, 0, 0 }, { to, 0, 0 } };
    bool halves =
        of->bits == REPACK_Q6_K; /* Q6_K's blocks are counted in halves, Q4_K's in words */
    struct repack_q4_k_params p = { .n = n * (of->part[0].bytes / 4),
                                    .at = at / (halves ? 2 : 4),
                                    .to = (uint32_t)(pieces->piece[0].offset / 4) };
    _Static_assert(sizeof p == sizeof(struct repack_q6_k_params), "both kernels have these fields");
    record_dispatch(rec, halves ? KERNEL_REPACK_Q6_K : KERNEL_REPACK_Q4_K, NULL, 0, &p, bind, 2,
                    (p.n + REPACK_WG - 1) / REPACK_WG);
}

void upload_repack(struct recorder *rec, const struct block_layout *of, uint32_t n,
                   const struct repack_out *pieces, gpu_buffer from, uint32_t at, gpu_buffer to)
{
    struct gpu_binding bind[] = { { from, 0, 0 }, { to, 0, 0 } };
    bool turns = of->bits != REPACK_NOTHING;
    if (turns) repack_first_part(rec, of, n, pieces, from, at, to);
    for (uint32_t k = turns; k < of->n; k++) {
        struct repack_blocks_params p = { .n = n * (of->part[k].bytes / 2),
                                          .block = of->block / 2,
                                          .at = (at + of->part[k].at) / 2,
                                          .size = of->part[k].bytes / 2,
                                          .to = (uint32_t)(pieces->piece[k].offset / 4) };
        uint32_t n_words = (p.n + 1) / 2;
        record_dispatch(rec, KERNEL_REPACK_BLOCKS, NULL, 0, &p, bind, 2,
                        (n_words + REPACK_WG - 1) / REPACK_WG);
    }
}

void upload_kernels(const struct upload *u, bool *blocks, bool *repack_q4_k, bool *repack_q6_k)
{
    struct block_layout of;
    *blocks = *repack_q4_k = *repack_q6_k = false;
    for (uint32_t i = 0; i < u->n_jobs; i++) {
        if (!gpu_block_layout(u->jobs[i].fmt, u->jobs[i].cols, &of)) continue;
        *blocks = *blocks || of.n > 1;
        *repack_q4_k = *repack_q4_k || of.bits == REPACK_Q4_K;
        *repack_q6_k = *repack_q6_k || of.bits == REPACK_Q6_K;
    }
}

/* Rows of one part, which begin `begin` bytes behind the window's first. Returns where they end. */
static uint32_t place_rows(struct upload *u, struct recorder *rec, const struct upload_window *win,
                           const struct upload_at *at, uint32_t begin, uint32_t n_rows,
                           gpu_buffer staging, gpu_buffer scratch)
{
    const struct weight *w = &u->jobs[at->job];
    const struct gpu_part *p = part_at(u, at);
    uint32_t n_bytes = (uint32_t)(n_rows * row_bytes_at(u, at));
    struct block_layout of;
    struct repack_out pieces = { 0 };
    bool ok = gpu_block_layout(w->fmt, w->cols, &of);
    assert(ok && win->placed);
    (void)ok;
    gpu_repack_pieces(w->fmt, w->cols, at->row, n_rows, p->rows, &pieces);
    bool copied = is_copied(&of);
    if (copied)
        plan_copy(&rec->plan, staging, begin, p->buffer, (uint32_t)pieces.piece[0].offset, n_bytes);
    else if (rec->plan.n == 0)
        plan_copy(&rec->plan, staging, 0, scratch, 0, (win->n_bytes + 3) / 4 * 4);
    if (!copied) upload_repack(rec, &of, n_bytes / of.block, &pieces, scratch, begin, p->buffer);
    u->bytes_done += n_bytes;
    return begin + n_bytes;
}

enum bz_status upload_place(struct upload *u, struct recorder *rec, const struct upload_window *win,
                            gpu_buffer staging, gpu_buffer scratch, struct recorded *out,
                            struct bz_err *err)
{
    struct upload_at at = win->first;
    record_begin(rec);
    for (uint32_t end = 0; end < win->n_bytes;) {
        uint32_t begin = (uint32_t)(offset_of(u, &at) - win->offset);
        uint32_t left = part_at(u, &at)->rows - at.row;
        uint64_t fit = (win->n_bytes - begin) / row_bytes_at(u, &at);
        uint32_t n_rows = fit < left ? (uint32_t)fit : left;
        end = place_rows(u, rec, win, &at, begin, n_rows, staging, scratch);
        step_over(u, &at, n_rows);
    }
    *out = record_program(rec, NULL);
    return rec->plan.status ? fail_memory(err, sizeof *out) : BZ_OK;
}

void upload_free(struct upload *u)
{
    mem_free(u->jobs);
    mem_free(u->scratch);
    *u = (struct upload) { 0 };
}
