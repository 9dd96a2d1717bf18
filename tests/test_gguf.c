/* Tests of io/gguf.h: single files, whole, cut, damaged and hostile. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "gguf_bytes.h"
#include "io/gguf.h"
#include "io/gguf_write.h"

static struct bz_err err;

/* One key of every type, one tensor, 64 bytes of data and nothing after them. */
static void build_all_types(struct buf *b)
{
    static const double pi = 3.25;
    static const float half = 0.5f;
    start(b, 1, 15);
    key(b, "k.u8", GGUF_U8), u8(b, 200);
    key(b, "k.i8", GGUF_I8), u8(b, (uint8_t)-100);
    key(b, "k.u16", GGUF_U16), buf_put(b, "\x34\xf2", 2);
    key(b, "k.i16", GGUF_I16), buf_put(b, "\xfe\xff", 2);
    key_u32(b, "k.u32", 4000000000u);
    key(b, "k.i32", GGUF_I32), u32(b, (uint32_t)-7);
    key(b, "k.f32", GGUF_F32), buf_put(b, &half, 4);
    key(b, "k.bool", GGUF_BOOL), u8(b, 1);
    key(b, "k.str", GGUF_STRING), text(b, "h\xc3\xa9llo");
    key(b, "k.u64", GGUF_U64), u64(b, UINT64_MAX);
    key(b, "k.i64", GGUF_I64), u64(b, (uint64_t)INT64_MIN);
    key(b, "k.f64", GGUF_F64), buf_put(b, &pi, 8);
    key(b, "k.strs", GGUF_ARRAY), array(b, GGUF_STRING, 3);
    text(b, "a"), text(b, ""), text(b, "ccc");
    key(b, "k.nest", GGUF_ARRAY), array(b, GGUF_ARRAY, 3);
    array(b, GGUF_U8, 2), u8(b, 1), u8(b, 2);
    array(b, GGUF_STRING, 1), text(b, "in");
    array(b, GGUF_ARRAY, 1), array(b, GGUF_I32, 0);
    key(b, "k.none", GGUF_ARRAY), array(b, GGUF_F32, 0);
    tensor(b, "w", QUANT_F32, 4, 4, 0);
    pad(b, 32);
    for (uint8_t i = 0; i < 64; i++) u8(b, i);
}

static enum bz_status open_bytes(struct gguf *g, const void *p, size_t n)
{
    struct source s = { 0 };
    free_copies();
    make_source(&s, "file", p, n);
    err.text[0] = 0;
    return gguf_open(g, &s, 1, &err);
}

/* The sentence that a file gets, or "ok". Frees the bytes. */
static const char *verdict(struct buf *b)
{
    struct gguf g = { 0 };
    int64_t live = mem_live();
    enum bz_status st = open_bytes(&g, b->data, b->n);
    gguf_close(&g);
    CHECK(mem_live() == live);
    CHECK(st == BZ_OK || err.text[0]);
    free_copies();
    buf_free(b);
    return st ? err.text : "ok";
}

static bool has_i64(const struct gguf *g, const char *name, int64_t want)
{
    const struct gguf_kv *kv = gguf_find(g, name);
    int64_t v = 99;
    return kv && gguf_at_i64(kv, 0, &v) && v == want;
}

