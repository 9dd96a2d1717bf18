/* gguf_bytes.h - GGUF files built byte by byte, for the tests of the reader.
 *
 * Each function appends one piece of the format to a buffer. The machine is little-endian, as the
 * format is.
 */
#ifndef BEZEL_TESTS_GGUF_BYTES_H
#define BEZEL_TESTS_GGUF_BYTES_H

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "check.h"
#include "io/gguf.h"
#include "quant/quant.h"

static inline void u8(struct buf *b, uint8_t v)
{
    buf_put(b, &v, 1);
}

static inline void u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, 4);
}

static inline void u64(struct buf *b, uint64_t v)
{
    buf_put(b, &v, 8);
}

static inline void text(struct buf *b, const char *z)
{
    u64(b, strlen(z));
    buf_puts(b, z);
}

static inline void start(struct buf *b, uint64_t n_tensors, uint64_t n_kv)
{
    buf_puts(b, "GGUF");
    u32(b, 3);
    u64(b, n_tensors);
    u64(b, n_kv);
}

static inline void key(struct buf *b, const char *name, enum gguf_type type)
{
    text(b, name);
    u32(b, type);
}

static inline void array(struct buf *b, enum gguf_type elem, uint64_t n)
{
    u32(b, elem);
    u64(b, n);
}

static inline void key_u32(struct buf *b, const char *name, uint32_t v)
{
    key(b, name, GGUF_U32);
    u32(b, v);
}

static inline void tensor(struct buf *b, const char *name, uint32_t type, uint64_t ne0,
                          uint64_t ne1, uint64_t offset)
{
    text(b, name);
    u32(b, 2);
    u64(b, ne0);
    u64(b, ne1);
    u32(b, type);
    u64(b, offset);
}

static inline void pad(struct buf *b, size_t align)
{
    while (b->n % align) u8(b, 0);
}

static inline void zeros(struct buf *b, size_t n)
{
    while (n--) u8(b, 0);
}

/* Many keys and tensors, so that a cut falls on everything. */
static inline void build_larger(struct buf *b)
{
    start(b, 40, 62);
    for (uint32_t i = 0; i < 60; i++) {
        char name[32];
        snprintf(name, sizeof name, "general.key.%u", i);
        key_u32(b, name, i);
    }
    key(b, "tokens", GGUF_ARRAY), array(b, GGUF_STRING, 500);
    for (uint32_t i = 0; i < 500; i++) text(b, &"abcdefghijklmnop"[i % 17]);
    key(b, "scores", GGUF_ARRAY), array(b, GGUF_F32, 500), zeros(b, 2000);
    for (uint32_t i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof name, "blk.%u.attn_q.weight", i);
        tensor(b, name, i % 2 ? QUANT_Q8_0 : QUANT_F16, 32, 1 + i, i * 2624);
    }
    pad(b, 32);
    zeros(b, 39 * 2624 + 40 * 34);
}

/* Open a copy that ends where the file does, so that a sanitizer sees every step past it. */
static uint8_t *copies[8];
static uint32_t n_copies;

static inline void make_source(struct source *s, const char *name, const void *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (n) memcpy(copy, p, n);
    copies[n_copies++] = copy;
    CHECK(source_open_memory(s, name, copy, n, NULL) == BZ_OK);
}

static inline void free_copies(void)
{
    while (n_copies) free(copies[--n_copies]);
}

#endif
