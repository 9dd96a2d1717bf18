/* gguf_mutate.h - mutations that leave a GGUF file whole, so that fuzzing reaches the code behind
 * its parser.
 *
 * A file that opens is taken apart into keys and tensors, a few of them are changed, and the file
 * is put together again with lengths, counts and offsets that fit. Some changes lie on purpose. A
 * file that does not open is changed as bytes.
 */
#ifndef BEZEL_FUZZ_GGUF_MUTATE_H
#define BEZEL_FUZZ_GGUF_MUTATE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "io/gguf.h"
#include "quant/quant.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

enum { MOST_ENTRIES = 256, MOST_NUMBERS = 64, ALIGN = 32 };

struct draft {
    struct arena arena;
    struct rng rng;
    struct gguf_kv kvs[MOST_ENTRIES];
    struct gguf_tensor
        tensors[MOST_ENTRIES]; /* offset: that of the original, until it is written */
    const uint8_t *data[MOST_ENTRIES];
    uint64_t lies[MOST_ENTRIES]; /* added to a tensor's offset */
    size_t n_kv, n_tensors, most;
    uint64_t extra_kv, extra_tensors; /* claimed beyond those that are there */
};

static uint32_t any(struct draft *d, size_t n)
{
    return rng_below(&d->rng, (uint32_t)n);
}

/* A copy that may be changed; room bytes, of which the first n are p's. */
static uint8_t *own(struct draft *d, const uint8_t *p, size_t n, size_t room)
{
    uint8_t *copy = arena_alloc(&d->arena, room + 1, 1);
    if (!copy) abort();
    for (size_t i = 0; i < room && n; i++) copy[i] = p[i % n];
    return copy;
}

/* ---- numbers ---- */

static uint64_t odd_integer(struct draft *d, uint64_t was)
{
    static const uint64_t list[] = { 0,     1,     2,          3,          5,         8,
                                     31,    32,    33,         255,        256,       257,
                                     65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff };
    switch (any(d, 6)) {
    case 0: return was + 1;
    case 1: return was - 1;
    case 2: return was * 2;
    case 3: return was / 2;
    case 4: return (uint64_t)1 << any(d, 64);
    default: return list[any(d, sizeof list / sizeof *list)];
    }
}

static double odd_float(struct draft *d)
{
    static const double list[] = { 0, -0.0, 1, -1, 0.5, 1e-45, 1e-30, 1e30, 3e38, -3e38, 65504 };
    switch (any(d, 6)) {
    case 0: return (double)NAN;
    case 1: return (double)INFINITY;
    case 2: return -(double)INFINITY;
    default: return list[any(d, sizeof list / sizeof *list)];
    }
}

static void put_odd(struct draft *d, uint8_t *p, enum gguf_type type)
{
    uint64_t v = 0;
    uint32_t n = gguf_type_size(type);
    if (type == GGUF_F32) {
        float f = (float)odd_float(d);
        memcpy(p, &f, sizeof f);
    } else if (type == GGUF_F64) {
        double f = odd_float(d);
        memcpy(p, &f, sizeof f);
    } else {
        memcpy(&v, p, n);
        v = odd_integer(d, v);
        memcpy(p, &v, n);
    }
}

/* ---- keys ---- */

static void change_number(struct draft *d, struct gguf_kv *kv)
{
    uint32_t width = gguf_type_size(kv->elem);
    if (!width || !kv->n) return;
    uint8_t *bytes = own(d, kv->value, (size_t)kv->n_bytes, (size_t)kv->n_bytes);
    put_odd(d, bytes + (size_t)any(d, (size_t)kv->n) * width, kv->elem);
    kv->value = bytes;
}

/* A single number of another type. */
static void change_type(struct draft *d, struct gguf_kv *kv)
{
    static const enum gguf_type list[] = { GGUF_U8,  GGUF_I8,   GGUF_U16, GGUF_I32,
                                           GGUF_F32, GGUF_BOOL, GGUF_I64, GGUF_F64 };
    if (kv->type == GGUF_ARRAY || kv->type == GGUF_STRING) return;
    kv->type = kv->elem = list[any(d, sizeof list / sizeof *list)];
    uint8_t *bytes = own(d, kv->value, (size_t)kv->n_bytes, 8);
    kv->value = bytes;
    kv->n_bytes = gguf_type_size(kv->type);
    if (any(d, 2)) put_odd(d, bytes, kv->type);
}

