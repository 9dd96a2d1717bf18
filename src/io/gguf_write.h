/* gguf_write.h - GGUF version 3 files written in one pass.
 *
 * Say the metadata, then name every tensor, then hand over each tensor's bytes in the order named.
 * A file on disk appears under its final name only when it is whole (written beside it as NAME.part
 * and renamed by gguf_writer_finish). Errors are sticky: check the result of finish.
 */
#ifndef BEZEL_IO_GGUF_WRITE_H
#define BEZEL_IO_GGUF_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "io/gguf.h"

struct gguf_writer; /* opaque */

/* On failure *out is untouched and no file was made. (gguf_write_file.c) */
enum bz_status gguf_writer_open(struct gguf_writer **out, const char *path, struct bz_err *err);

/* Where the bytes go, in order. */
struct gguf_sink {
    void *ctx;
    enum bz_status (*put)(void *ctx, const void *p, size_t n, struct bz_err *err);
    enum bz_status (*skip)(void *ctx, uint64_t n, struct bz_err *err); /* n zeros; may be NULL */
    enum bz_status (*finish)(void *ctx, struct bz_err *err); /* all are there; may be NULL */
    /* Once, in every case; without finish nothing must be left behind. May be NULL. */
    void (*close)(void *ctx);
};

/* A file that goes elsewhere. `name` is for sentences. The sink is taken over in every case. */
enum bz_status gguf_writer_open_sink(struct gguf_writer **out, const char *name,
                                     const struct gguf_sink *sink, struct bz_err *err);

/* Has anything failed so far? Then what follows is for nothing, and finish says why. */
bool gguf_writer_failed(const struct gguf_writer *w);

/* Bytes of the whole file, once every tensor is named. */
uint64_t gguf_writer_size(const struct gguf_writer *w);

void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v);
void gguf_put_u64(struct gguf_writer *w, const char *key, uint64_t v);
void gguf_put_f32(struct gguf_writer *w, const char *key, float v);
void gguf_put_bool(struct gguf_writer *w, const char *key, bool v);
void gguf_put_str(struct gguf_writer *w, const char *key, struct str v);
/* Arrays of numbers: `type` says what v points to (GGUF_I32, GGUF_F32, GGUF_BOOL, ...). */
void gguf_put_array(struct gguf_writer *w, const char *key, enum gguf_type type, const void *v,
                    uint64_t n);
void gguf_put_strs(struct gguf_writer *w, const char *key, const struct str *v, uint64_t n);
/* A pair of another file, unchanged. Keys that describe that file and not the model
 * (general.alignment, split.*) are left out: this file is whole and aligned to 32. */
void gguf_put_kv(struct gguf_writer *w, const struct gguf_kv *kv);

/* Name the next tensor. type: any GGUF type whose size is known; ne: fastest first. */
void gguf_put_tensor(struct gguf_writer *w, const char *name, uint32_t type, uint32_t n_dims,
                     const uint64_t *ne);

/* Tensor data, in the order the tensors were named. A tensor may come in several pieces; a piece
 * belongs to one tensor. Padding after tensors is written here. */
void gguf_put_data(struct gguf_writer *w, const void *p, size_t n);

/* The same for n bytes of zeros. A file on disk gets a hole there, which takes no room. */
void gguf_put_zeros(struct gguf_writer *w, uint64_t n);

/* Checks that every byte promised was given, flushes and renames. Frees w in every case; on failure
 * nothing is left behind. */
enum bz_status gguf_writer_finish(struct gguf_writer *w, struct bz_err *err);

/* Give up: removes the partial file and frees w. w may be NULL. */
void gguf_writer_abort(struct gguf_writer *w);

#endif
