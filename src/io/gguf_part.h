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

/* Join all parts of a model, in any order: g takes over what it keeps of them. It is an error if
 * the parts do not belong together. */
enum bz_status gguf_join_parts(struct gguf *g, struct gguf_part *parts, uint32_t n,
                               struct bz_err *err);

#endif