static void check_all_types(const struct gguf *g)
{
    uint64_t u = 0, cursor = 0;
    double d = 0;
    bool t = false;
    struct str s = { 0 };
    CHECK(g->n_kv == 15);
    CHECK(has_i64(g, "k.u8", 200) && has_i64(g, "k.i8", -100));
    CHECK(has_i64(g, "k.u16", 0xf234) && has_i64(g, "k.i16", -2));
    CHECK(has_i64(g, "k.u32", 4000000000) && has_i64(g, "k.i32", -7));
    CHECK(has_i64(g, "k.i64", INT64_MIN) && has_i64(g, "k.bool", 1));
    CHECK(gguf_get_u64(g, "k.u64", &u) && u == UINT64_MAX);
    CHECK(gguf_get_f64(g, "k.f32", &d) && d == 0.5);
    CHECK(gguf_get_f64(g, "k.f64", &d) && d == 3.25);
    CHECK(gguf_get_f64(g, "k.i32", &d) && d == -7);
    CHECK(gguf_get_bool(g, "k.bool", &t) && t);
    CHECK(gguf_get_str(g, "k.str", &s) && str_is(s, "h\xc3\xa9llo"));
    const struct gguf_kv *kv = gguf_find(g, "k.strs");
    CHECK(kv && kv->type == GGUF_ARRAY && kv->elem == GGUF_STRING && kv->n == 3);
    CHECK(gguf_next_str(kv, &cursor, &s) && str_is(s, "a"));
    CHECK(gguf_next_str(kv, &cursor, &s) && s.n == 0);
    CHECK(gguf_next_str(kv, &cursor, &s) && str_is(s, "ccc"));
    CHECK(!gguf_next_str(kv, &cursor, &s));
    kv = gguf_find(g, "k.nest");
    CHECK(kv && kv->elem == GGUF_ARRAY && kv->n == 3 && kv->n_bytes == 14 + 22 + 24);
    CHECK(!gguf_at_i64(kv, 0, &(int64_t) { 0 }) && !gguf_get_str(g, "k.nest", &s));
    kv = gguf_find(g, "k.none");
    CHECK(kv && kv->n == 0 && kv->n_bytes == 0 && !gguf_at_f64(kv, 0, &d));
    CHECK(gguf_find(g, "k.") == NULL && gguf_find(g, "") == NULL);
    const struct gguf_tensor *w = gguf_tensor_find(g, "w");
    CHECK(w && w->n_dims == 2 && w->ne[0] == 4 && w->ne[1] == 4 && w->ne[2] == 1 && w->ne[3] == 1);
    CHECK(w->n_bytes == 64 && w->shard == 0 && w->offset == g->header_bytes &&
          w->type == QUANT_F32);
    const uint8_t *data = source_map(&g->sources[0], w->offset, w->n_bytes);
    CHECK(data && data[0] == 0 && data[63] == 63);
    CHECK(gguf_tensor_find(g, "v") == NULL);
}

static void test_values(void)
{
    TEST("a file with every type of value reads back")
    {
        struct buf b = { 0 };
        struct gguf g = { 0 };
        build_all_types(&b);
        CHECK(open_bytes(&g, b.data, b.n) == BZ_OK);
        check_all_types(&g);
        gguf_close(&g);
        gguf_close(&g); /* twice is harmless */
        CHECK(gguf_find(&g, "k.u8") == NULL && gguf_tensor_find(&g, "w") == NULL);
        buf_free(&b);
    }

    TEST("every pair survives the way through the writer byte for byte")
    {
        struct buf b = { 0 };
        struct gguf g = { 0 }, h = { 0 };
        struct gguf_writer *w = NULL;
        build_all_types(&b);
        CHECK(open_bytes(&g, b.data, b.n) == BZ_OK);
        CHECK(gguf_writer_open(&w, "build/tmp/test_gguf.gguf", &err) == BZ_OK);
        for (uint64_t i = 0; i < g.n_kv; i++) gguf_put_kv(w, &g.kvs[i]);
        gguf_put_tensor(w, "w", QUANT_F32, 2, (uint64_t[]) { 4, 4 });
        gguf_put_data(w, source_map(&g.sources[0], g.tensors[0].offset, 64), 64);
        CHECK(gguf_writer_finish(w, &err) == BZ_OK);
        CHECK(gguf_open_file(&h, "build/tmp/test_gguf.gguf", &err) == BZ_OK);
        check_all_types(&h);
        for (uint64_t i = 0; i < g.n_kv && i < h.n_kv; i++) {
            CHECK(str_eq(g.kvs[i].key, h.kvs[i].key) && g.kvs[i].n_bytes == h.kvs[i].n_bytes);
            CHECK(memcmp(g.kvs[i].value, h.kvs[i].value, g.kvs[i].n_bytes) == 0);
        }
        CHECK(h.header_bytes == g.header_bytes && h.sources[0].size == b.n);
        unlink("build/tmp/test_gguf.gguf");
        gguf_close(&g);
        gguf_close(&h);
        buf_free(&b);
    }

    TEST("types have names and sizes")
    {
        CHECK_STR(gguf_type_name(GGUF_STRING), "string");
        CHECK_STR(gguf_type_name(GGUF_F64), "f64");
        CHECK_STR(gguf_type_name((enum gguf_type)13), "unknown");
        CHECK(gguf_type_size(GGUF_BOOL) == 1 && gguf_type_size(GGUF_U64) == 8);
        CHECK(gguf_type_size(GGUF_ARRAY) == 0 && gguf_type_size((enum gguf_type)99) == 0);
    }
}

