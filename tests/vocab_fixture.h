/* vocab_fixture.h - a vocabulary-only GGUF built in memory, for tests and fuzz targets.
 *
 *     struct vocab_file f;
 *     vocab_file_begin(&f);
 *     vocab_file_str(&f, "tokenizer.ggml.model", "gemma4");
 *     ...
 *     vocab_file_open(&f, &tokenizer, &err);      frees f
 */
#ifndef BEZEL_TESTS_VOCAB_FIXTURE_H
#define BEZEL_TESTS_VOCAB_FIXTURE_H

#include "base/str.h"
#include "io/gguf.h"
#include "io/source.h"
#include "text/tokenizer.h"

struct vocab_file {
    struct buf bytes;
    uint64_t n_kv;
};

static inline void fixture_u32(struct buf *b, uint32_t v)
{
    unsigned char z[4] = { (unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
                           (unsigned char)(v >> 24) };
    buf_put(b, z, 4);
}

static inline void fixture_u64(struct buf *b, uint64_t v)
{
    fixture_u32(b, (uint32_t)v);
    fixture_u32(b, (uint32_t)(v >> 32));
}

static inline void fixture_str(struct buf *b, struct str s)
{
    fixture_u64(b, s.n);
    buf_put_str(b, s);
}

static inline void vocab_file_begin(struct vocab_file *f)
{
    *f = (struct vocab_file) { 0 };
    buf_puts(&f->bytes, "GGUF");
    fixture_u32(&f->bytes, 3);
    fixture_u64(&f->bytes, 0); /* tensors */
    fixture_u64(&f->bytes, 0); /* keys: known at the end */
}

static inline void vocab_file_key(struct vocab_file *f, const char *key, enum gguf_type type)
{
    f->n_kv++;
    fixture_str(&f->bytes, str_of(key));
    fixture_u32(&f->bytes, (uint32_t)type);
}

static inline void vocab_file_str(struct vocab_file *f, const char *key, const char *value)
{
    vocab_file_key(f, key, GGUF_STRING);
    fixture_str(&f->bytes, str_of(value));
}

static inline void vocab_file_u32(struct vocab_file *f, const char *key, uint32_t value)
{
    vocab_file_key(f, key, GGUF_U32);
    fixture_u32(&f->bytes, value);
}

static inline void vocab_file_strs(struct vocab_file *f, const char *key, const struct str *v,
                                   size_t n)
{
    vocab_file_key(f, key, GGUF_ARRAY);
    fixture_u32(&f->bytes, GGUF_STRING);
    fixture_u64(&f->bytes, n);
    for (size_t i = 0; i < n; i++) fixture_str(&f->bytes, v[i]);
}

static inline void vocab_file_i32s(struct vocab_file *f, const char *key, const int32_t *v,
                                   size_t n)
{
    vocab_file_key(f, key, GGUF_ARRAY);
    fixture_u32(&f->bytes, GGUF_I32);
    fixture_u64(&f->bytes, n);
    for (size_t i = 0; i < n; i++) fixture_u32(&f->bytes, (uint32_t)v[i]);
}

/* Open the tokenizer and let go of the file: what the tokenizer keeps must be its own. */
static inline enum bz_status vocab_file_open(struct vocab_file *f, struct tokenizer **t,
                                             struct bz_err *err)
{
    for (unsigned i = 0; i < 8; i++) f->bytes.data[16 + i] = (char)(f->n_kv >> (8 * i) & 0xff);
    struct source src;
    struct gguf g;
    enum bz_status st = source_open_memory(&src, "made-up.gguf", f->bytes.data, f->bytes.n, err);
    if (!st) st = gguf_open(&g, &src, 1, err);
    if (!st) {
        st = tokenizer_open(t, &g, err);
        gguf_close(&g);
    }
    buf_free(&f->bytes);
    return st;
}

#endif