/* One string of a key, with what follows it moved. */
static void change_string(struct draft *d, struct gguf_kv *kv)
{
    static const char *const list[] = {
        "",      "<|turn>", "<0x41>", "\xe2\x96\x81", "aaaaaaaaaaaaaaaa",
        "<bos>", "gemma4",  "\xff",   "clip",         "a b"
    };
    uint64_t cursor = 0, n = kv->n ? 1 + any(d, (size_t)kv->n) : 0;
    struct str s = { 0 };
    if (kv->elem != GGUF_STRING || !n) return;
    for (uint64_t i = 0; i < n; i++)
        if (!gguf_next_str(kv, &cursor, &s)) return;
    size_t before = (size_t)((const uint8_t *)s.p - kv->value) - 8, room = s.n + 16;
    uint8_t *fresh = own(d, (const uint8_t *)s.p, s.n, room);
    uint64_t n_fresh = s.n;
    if (any(d, 3)) {
        n_fresh = LLVMFuzzerMutate(fresh, s.n, room);
    } else {
        const char *text = list[any(d, sizeof list / sizeof *list)];
        fresh = own(d, (const uint8_t *)text, strlen(text), strlen(text));
        n_fresh = strlen(text);
    }
    size_t after = (size_t)kv->n_bytes - before - 8 - s.n;
    uint8_t *bytes = own(d, kv->value, (size_t)kv->n_bytes, before + 8 + (size_t)n_fresh + after);
    memcpy(bytes + before, &n_fresh, 8);
    memcpy(bytes + before + 8, fresh, (size_t)n_fresh);
    memcpy(bytes + before + 8 + n_fresh, s.p + s.n, after);
    kv->value = bytes;
    kv->n_bytes = before + 8 + n_fresh + after;
}

/* A list of numbers gets shorter or longer. */
static void change_length(struct draft *d, struct gguf_kv *kv)
{
    uint32_t width = gguf_type_size(kv->elem);
    if (kv->type != GGUF_ARRAY || !width || !kv->n) return;
    kv->n = any(d, 2) ? any(d, (size_t)kv->n) : kv->n + 1 + any(d, 4);
    kv->value = own(d, kv->value, (size_t)kv->n_bytes, (size_t)kv->n * width);
    kv->n_bytes = kv->n * width;
}

static void change_keys(struct draft *d)
{
    if (!d->n_kv) return;
    struct gguf_kv *kv = &d->kvs[any(d, d->n_kv)], *other = &d->kvs[any(d, d->n_kv)];
    struct str name = kv->key;
    switch (any(d, 12)) {
    case 0: *kv = d->kvs[--d->n_kv]; break;
    case 1:
        kv->key = other->key;
        other->key = name;
        break;
    case 2:
        if (d->n_kv == MOST_ENTRIES) break;
        d->kvs[d->n_kv] = *kv;
        d->kvs[d->n_kv++].key = other->key;
        break;
    case 3: change_type(d, kv); break;
    case 4: change_length(d, kv); break;
    case 5:
    case 6: change_string(d, kv); break;
    default: change_number(d, kv); break;
    }
}

/* ---- tensors ---- */

/* Bytes that follow from type and shape; SIZE_MAX when they make no sense or are too many. */
static size_t bytes_of(const struct draft *d, const struct gguf_tensor *t)
{
    uint32_t block, width;
    uint64_t n = 1;
    for (int i = 0; i < 4; i++)
        if (!size_mul(n, t->ne[i], &n) || n > 1u << 30) return SIZE_MAX;
    if (!quant_type_size(t->type, &block, &width)) return SIZE_MAX;
    n = n / block * width;
    return n > d->most ? SIZE_MAX : (size_t)n;
}

/* As much data as the tensor now says, where that is possible. */
static void fit_data(struct draft *d, size_t i)
{
    struct gguf_tensor *t = &d->tensors[i];
    size_t n = bytes_of(d, t);
    if (n == SIZE_MAX) return;
    d->data[i] = own(d, d->data[i], (size_t)t->n_bytes, n);
    t->n_bytes = n;
}

