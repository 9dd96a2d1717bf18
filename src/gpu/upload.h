/* upload.h - weights on their way to the GPU: what is to be read, repacked and written, in windows.
 *
 * Binding a model makes a list of jobs (one per matrix) and reads nothing big. Then the host takes
 * windows, brings their bytes in any order, and gives them back; the wasm heap holds only the
 * windows that are under way. Of windows whose bytes are only moved not even those: their bytes can
 * be in a buffer of the device's, which then does what is left to do.
 */
#ifndef BEZEL_GPU_UPLOAD_H
#define BEZEL_GPU_UPLOAD_H

#include "gpu/adapt.h"
#include "gpu/record.h"
#include "gpu/repack.h"
#include "ops/ops.h"

/* Rows [row0, row0 + rows) of a weight (of all experts counted through) in a buffer of their own,
 * small enough for a binding. */
struct gpu_part {
    gpu_buffer buffer;
    uint32_t row0, rows;
    uint32_t first; /* bytes of the buffer before it: vectors share one */
    struct gpu_layout layout;
};

/* A buffer that vectors share, so that a kernel reaches several of them through one binding:
 * devices have few. It is freed with the last of them. */
struct vector_page {
    gpu_buffer buffer;
    uint32_t bytes, used;
    uint32_t n_vectors;
    struct vector_page **current; /* upload.vectors */
};

/* What struct weight.mem points to on this backend. A vector is one part of F32; a table that stays
 * in its source has no parts. */
struct gpu_weight {
    enum gpu_shape shape;
    bool away; /* a table that is still to come: its rows are brought one by one until then */
    uint32_t n_parts;
    struct gpu_part *parts;
    struct vector_page *page;   /* of a vector */
    struct gpu_adapted adapted; /* what hangs on it */
};

/* A row of a matrix on the list. */
struct upload_at {
    uint32_t job, part, row; /* row counts from the part's first */
};

/* Bytes of a source. Those to be placed may be of several matrices, and what little lies between
 * them. */
struct upload_window {
    const struct source *src;
    uint64_t offset;
    uint32_t n_bytes;
    struct upload_at first;
    uint32_t n_rows; /* for upload_give */
    bool placed;     /* for upload_place, not for upload_give */
};

struct upload {
    struct weight *jobs;       /* copies: a model may move while it is bound */
    uint32_t n_jobs, cap_jobs; /* behind the last of them is a table that was postponed */
    struct upload_at next; /* where the next window begins; before the first, the list is put in the
                              sources' order */
    uint64_t bytes_done, bytes_total;
    uint64_t bytes_on_device;    /* of the buffers of all weights that were added */
    struct vector_page *vectors; /* with room for more, or NULL */
    uint64_t vectors_expected;   /* bytes of the next page; 0: not known */
    void *scratch;               /* for repacking one window */
    size_t scratch_bytes;
};

/* A vector of so many numbers will be added: all that are expected get one page. */
void upload_expect_vector(struct upload *u, uint32_t cols);

/* Make the buffers of a matrix and put it on the list; vectors are read and written at once. */
enum bz_status upload_add(struct upload *u, struct weight *w, const struct gpu_limits *limits,
                          struct bz_err *err);

/* A table that was added comes later: it is taken off the list, and its rows are brought one by
 * one. Before the first window only. */
void upload_postpone(struct upload *u, const struct weight *w);

/* The postponed table comes now, after all others: it is on the list again, and `away` until the
 * host has brought it. */
void upload_resume(struct upload *u);

/* A table that was added stays in its source after all: its buffers are freed, and its rows are
 * brought one by one. Before the first window, or instead of one that was postponed; then no window
 * of it may be under way. */
void upload_leave(struct upload *u, struct weight *w);

/* One row of such a table: its bytes as in the source, decoded and multiplied. Good until the next
 * call. */
enum bz_status upload_row(struct upload *u, const struct weight *w, const void *bytes, float scale,
                          const float **out, struct bz_err *err);

/* The next window: to be placed, of at most max_placed bytes, or of at most max_bytes (one row at
 * least). False when there is none. */
bool upload_next(struct upload *u, uint32_t max_bytes, uint32_t max_placed,
                 struct upload_window *out);

/* The bytes of a window are here: repack and write them. */
enum bz_status upload_give(struct upload *u, const struct upload_window *w, const void *bytes,
                           struct bz_err *err);

/* The bytes of a window are at the start of `staging`: record how they get to their places.
 * `scratch` has room for as many, and is read by kernels. */
enum bz_status upload_place(struct upload *u, struct recorder *rec, const struct upload_window *w,
                            gpu_buffer staging, gpu_buffer scratch, struct recorded *out,
                            struct bz_err *err);

/* Record the parts of n blocks in `from`, behind the first `at` bytes, as they go to `to`; not for
 * bytes that stay as they are. */
void upload_repack(struct recorder *rec, const struct block_layout *of, uint32_t n,
                   const struct repack_out *pieces, gpu_buffer from, uint32_t at, gpu_buffer to);

/* Which kernels will upload_place record: repack_blocks, repack_q4_k, repack_q6_k? */
void upload_kernels(const struct upload *u, bool *blocks, bool *repack_q4_k, bool *repack_q6_k);

void upload_free(struct upload *u);
void gpu_weight_free(struct gpu_weight *w);

#endif