static void test_lenient(void)
{
    TEST("a count arrives as any integer, bool, integral float or array; a fraction does not")
    {
        static const double three = 3, big = 0x1p63, huge = 0x1p64, negative = -3;
        static const float fraction = 2.5f, threef = 3;
        struct buf b = { 0 };
        struct gguf g = { 0 };
        start(&b, 0, 17);
        key(&b, "i32", GGUF_I32), u32(&b, 3);
        key(&b, "u64", GGUF_U64), u64(&b, 3);
        key(&b, "u8", GGUF_U8), u8(&b, 3);
        key(&b, "i64", GGUF_I64), u64(&b, 3);
        key(&b, "f32", GGUF_F32), buf_put(&b, &threef, 4);
        key(&b, "f64", GGUF_F64), buf_put(&b, &three, 8);
        key(&b, "arr", GGUF_ARRAY), array(&b, GGUF_I32, 2), u32(&b, 3), u32(&b, 4);
        key(&b, "arrf", GGUF_ARRAY), array(&b, GGUF_F32, 1), buf_put(&b, &threef, 4);
        key(&b, "true", GGUF_BOOL), u8(&b, 7);
        key(&b, "neg", GGUF_I32), u32(&b, (uint32_t)-3);
        key(&b, "frac", GGUF_F32), buf_put(&b, &fraction, 4);
        key(&b, "str", GGUF_STRING), text(&b, "3");
        key(&b, "none", GGUF_ARRAY), array(&b, GGUF_U32, 0);
        key(&b, "big", GGUF_F64), buf_put(&b, &big, 8);
        key(&b, "huge", GGUF_F64), buf_put(&b, &huge, 8);
        key(&b, "negf", GGUF_F64), buf_put(&b, &negative, 8);
        key(&b, "nan", GGUF_F32), u32(&b, 0x7fc00000);
        CHECK(open_bytes(&g, b.data, b.n) == BZ_OK);
        static const char *const good[] = {
            "i32", "u64", "u8", "i64", "f32", "f64", "arr", "arrf"
        };
        for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
            uint64_t u = 0;
            double d = 0;
            CHECK_MSG(gguf_get_u64(&g, good[i], &u) && u == 3, "%s", good[i]);
            CHECK_MSG(gguf_get_f64(&g, good[i], &d) && d == 3, "%s", good[i]);
        }
        static const char *const bad[] = { "neg",  "frac", "str", "none",
                                           "huge", "negf", "nan", "absent" };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            uint64_t u = 42;
            CHECK_MSG(!gguf_get_u64(&g, bad[i], &u) && u == 42, "%s", bad[i]);
        }
        uint64_t u = 0;
        bool t = false;
        CHECK(gguf_get_u64(&g, "true", &u) && u == 1 && gguf_get_bool(&g, "true", &t) && t);
        CHECK(gguf_get_u64(&g, "big", &u) && u == (uint64_t)1 << 63);
        CHECK(!has_i64(&g, "big", INT64_MIN) && has_i64(&g, "negf", -3));
        const struct gguf_kv *kv = gguf_find(&g, "arr");
        int64_t v = 0;
        CHECK(gguf_at_i64(kv, 1, &v) && v == 4 && !gguf_at_i64(kv, 2, &v));
        CHECK(!gguf_at_i64(kv, UINT64_MAX, &v));
        CHECK(gguf_at_i64(gguf_find(&g, "i32"), 5, &v) && v == 3); /* a scalar serves every index */
        gguf_close(&g);
        buf_free(&b);
    }
}