static void change_dims(struct draft *d, size_t i)
{
    struct gguf_tensor *t = &d->tensors[i];
    uint32_t k = any(d, 4);
    if (k >= t->n_dims) t->n_dims = k + 1;
    if (any(d, 4)) t->ne[k] = odd_integer(d, t->ne[k]);
    else t->ne[k] = 1, t->ne[(k + 1) % 4] = t->n_dims == 4 ? 2 : t->ne[(k + 1) % 4];
    fit_data(d, i);
}

static void change_format(struct draft *d, size_t i)
{
    size_t n = 0;
    while (quant_at(n)) n++;
    size_t k = any(d, n + 1);
    d->tensors[i].type = k < n ? (uint32_t)quant_at(k)->id : any(d, 48);
    fit_data(d, i);
}

/* Odd numbers where the format keeps them: floats, or the half floats of blocks. */
static void change_data(struct draft *d, size_t i)
{
    struct gguf_tensor *t = &d->tensors[i];
    size_t n = (size_t)t->n_bytes, width = t->type == QUANT_F32 ? 4 : 2;
    if (n < width) return;
    uint8_t *bytes = own(d, d->data[i], n, n);
    static const uint16_t halves[] = { 0x7e00, 0x7c00, 0xfc00, 0xffff, 0x7bff, 0x0001, 0x8000 };
    uint16_t half = halves[any(d, sizeof halves / sizeof *halves)];
    float f = (float)odd_float(d);
    const void *odd = width == 4 ? (const void *)&f : (const void *)&half;
    size_t at = any(d, n / width) * width, step = 0;
    switch (any(d, 4)) {
    case 0: step = width; break; /* from there to the end */
    case 1: step = width * (1 + any(d, 64)); break;
    case 2: LLVMFuzzerMutate(bytes, n, n); break;
    default: break;
    }
    do {
        memcpy(bytes + at, odd, width);
        at += step;
    } while (step && at + width <= n);
    d->data[i] = bytes;
}

static void change_tensors(struct draft *d)
{
    if (!d->n_tensors) return;
    size_t i = any(d, d->n_tensors), k = any(d, d->n_tensors);
    struct str name = d->tensors[i].name;
    switch (any(d, 12)) {
    case 0:
        d->n_tensors--;
        d->tensors[i] = d->tensors[d->n_tensors];
        d->data[i] = d->data[d->n_tensors];
        break;
    case 1:
        d->tensors[i].name = d->tensors[k].name;
        d->tensors[k].name = name;
        break;
    case 2: d->lies[i] = (uint64_t)ALIGN * (any(d, 64) - 32u); break;
    case 3:
    case 4: change_dims(d, i); break;
    case 5:
    case 6: change_format(d, i); break;
    default: change_data(d, i); break;
    }
}

/* ---- one number, everywhere ---- */

static uint64_t replaced(uint64_t x, uint64_t was, uint64_t is)
{
    return x % was || x > 1u << 20 ? x : x / was * is;
}

/* Replace a factor: every dimension, and every number among the keys, that is a multiple of one
 * number becomes the same multiple of another. The model has another width, or another number of
 * heads or of experts, and still fits together. */
static void change_everywhere(struct draft *d)
{
    if (!d->n_tensors) return;
    uint64_t was = d->tensors[any(d, d->n_tensors)].ne[any(d, 2)];
    uint64_t is = 1 + any(d, (size_t)(2 * was < 64 ? 2 * was : 64));
    if (was < 2 || was > 512) return;
    for (size_t i = 0; i < d->n_tensors; i++) {
        for (int k = 0; k < 4; k++) d->tensors[i].ne[k] = replaced(d->tensors[i].ne[k], was, is);
        fit_data(d, i);
    }
    for (size_t i = 0; i < d->n_kv; i++) {
        struct gguf_kv *kv = &d->kvs[i];
        uint32_t width = gguf_type_size(kv->elem);
        if ((kv->elem != GGUF_U32 && kv->elem != GGUF_I32) || kv->n > MOST_NUMBERS) continue;
        uint8_t *bytes = own(d, kv->value, (size_t)kv->n_bytes, (size_t)kv->n_bytes);
        for (uint64_t k = 0; k < kv->n; k++) {
            uint32_t v;
            memcpy(&v, bytes + k * width, 4);
            v = (uint32_t)replaced(v, was, is);
            memcpy(bytes + k * width, &v, 4);
        }
        kv->value = bytes;
    }
}

