/* source.h - where bytes come from: "read n bytes at offset", and nothing else is known.
 *
 * Files, memory and (later) the browser's blobs look alike from here. A source that can show its
 * bytes in place (a mapped file, memory) offers `map`; one that cannot leaves it NULL and every
 * reader falls back to `read`. Both may be called from several threads at once.
 */
#ifndef BEZEL_IO_SOURCE_H
#define BEZEL_IO_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct source {
    char *name;    /* for error sentences; owned */
    uint64_t size; /* bytes in all */
    void *ctx;
    /* Fill dst with exactly n bytes, or fail. The range was checked against size by source_read. */
    enum bz_status (*read)(void *ctx, uint64_t offset, void *dst, size_t n, struct bz_err *err);
    const void *(*map)(void *ctx, uint64_t offset, size_t n); /* may be NULL; may return NULL */
    /* Has it changed since it was opened, or was something shown by `map` gone? May be NULL. */
    bool (*lost)(void *ctx);
    void (*close)(void *ctx); /* may be NULL */
};

/* A file, mapped read-only where the system can. On failure *out is untouched. */
enum bz_status source_open_file(struct source *out, const char *path, struct bz_err *err);
/* The sentence for a file that the system does not let us read; why is its errno. */
enum bz_status source_fail_open(const char *path, int why, struct bz_err *err);

/* Borrowed memory that outlives the source. */
enum bz_status source_open_memory(struct source *out, const char *name, const void *data, size_t n,
                                  struct bz_err *err);

/* Range-checked read: a range past the end is a format error that names the source. */
enum bz_status source_read(const struct source *s, uint64_t offset, void *dst, size_t n,
                           struct bz_err *err);

/* The bytes in place, or NULL where the source cannot (or the range is not inside it). */
const void *source_map(const struct source *s, uint64_t offset, uint64_t n);

/* Whether bytes that were read, or that `map` showed, may not be the file's: the file was changed
 * or became shorter, or its drive went away. Nothing that was computed with them may be used. A
 * lost source stays lost. */
bool source_lost(const struct source *s);

/* An error that names the first of n sources that is lost. Call it before results are used. */
enum bz_status source_check(const struct source *s, uint32_t n, struct bz_err *err);

/* The whole of a small source as text (at most max bytes); the caller frees buf. */
struct buf;
enum bz_status source_read_all(const struct source *s, uint64_t max, struct buf *out,
                               struct bz_err *err);

void source_close(struct source *s);

#endif