static void test_cut(void)
{
    TEST("a file cut at any byte is an error, and nothing leaks")
    {
        struct buf b = { 0 };
        struct gguf g = { 0 };
        build_all_types(&b);
        for (size_t n = 0; n < b.n; n++) {
            int64_t live = mem_live();
            CHECK_MSG(open_bytes(&g, b.data, n) == BZ_ERR_FORMAT, "cut at %zu", n);
            CHECK(strncmp(err.text, "file: ", 6) == 0);
            CHECK(mem_live() == live && g.sources == NULL);
        }
        CHECK_STR(verdict(&b), "ok");
    }

    TEST("a larger file cut at every 64th byte is an error too")
    {
        struct buf b = { 0 };
        struct gguf g = { 0 };
        build_larger(&b);
        int64_t live = mem_live();
        for (size_t n = 0; n < b.n; n += 64)
            CHECK_MSG(open_bytes(&g, b.data, n) == BZ_ERR_FORMAT, "cut at %zu", n);
        CHECK(open_bytes(&g, b.data, b.n - 1) == BZ_ERR_FORMAT);
        CHECK(mem_live() == live);
        CHECK_STR(verdict(&b), "ok");
    }

    TEST("a byte changed anywhere is read or refused, never more")
    {
        struct buf b = { 0 };
        struct gguf g = { 0 };
        struct rng r = { 5 };
        build_all_types(&b);
        int64_t live = mem_live();
        for (size_t i = 0; i < b.n; i++) {
            char was = b.data[i];
            for (int k = 0; k < 4; k++) {
                b.data[i] = (char)(k ? rng_next(&r) : 0xff);
                open_bytes(&g, b.data, b.n);
                gguf_close(&g);
            }
            b.data[i] = was;
        }
        CHECK(mem_live() == live);
        CHECK_STR(verdict(&b), "ok");
    }

    TEST("any failed allocation is BZ_ERR_MEMORY and leaks nothing")
    {
        struct buf b = { 0 };
        build_larger(&b);
        int64_t live = mem_live();
        bool opened = false;
        uint64_t k = 1;
        for (; !opened && k < 200; k++) {
            struct gguf g = { 0 };
            struct source s = { 0 };
            free_copies();
            make_source(&s, "file", b.data, b.n);
            mem_fail_at(k);
            enum bz_status st = gguf_open(&g, &s, 1, &err);
            mem_fail_at(0);
            opened = st == BZ_OK;
            CHECK(opened || (st == BZ_ERR_MEMORY && g.sources == NULL));
            gguf_close(&g);
            CHECK(mem_live() == live);
        }
        CHECK(opened && k > 8);
        buf_free(&b);
    }
}

static void start_with(struct buf *b, const char *magic, uint32_t version)
{
    buf_puts(b, magic);
    u32(b, version);
    zeros(b, 16);
}

static void test_start(void)
{
    struct buf b = { 0 };
    TEST("what is not GGUF 3 is told apart")
    {
        CHECK_STR(verdict(&b), "file: not a GGUF file: it has only 0 bytes");
        start_with(&b, "GGML", 3);
        CHECK_STR(verdict(&b), "file: not a GGUF file: it starts with the bytes 47 47 4d 4c");
        start_with(&b, "GGUF", 1);
        CHECK_STR(verdict(&b),
                  "file: GGUF version 1 is from 2023; convert the model again to get version 3");
        start_with(&b, "GGUF", 2);
        CHECK_STR(verdict(&b),
                  "file: GGUF version 2 is from 2023; convert the model again to get version 3");
        start_with(&b, "GGUF", 4);
        CHECK_STR(verdict(&b), "file: GGUF version 4; this build reads version 3");
        start_with(&b, "GGUF", 0x03000000);
        CHECK_STR(verdict(&b), "file: a big-endian GGUF file; this build reads little-endian ones");
        start_with(&b, "GGUF", 3);
        CHECK_STR(verdict(&b), "ok");
    }

    TEST("counts that the file has no bytes for are refused before anything is allocated for them")
    {
        static const uint64_t counts[] = {
            2, 1000, 1u << 31, (uint64_t)1 << 32, UINT64_MAX / 13, UINT64_MAX
        };
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            start(&b, counts[i], 0);
            CHECK(strstr(verdict(&b), "tensors, more than its 24 bytes can hold") != NULL);
            start(&b, 0, counts[i]);
            CHECK(strstr(verdict(&b), "keys and 0 tensors, more than its 24 bytes") != NULL);
            for (int elem = GGUF_U8; elem <= GGUF_F64; elem++) {
                start(&b, 0, 1);
                key(&b, "a", GGUF_ARRAY), array(&b, (enum gguf_type)elem, counts[i]), u8(&b, 0);
                CHECK(strstr(verdict(&b), "file: key 'a' claims ") != NULL);
            }
            start(&b, 0, 1);
            key(&b, "s", GGUF_STRING), u64(&b, counts[i]), u8(&b, 0);
            CHECK_STR(verdict(&b), "file: key 's' reaches past the end of the file at byte 46: "
                                   "it is cut off or damaged");
            start(&b, 0, 1);
            u64(&b, counts[i]), buf_puts(&b, "kkkkk");
            CHECK(strncmp(verdict(&b), "file: key ", 10) == 0);
        }
    }
}

