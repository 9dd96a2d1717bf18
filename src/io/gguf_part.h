/* gguf_part.h - one file of a model that may be split, between its parsing (gguf.c) and the whole
 * (gguf_part.c). Private to the two.
 */
#ifndef BEZEL_IO_GGUF_PART_H
#define BEZEL_IO_GGUF_PART_H

#include "io/gguf.h"

/* One shard, parsed. */
struct gguf_part {
    struct source src;
    struct gguf meta; /* kvs, n_kv, by_key, header_bytes: so that gguf_get_* work on it */
    uint8_t *head;
    struct gguf_tensor *tensors;
    uint64_t n_tensors;
    uint64_t no; /* its place in the split model */
};

/* All parts of a model, in any order, as one: g takes over what it keeps of them. Parts that do not belong
 * together are an error. */
enum bz_status gguf_join_parts(struct gguf *g, struct gguf_part *parts, uint32_t n,
                               struct bz_err *err);

#endif
