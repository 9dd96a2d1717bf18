/* vocab_fixture.h - vocabulary-only GGUFs built in memory, and one small vocabulary made by hand
 * (make_lists, put_file), for tests and fuzz targets.
 *
 *     struct vocab_file f;
 *     vocab_file_begin(&f);
 *     vocab_file_str(&f, "tokenizer.ggml.model", "gemma4");
 *     ...
 *     vocab_file_open(&f, &tokenizer, &err);      frees f
 */
#ifndef BEZEL_TESTS_VOCAB_FIXTURE_H
#define BEZEL_TESTS_VOCAB_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
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

/* The bytes are whole after this. */
static inline void vocab_file_seal(struct vocab_file *f)
{
    for (unsigned i = 0; i < 8; i++) f->bytes.data[16 + i] = (char)(f->n_kv >> (8 * i) & 0xff);
}

/* Open the tokenizer and let go of the file: what the tokenizer keeps must be its own. */
static inline enum bz_status vocab_file_open(struct vocab_file *f, struct tokenizer **t,
                                             struct bz_err *err)
{
    vocab_file_seal(f);
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

/* ---- a small vocabulary made by hand ---- */

#define SP "\xe2\x96\x81"

/* The first character is the token's type, '_' stands for U+2581. Types are wrong on purpose where
 * the text decides: the known special tokens, some bytes. */
static const char tokens[] =
    "1hello 1<turn|> 3<|turn> 3<bos> 1<eos> 2<unk> 3<pad> 4<mask> 1<|think|> 3<|channel> "
    "1<channel|> 4<|tool> 3<tool|> 1<|tool_call> 3<tool_call|> 4<|tool_response> "
    "1<tool_response|> 1<|\"|> 1<|image> 1<|image|> 1<image|> 1<|audio> 1<|audio|> 1<audio|> "
    "1<|video|> 4<x> 4<x><y> 3<ctl> 2<what> 5<gone> 1</s> 1 1\n 1\n\n 1\n\n\n 1\n\n\n\n\n 1_ "
    "1__ 1___ 1____ 1a 1b 1c 1d 1e 1h 1l 1o 1s 1< 1> 1| 1\t 13 1\xc3\xa9 1\xe6\xbc\xa2 "
    "1\xf0\x9f\x98\x80 1\xef\xbf\xbd 1he 1ll 1lo 1hell 1_h 1_hello 1ab 1bc 1abc 1cd 1aa 1aaa "
    "1aaaa 1dea 1zz 1os 1os> 1<e 13_ 13_a 1never 1\xf0\x9f\x98\x80\xf0\x9f\x98\x80 "
    "1\xe6\xbc\xa2\xc3\xa9 1\n\n\n\n";

#define N_HAND   82u
#define N_TOKENS (N_HAND + 256)

/* Ties and rivals; de and qq are no tokens but are built all the same, z and q are none either;
 * "_h ello" is never reached; "<e os>" would build <eos> out of ordinary text; "a a" comes twice.
 * The last four make a pair whose left half was merged away still matter to what comes after it. */
static const char merges[] =
    "\n+\n \n\n+\n\n _+_ __+__ __+_ h+e l+l l+o he+ll hell+o _+h b+c a+b ab+c a+bc c+d a+a "
    "aa+a a+aa aa+aa d+e de+a z+z q+q qq+q _h+ello _+hello <+e o+s os+> <e+os> "
    "\xf0\x9f\x98\x80+\xf0\x9f\x98\x80 3+_ 3_+a \xe6\xbc\xa2+\xc3\xa9 a+a e+c s+o c+so o+d";

#define N_MERGES 40u

static struct str texts[N_TOKENS], merge_texts[N_MERGES];
static int32_t types[N_TOKENS];

static struct arena room; /* of the lists' text */

/* Words of a list, parted by spaces: '_' (but not in <...>) becomes `space`, '+' becomes ' '. */
static inline void split_list(const char *list, const char *space, struct str *out, size_t n_out)
{
    size_t n = 0;
    struct buf b = { 0 };
    for (const char *p = list; *p && n < n_out; p += *p == ' ') {
        const char *word = p;
        b.n = 0;
        for (; *p && *p != ' '; p++) {
            if (*p == '_' && !memchr(word, '<', (size_t)(p - word))) buf_puts(&b, space);
            else buf_putc(&b, *p == '+' ? ' ' : *p);
        }
        out[n++] = (struct str) { arena_copy_str(&room, b.data, b.n), b.n };
    }
    if (n != n_out) abort();
    buf_free(&b);
}

static inline void make_lists(void)
{
    arena_free(&room);
    split_list(tokens, SP, texts, N_HAND);
    split_list(merges, SP, merge_texts, N_MERGES);
    for (size_t i = 0; i < N_HAND; i++) {
        types[i] = texts[i].p[0] - '0';
        texts[i] = (struct str) { texts[i].p + 1, texts[i].n - 1 };
    }
    for (unsigned i = 0; i < 256; i++) {
        char z[8];
        int n = snprintf(z, sizeof z, "<0x%02X>", i);
        texts[N_HAND + i] = (struct str) { arena_copy_str(&room, z, (size_t)n), (size_t)n };
        types[N_HAND + i] = i % 3 ? 6 : 1;
    }
}

static inline void put_file(struct vocab_file *f)
{
    vocab_file_begin(f);
    vocab_file_str(f, "tokenizer.ggml.model", "gemma4");
    vocab_file_strs(f, "tokenizer.ggml.tokens", texts, N_TOKENS);
    vocab_file_i32s(f, "tokenizer.ggml.token_type", types, N_TOKENS);
    vocab_file_strs(f, "tokenizer.ggml.merges", merge_texts, N_MERGES);
}

#endif