static void nested(struct buf *b, int depth)
{
    start(b, 0, 1);
    key(b, "n", GGUF_ARRAY);
    for (int i = 1; i < depth; i++) array(b, GGUF_ARRAY, 1);
    array(b, GGUF_U8, 1), u8(b, 1);
}

static void test_keys(void)
{
    struct buf b = { 0 };
    TEST("keys must be unique, named, of a known type, and not too deep")
    {
        start(&b, 0, 2);
        key_u32(&b, "x", 1), key_u32(&b, "x", 2);
        CHECK_STR(verdict(&b), "file: key 'x' appears twice");
        start(&b, 0, 1);
        key_u32(&b, "", 1);
        CHECK_STR(verdict(&b), "ok");
        start(&b, 0, 1);
        key(&b, "x\n\xff", (enum gguf_type)13), u32(&b, 1);
        CHECK_STR(verdict(&b),
                  "file: key 'x\?\?' has a value of type 13, which GGUF does not have");
        start(&b, 0, 1);
        key(&b, "x", GGUF_ARRAY), array(&b, (enum gguf_type)77, 0);
        CHECK_STR(verdict(&b), "file: key 'x' has a value of type 77, which GGUF does not have");
        start(&b, 0, 1);
        u64(&b, 70000), zeros(&b, 80000);
        CHECK_STR(verdict(&b), "file: key number 1 has a name of 70000 bytes; 65535 are allowed");
        start(&b, 0, 1);
        u64(&b, 3), buf_put(&b, "x\0y", 3), u32(&b, GGUF_U32), u32(&b, 1);
        CHECK_STR(verdict(&b), "file: the name of key 'x?y' holds a zero byte");
        start(&b, 1, 0);
        u64(&b, 3), buf_put(&b, "w\0v", 3), u32(&b, 1), u64(&b, 1), u32(&b, QUANT_F32), u64(&b, 0);
        pad(&b, 32), zeros(&b, 4);
        CHECK_STR(verdict(&b), "file: the name of tensor 'w?v' holds a zero byte");
        nested(&b, 8);
        CHECK_STR(verdict(&b), "ok");
        nested(&b, 9);
        CHECK_STR(verdict(&b), "file: key 'n' has arrays nested more than 8 deep");
        start(&b, 0, 1);
        u64(&b, 200);
        for (int i = 0; i < 200; i++) u8(&b, 'y');
        u32(&b, 99), zeros(&b, 20);
        CHECK(strstr(verdict(&b), "yyy...' has a value of type 99") != NULL);
    }

    TEST("the alignment must be a power of two")
    {
        static const uint32_t bad[] = { 0, 3, 24, 33, 0xffffffff };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            char want[128];
            start(&b, 0, 1);
            key_u32(&b, "general.alignment", bad[i]);
            snprintf(want, sizeof want,
                     "file: key 'general.alignment' is %u, which is not a power of two", bad[i]);
            CHECK_STR(verdict(&b), want);
        }
        start(&b, 0, 1);
        key(&b, "general.alignment", GGUF_STRING), text(&b, "32");
        CHECK_STR(verdict(&b), "file: key 'general.alignment' is not a whole number");
        start(&b, 1, 1);
        key(&b, "general.alignment", GGUF_U64), u64(&b, (uint64_t)1 << 63);
        tensor(&b, "w", QUANT_F32, 1, 1, 0), zeros(&b, 64);
        CHECK(strstr(verdict(&b), "tensor 'w' (4 bytes) reaches past the end") != NULL);
        start(&b, 1, 1);
        key_u32(&b, "general.alignment", 1);
        tensor(&b, "w", QUANT_F32, 1, 1, 3), zeros(&b, 7);
        CHECK_STR(verdict(&b), "ok");
        start(&b, 1, 1);
        key_u32(&b, "general.alignment", 4096);
        tensor(&b, "w", QUANT_F32, 1, 1, 4096), pad(&b, 4096), zeros(&b, 4096 + 4);
        CHECK_STR(verdict(&b), "ok");
    }
}

