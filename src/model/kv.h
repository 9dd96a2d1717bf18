/* kv.h - the keys and values of a session.
 *
 * Every layer that owns keys and values has two tensors of a fixed number of rows, chosen at the
 * start; position p is row p % rows. A global layer has a row for every position of the context. A
 * sliding layer is a ring with room for its window, one batch, and some slack that lets a
 * conversation step back. Layers that share read their donor's.
 */
#ifndef BEZEL_MODEL_KV_H
#define BEZEL_MODEL_KV_H

#include "base/str.h"
#include "model/config.h"
#include "ops/ops.h"

struct kv_cache {
    const struct backend *be;
    const struct config *config;
    struct kv *layers; /* config->n_own of them */
    uint32_t n_ctx;    /* positions in all */
    uint32_t n_past;   /* positions written */
    uint32_t n_ring;   /* rows of a sliding layer */
    uint32_t oldest;   /* sliding layers hold the positions [oldest, n_past) */
    bool half;         /* numbers are f16, not f32 */
};

enum { KV_SLACK = 256 }; /* positions a sliding layer remembers beyond its window and batch */

enum bz_status kv_open(struct kv_cache *out, const struct config *c, const struct backend *be,
                       uint32_t n_ctx, uint32_t n_batch, bool half, struct bz_err *err);
void kv_close(struct kv_cache *kv);

/* Bytes that kv_open would take. */
uint64_t kv_bytes(const struct config *c, uint32_t n_ctx, uint32_t n_batch, bool half);

/* The cache that layer il reads (and, when it owns it, writes). */
struct kv *kv_of(const struct kv_cache *kv, uint32_t il);

/* The next n positions are about to be written: their rows' old contents count as gone, even if the
 * step fails half-way. */
void kv_begin(struct kv_cache *kv, uint32_t n);

/* They were written. */
void kv_advance(struct kv_cache *kv, uint32_t n);

/* Forget positions >= n. Returns how many remain usable: n, or 0 when a ring no longer holds the
 * window before n (then everything must be computed again). */
uint32_t kv_truncate(struct kv_cache *kv, uint32_t n);

/* Which weights computed a cache. */
struct kv_origin {
    const char *model; /* its fingerprint, 64 characters */
    uint64_t worn;     /* names its adapters and their scales */
};

/* A snapshot: rows in order of position, in the cache's own type, with their origin and a checksum.
 * `tokens` are the ids of the n_past positions. */
void kv_save(struct run *r, const struct kv_cache *kv, const struct kv_origin *origin,
             const int32_t *tokens, struct buf *out);

/* The same for a caller that must fetch the rows itself: everything but the checksum, section by
 * section. */
struct kv_section {
    const void *bytes;            /* n of them, as they are; or NULL: */
    const struct tensor *rows_of; /* n rows from `row` on */
    uint32_t row;
    size_t n;
};
typedef void (*kv_section_fn)(void *ctx, const struct kv_section *s);
void kv_walk(const struct kv_cache *kv, const struct kv_origin *origin, const int32_t *tokens,
             kv_section_fn fn, void *ctx);

/* The checksum of a snapshot's first n bytes. */
enum { KV_DIGEST = 32 };
enum bz_status kv_digest(const struct source *snap, uint64_t n, uint8_t digest[KV_DIGEST],
                         struct bz_err *err);

/* Restore a snapshot, which comes in windows. It may come from a session of another context size,
 * if it fits, and of the other type: halves become f32 without loss, and f32 is rounded to halves
 * as if it were written now. Fills the cache and tokens (room for n_ctx). A snapshot whose origin
 * is not `here` is refused. On failure the cache is empty. */
enum bz_status kv_restore(struct run *r, struct kv_cache *kv, const struct kv_origin *here,
                          const struct source *snap, int32_t *tokens, struct bz_err *err);

#endif
