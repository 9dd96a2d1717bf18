/* gguf.h - GGUF version 3: the header parsed, the tensor data left in its source.
 *
 * The whole header (for Gemma 4 about 16 MB, nearly all of it vocabulary) is kept as one block of
 * bytes; keys, values and names are ranges of it, checked once while parsing. A model may be split
 * into shards: then each tensor says which source it is in. After opening, every tensor of a known
 * type is inside its source and overlaps no other, its rows are whole blocks, and keys and names
 * are unique.
 */
#ifndef BEZEL_IO_GGUF_H
#define BEZEL_IO_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/strmap.h"
#include "io/source.h"

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
};

struct gguf_kv {
    struct str key;
    enum gguf_type type;
    enum gguf_type elem;  /* GGUF_ARRAY: type of its elements; else the same as type */
    uint64_t n;           /* GGUF_ARRAY: how many; else 1 */
    const uint8_t *value; /* the first element's bytes, unaligned, inside the header block; a
                           * string is its u64 length and then its bytes */
    uint64_t n_bytes;     /* of all elements */
};

struct gguf_tensor {
    struct str name;
    uint32_t n_dims;
    uint64_t ne[4];   /* fastest first; 1 past n_dims; never 0 */
    uint32_t type;    /* GGUF's type id: quant_find() may not know it */
    uint32_t shard;   /* index into gguf.sources */
    uint64_t offset;  /* absolute, in that source */
    uint64_t n_bytes; /* 0 when the type is unknown */
};

#define GGUF_MAX_SHARDS 256

struct gguf {
    struct source *sources; /* owned; one per shard */
    uint32_t n_sources;
    uint8_t **heads;     /* one header block per shard */
    struct gguf_kv *kvs; /* the first shard's metadata */
    uint64_t n_kv;
    struct gguf_tensor *tensors; /* all shards' */
    uint64_t n_tensors;
    struct strmap by_key;  /* key -> index of kvs */
    struct strmap by_name; /* tensor name -> index of tensors */
    uint64_t header_bytes; /* of the first shard, up to its data section */
};

/* Parse. Takes over the sources in every case (on failure they are closed). Several sources must be
 * all the shards of one split model, in any order; gguf.sources is in the model's order. On failure
 * *out is untouched. */
enum bz_status gguf_open(struct gguf *out, const struct source *sources, uint32_t n_sources,
                         struct bz_err *err);

/* Open a path; a name such as model-00001-of-00003.gguf brings its siblings along. (gguf_file.c) */
enum bz_status gguf_open_file(struct gguf *out, const char *path, struct bz_err *err);

void gguf_close(struct gguf *g);

const struct gguf_kv *gguf_find(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name);

/* Lenient scalars: any integer type, a bool, or an integral float serves as an integer; a number of
 * any type serves as a float; an array counts as its first element. False when the key is absent or
 * is not a number (and then *out is untouched). */
bool gguf_get_u64(const struct gguf *g, const char *key, uint64_t *out);
bool gguf_get_f64(const struct gguf *g, const char *key, double *out);
bool gguf_get_bool(const struct gguf *g, const char *key, bool *out);
bool gguf_get_str(const struct gguf *g, const char *key, struct str *out);

/* Element i of a scalar (i ignored) or array of numbers. False when it is not there. */
bool gguf_at_i64(const struct gguf_kv *kv, uint64_t i, int64_t *out);
bool gguf_at_f64(const struct gguf_kv *kv, uint64_t i, double *out);

/* Walk an array of strings in order: *cursor starts at 0 and is the caller's to keep. */
bool gguf_next_str(const struct gguf_kv *kv, uint64_t *cursor, struct str *out);

/* Name of a value type, for people; bytes of a number of that type, 0 for strings and arrays. */
const char *gguf_type_name(enum gguf_type t);
uint32_t gguf_type_size(enum gguf_type t);

#endif