/* A file with one tensor and 4096 bytes of data. */
static const char *tensor_verdict(uint32_t type, uint32_t n_dims, const uint64_t *ne,
                                  uint64_t offset)
{
    struct buf b = { 0 };
    start(&b, 1, 0);
    text(&b, "w");
    u32(&b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) u64(&b, ne[i]);
    u32(&b, type);
    u64(&b, offset);
    pad(&b, 32);
    zeros(&b, 4096);
    return verdict(&b);
}

#define NE(...)                                                                                    \
    (const uint64_t[])                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void test_tensors(void)
{
    TEST("a tensor's shape, type and place are checked")
    {
        CHECK_STR(tensor_verdict(QUANT_F32, 4, NE(4, 4, 8, 8), 0), "ok");
        CHECK_STR(tensor_verdict(QUANT_F32, 0, NE(0), 4064), "ok");
        CHECK_STR(tensor_verdict(QUANT_F32, 1, NE(1024), 0), "ok");
        CHECK_STR(tensor_verdict(QUANT_Q4_K, 2, NE(256, 28), 0), "ok"); /* 4032 bytes */
        CHECK_STR(tensor_verdict(QUANT_F32, 5, NE(1, 1, 1, 1, 1), 0),
                  "file: tensor 'w' has 5 dimensions; 4 are allowed");
        CHECK_STR(tensor_verdict(QUANT_F32, 2, NE(4, 0), 0),
                  "file: tensor 'w' is empty: its dimension 1 is 0");
        CHECK_STR(tensor_verdict(QUANT_F32, 2, NE((uint64_t)1 << 32, (uint64_t)1 << 32), 0),
                  "file: tensor 'w' has more weights than 64 bits count");
        CHECK_STR(tensor_verdict(QUANT_F32, 1, NE((uint64_t)1 << 63), 0),
                  "file: tensor 'w' has more weights than 64 bits count");
        CHECK_STR(tensor_verdict(QUANT_F32, 1, NE((uint64_t)1 << 62), 0),
                  "file: tensor 'w' has more bytes than 64 bits count");
        CHECK_STR(tensor_verdict(QUANT_Q4_K, 2, NE(128, 2), 0),
                  "file: tensor 'w' has rows of 128 weights, but Q4_K comes in blocks of 256");
        CHECK_STR(tensor_verdict(QUANT_F32, 1, NE(4), 16),
                  "file: tensor 'w' starts at offset 16, which is not a multiple of 32");
        CHECK_STR(tensor_verdict(QUANT_F32, 1, NE(1025), 0),
                  "file: tensor 'w' (4100 bytes) reaches past the end of the file at byte 4160: it "
                  "is cut off or damaged");
        CHECK(strstr(tensor_verdict(QUANT_F32, 1, NE(8), 4096), "past the end") != NULL);
        CHECK(strstr(tensor_verdict(QUANT_F32, 1, NE(8), UINT64_MAX - 31), "past the end") != NULL);
        CHECK(strstr(tensor_verdict(QUANT_F32, 1, NE((uint64_t)1 << 61), 0), "past the end"));
    }

    TEST("a tensor of an unknown type has no size and is no error")
    {
        struct buf b = { 0 };
        struct gguf g = { 0 };
        start(&b, 2, 0);
        tensor(&b, "odd", 12345, 7, 3, 0), tensor(&b, "w", QUANT_F32, 1, 1, 32);
        pad(&b, 32), zeros(&b, 36);
        CHECK(open_bytes(&g, b.data, b.n) == BZ_OK);
        CHECK(g.tensors[0].n_bytes == 0 && g.tensors[0].type == 12345);
        CHECK(g.tensors[1].n_bytes == 4);
        gguf_close(&g);
        buf_free(&b);
        start(&b, 1, 0);
        tensor(&b, "odd", 12345, 7, 3, 64), pad(&b, 32);
        CHECK(strstr(verdict(&b), "tensor 'odd' (0 bytes) reaches past the end") != NULL);
    }

    TEST("tensor names must be unique")
    {
        struct buf b = { 0 };
        start(&b, 2, 0);
        tensor(&b, "w", QUANT_F32, 1, 1, 0), tensor(&b, "w", QUANT_F32, 1, 1, 32), zeros(&b, 96);
        CHECK_STR(verdict(&b), "file: tensor 'w' appears twice");
    }

    TEST("tensors share no bytes, in whatever order they are listed")
    {
        static const struct {
            uint64_t at[3]; /* of tensors of 36, 32 and 4 bytes */
            const char *want;
        } cases[] = {
            { { 0, 64, 96 }, "ok" },
            { { 64, 0, 32 }, "ok" },
            { { 0, 32, 96 }, "file: tensors 'a' and 'b' overlap: the file is damaged" },
            { { 32, 96, 64 }, "file: tensors 'a' and 'c' overlap: the file is damaged" },
            { { 64, 0, 0 }, "overlap" },
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct buf b = { 0 };
            start(&b, 3, 0);
            tensor(&b, "a", QUANT_F32, 9, 1, cases[i].at[0]);
            tensor(&b, "b", QUANT_F32, 8, 1, cases[i].at[1]);
            tensor(&b, "c", QUANT_F32, 1, 1, cases[i].at[2]);
            pad(&b, 32), zeros(&b, 128);
            CHECK_MSG(strstr(verdict(&b), cases[i].want), "case %zu: %s", i, err.text);
        }
    }
}