/* ---- a file, apart and together ---- */

static void put_number(struct buf *b, uint64_t v, size_t n)
{
    buf_put(b, &v, n); /* the machine is little-endian, as the format is */
}

static void put_text(struct buf *b, struct str s)
{
    put_number(b, s.n, 8);
    buf_put_str(b, s);
}

static void pad_to(struct buf *b, size_t align)
{
    while (b->n % align) buf_put(b, "", 1);
}

static void put_together(const struct draft *d, struct buf *b)
{
    uint64_t at = 0;
    buf_puts(b, "GGUF");
    put_number(b, 3, 4);
    put_number(b, d->n_tensors + d->extra_tensors, 8);
    put_number(b, d->n_kv + d->extra_kv, 8);
    for (size_t i = 0; i < d->n_kv; i++) {
        const struct gguf_kv *kv = &d->kvs[i];
        put_text(b, kv->key);
        put_number(b, kv->type, 4);
        if (kv->type == GGUF_ARRAY) put_number(b, kv->elem, 4), put_number(b, kv->n, 8);
        buf_put(b, kv->value, (size_t)kv->n_bytes);
    }
    for (size_t i = 0; i < d->n_tensors; i++) {
        const struct gguf_tensor *t = &d->tensors[i];
        put_text(b, t->name);
        put_number(b, t->n_dims, 4);
        for (uint32_t k = 0; k < t->n_dims; k++) put_number(b, t->ne[k], 8);
        put_number(b, t->type, 4);
        put_number(b, at + d->lies[i], 8);
        at += (t->n_bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    pad_to(b, ALIGN);
    for (size_t i = 0; i < d->n_tensors; i++) {
        buf_put(b, d->data[i], (size_t)d->tensors[i].n_bytes);
        pad_to(b, ALIGN);
    }
}

/* False when the bytes are no file, or a larger one than this takes apart. */
static bool take_apart(struct draft *d, struct gguf *g, const uint8_t *data, size_t size)
{
    struct source src;
    if (source_open_memory(&src, "mutated", data, size, NULL)) abort();
    if (gguf_open(g, &src, 1, NULL)) return false;
    if (g->n_kv > MOST_ENTRIES || g->n_tensors > MOST_ENTRIES) return false;
    d->n_kv = (size_t)g->n_kv;
    d->n_tensors = (size_t)g->n_tensors;
    for (size_t i = 0; i < d->n_kv; i++) d->kvs[i] = g->kvs[i];
    for (size_t i = 0; i < d->n_tensors; i++) {
        d->tensors[i] = g->tensors[i];
        d->data[i] = data + d->tensors[i].offset;
    }
    return true;
}

static void change(struct draft *d)
{
    for (uint32_t n = 1 + any(d, 3); n > 0; n--) {
        switch (any(d, 16)) {
        case 0: d->extra_kv = any(d, 5) - 2u; break;
        case 1: d->extra_tensors = any(d, 5) - 2u; break;
        case 2:
        case 3:
        case 4: change_everywhere(d); break;
        case 5:
        case 6:
        case 7:
        case 8: change_keys(d); break;
        default: change_tensors(d); break;
        }
    }
}

static size_t gguf_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static struct draft d; /* too large for the stack */
    struct gguf g = { 0 };
    struct buf b = { 0 };
    d = (struct draft) { .rng = { seed }, .most = max };
    size_t n = 0;
    if (any(&d, 20) && take_apart(&d, &g, data, size)) {
        change(&d);
        put_together(&d, &b);
        if (!any(&d, 32) && b.n) b.n = any(&d, b.n); /* cut off */
        if (!b.failed && b.n <= max) memcpy(data, b.data, n = b.n);
    }
    buf_free(&b);
    gguf_close(&g);
    arena_free(&d.arena);
    return n ? n : LLVMFuzzerMutate(data, size, max);
}

#endif