static void test_large(void)
{
    TEST("a header that moves while it grows keeps its names and values")
    {
        enum { N = 200, HUGE_BYTES = 24 << 20 };
        struct buf b = { 0 };
        struct gguf g = { 0 };
        char name[32];
        start(&b, N, N + 2);
        for (uint32_t i = 0; i < N; i++) {
            snprintf(name, sizeof name, "before.%u", i);
            key_u32(&b, name, i);
        }
        key(&b, "huge", GGUF_ARRAY), array(&b, GGUF_U8, HUGE_BYTES), zeros(&b, HUGE_BYTES - 1),
            u8(&b, 7);
        key_u32(&b, "after", 8);
        for (uint32_t i = 0; i < N; i++) {
            snprintf(name, sizeof name, "tensor.%u", i);
            tensor(&b, name, QUANT_F32, 1 + i, 1, 1024 * i);
        }
        pad(&b, 32), zeros(&b, 1024 * N);
        CHECK_MSG(open_bytes(&g, b.data, b.n) == BZ_OK, "%s", err.text);
        int64_t last = 0;
        const struct gguf_kv *huge = gguf_find(&g, "huge");
        CHECK(huge && gguf_at_i64(huge, HUGE_BYTES - 1, &last) && last == 7);
        CHECK(has_i64(&g, "after", 8) && g.n_kv == N + 2 && g.n_tensors == N);
        for (uint32_t i = 0; i < N; i++) {
            snprintf(name, sizeof name, "before.%u", i);
            CHECK(has_i64(&g, name, i));
            snprintf(name, sizeof name, "tensor.%u", i);
            CHECK(gguf_tensor_find(&g, name) && gguf_tensor_find(&g, name)->ne[0] == 1 + i);
        }
        gguf_close(&g);
        buf_free(&b);
    }
}

int main(void)
{
    mkdir("build", 0777);
    mkdir("build/tmp", 0777);
    test_values();
    test_lenient();
    test_cut();
    test_start();
    test_keys();
    test_tensors();
    test_large();
    free_copies();
    return check_done();
}
