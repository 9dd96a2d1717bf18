/* Safetensors headers: what is in range is listed, everything else is a sentence. */
#include "io/safetensors.h"

#include <inttypes.h>

#include "base/rng.h"
#include "check.h"

/* A file: length, header text, n_data bytes counting up. */
static struct buf make(const char *header, size_t n_data)
{
    struct buf b = { 0 };
    uint64_t n = strlen(header);
    for (int i = 0; i < 8; i++) buf_putc(&b, (char)(n >> (8 * i)));
    buf_puts(&b, header);
    for (size_t i = 0; i < n_data; i++) buf_putc(&b, (char)i);
    return b;
}

static enum bz_status open_bytes(struct safetensors *s, const void *p, size_t n, struct bz_err *err)
{
    struct source src;
    enum bz_status st = source_open_memory(&src, "mem.safetensors", p, n, err);
    return st ? st : safetensors_open(s, &src, err);
}

static enum bz_status open_text(struct safetensors *s, const char *header, size_t n_data,
                                struct bz_err *err)
{
    struct buf b = make(header, n_data);
    enum bz_status st = open_bytes(s, b.data, b.n, err);
    /* The source borrows the bytes; the header's texts must not. */
    if (b.data) memset(b.data, 0xee, b.n);
    buf_free(&b);
    return st;
}

static const char two[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                          "\"b\":{\"dtype\":\"BF16\",\"shape\":[3,2],\"data_offsets\":[8,20]},"
                          "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   ";

static void check_bad(const char *header, size_t n_data, const char *word)
{
    struct safetensors s = { .n_tensors = 77 };
    struct bz_err err = { "" };
    enum bz_status st = open_text(&s, header, n_data, &err);
    CHECK_MSG(st == BZ_ERR_FORMAT, "%s: status %d", header, (int)st);
    CHECK_MSG(strstr(err.text, word) != NULL, "%s: %s", header, err.text);
    CHECK(strstr(err.text, "mem.safetensors") != NULL);
    CHECK(s.n_tensors == 77);
}

static void test_good(void)
{
    struct safetensors s;
    struct bz_err err = { "" };
    TEST("tensors are listed with absolute offsets, metadata is not a tensor")
    {
        CHECK_MSG(open_text(&s, two, 20, &err) == BZ_OK, "%s", err.text);
        CHECK(s.n_tensors == 2);
        const struct st_tensor *a = safetensors_find(&s, str_of("a"));
        const struct st_tensor *b = safetensors_find(&s, str_of("b"));
        uint64_t base = 8 + strlen(two);
        CHECK(a && a->dtype == ST_F32 && a->n_dims == 1 && a->shape[0] == 2 && a->shape[1] == 1);
        CHECK(a && a->offset == base && a->n_bytes == 8);
        CHECK(b && b->dtype == ST_BF16 && b->n_dims == 2 && b->shape[0] == 3 && b->shape[1] == 2);
        CHECK(b && b->offset == base + 8 && b->n_bytes == 12);
        CHECK(b && str_is(b->dtype_name, "BF16"));
        CHECK(!safetensors_find(&s, str_of("__metadata__")));
        CHECK(!safetensors_find(&s, str_of("")));
        safetensors_close(&s);
        safetensors_close(&s); /* a zeroed one is fine too */
    }
    TEST("every dtype has its size, and an unknown one is kept by name")
    {
        static const struct {
            const char *name;
            enum st_dtype dtype;
            unsigned bytes;
        } all[] = { { "F64", ST_F64, 8 },   { "F32", ST_F32, 4 },      { "F16", ST_F16, 2 },
                    { "BF16", ST_BF16, 2 }, { "I64", ST_I64, 8 },      { "I32", ST_I32, 4 },
                    { "I16", ST_I16, 2 },   { "I8", ST_I8, 1 },        { "U8", ST_U8, 1 },
                    { "BOOL", ST_BOOL, 1 }, { "F8_E4M3", ST_OTHER, 1 } };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            char text[200];
            snprintf(text, sizeof text,
                     "{\"t\":{\"dtype\":\"%s\",\"shape\":[3,1,5],\"data_offsets\":[0,%u]}}",
                     all[i].name, 15 * all[i].bytes);
            CHECK_MSG(open_text(&s, text, 15 * all[i].bytes, &err) == BZ_OK, "%s", err.text);
            CHECK(s.n_tensors == 1 && s.tensors[0].dtype == all[i].dtype);
            CHECK(str_is(s.tensors[0].dtype_name, all[i].name));
            safetensors_close(&s);
        }
    }
    TEST("a scalar, an empty tensor, eight dimensions and no tensors at all are fine")
    {
        CHECK(open_text(&s, "{\"t\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4,
                        &err) == BZ_OK);
        CHECK(s.tensors[0].n_dims == 0 && s.tensors[0].n_bytes == 4);
        safetensors_close(&s);
        CHECK(open_text(&s, "{\"t\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[4,4]}}", 4,
                        &err) == BZ_OK);
        CHECK(s.tensors[0].n_bytes == 0);
        safetensors_close(&s);
        CHECK(open_text(&s,
                        "{\"t\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,2],"
                        "\"data_offsets\":[0,2]}}",
                        2, &err) == BZ_OK);
        CHECK(s.tensors[0].n_dims == 8 && s.tensors[0].shape[7] == 2);
        safetensors_close(&s);
        CHECK(open_text(&s, "{}", 0, &err) == BZ_OK);
        CHECK(s.n_tensors == 0 && !safetensors_find(&s, str_of("t")));
        safetensors_close(&s);
    }
}

/* A file so large that only the limit can refuse its header. */
static enum bz_status read_over(void *ctx, uint64_t offset, void *dst, size_t n, struct bz_err *err)
{
    (void)ctx, (void)err;
    uint8_t prefix[8] = { 0 };
    uint64_t over = SAFETENSORS_MAX_HEADER + 1u;
    for (int i = 0; i < 8; i++) prefix[i] = (uint8_t)(over >> (8 * i));
    memset(dst, ' ', n);
    if (offset == 0 && n >= 8) memcpy(dst, prefix, 8);
    return BZ_OK;
}

static void test_bad_headers(void)
{
    TEST("ranges and shapes that do not fit are errors")
    {
#define T(dtype, shape, range)                                                                     \
    "{\"t\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" range "}}"
        check_bad(T("F32", "[2]", "[0,9]"), 8, "data section");
        check_bad(T("F32", "[2]", "[8,0]"), 8, "data section");
        check_bad(T("F32", "[2]", "[1,9]"), 8, "data section");
        check_bad(T("F32", "[2]", "[0,7]"), 8, "needs 8 bytes");
        check_bad(T("F32", "[3]", "[0,8]"), 8, "needs 12 bytes");
        check_bad(T("F32", "[1]", "[0,8]"), 8, "needs 4 bytes");
        check_bad(T("F32", "[4294967296,4294967296,4]", "[0,8]"), 8, "impossible");
        check_bad(T("F32", "[4611686018427387904,4]", "[0,8]"), 8, "impossible");
        check_bad(T("F32", "[-1]", "[0,8]"), 8, "not a size");
        check_bad(T("F32", "[1.5]", "[0,8]"), 8, "not a size");
        check_bad(T("F32", "[\"2\"]", "[0,8]"), 8, "not a size");
        check_bad(T("F32", "[99999999999999999999]", "[0,8]"), 8, "not a size");
        check_bad(T("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8, "dimensions");
        check_bad(T("F32", "2", "[0,8]"), 8, "no shape");
        check_bad(T("F32", "[2]", "[0]"), 8, "offsets");
        check_bad(T("F32", "[2]", "[0,8,8]"), 8, "offsets");
        check_bad(T("F32", "[2]", "[-8,0]"), 8, "offsets");
        check_bad(T("F32", "[2]", "[0,18446744073709551615]"), 8, "offsets");
        check_bad(T("F8_E4M3", "[2]", "[0,9]"), 8, "data section");
#undef T
    }
    TEST("headers of the wrong form are errors")
    {
        check_bad("[]", 0, "object");
        check_bad("{\"t\":3}", 0, "dtype");
        check_bad("{\"t\":{}}", 0, "dtype");
        check_bad("{\"t\":{\"dtype\":7,\"shape\":[],\"data_offsets\":[0,0]}}", 0, "dtype");
        check_bad("{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,0]}}", 0, "shape");
        check_bad("{\"t\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, "offsets");
        check_bad("{\"t\":", 0, "JSON");
        check_bad("", 0, "JSON");
        check_bad("{\"t\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
                  "\"t\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}",
                  1, "twice");
    }
    TEST("a length past the file or past the limit is an error")
    {
        struct safetensors s;
        struct bz_err err = { "" };
        static const uint8_t big[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}' };
        static const uint8_t off_by_one[] = { 3, 0, 0, 0, 0, 0, 0, 0, '{', '}' };
        CHECK(open_bytes(&s, big, sizeof big, &err) == BZ_ERR_FORMAT);
        CHECK(strstr(err.text, "18446744073709551615"));
        CHECK(open_bytes(&s, off_by_one, sizeof off_by_one, &err) == BZ_ERR_FORMAT);
        struct source src = { .size = (uint64_t)1 << 40, .read = read_over };
        src.name = mem_copy_str("huge", 4);
        CHECK(safetensors_open(&s, &src, &err) == BZ_ERR_FORMAT);
        CHECK(strstr(err.text, "would be 100000001 bytes"));
    }
}

static void test_hostile(void)
{
    struct buf good = make(two, 20);
    struct safetensors s;
    struct bz_err err;
    TEST("no prefix of a file opens")
    {
        for (size_t n = 0; n < good.n; n++)
            CHECK_MSG(open_bytes(&s, good.data, n, &err) == BZ_ERR_FORMAT, "%zu bytes", n);
    }
    TEST("a damaged byte never breaks a promise about ranges")
    {
        struct rng r = { 3 };
        for (int i = 0; i < 3000; i++) {
            struct buf bad = { 0 };
            buf_put(&bad, good.data, good.n);
            bad.data[rng_below(&r, (uint32_t)bad.n)] = (char)rng_next(&r);
            if (open_bytes(&s, bad.data, bad.n, &err) == BZ_OK) {
                for (uint64_t k = 0; k < s.n_tensors; k++)
                    CHECK(s.tensors[k].offset + s.tensors[k].n_bytes <= bad.n);
                safetensors_close(&s);
            }
            buf_free(&bad);
        }
    }
    TEST("any failed allocation is reported and nothing leaks")
    {
        int64_t live = mem_live();
        for (uint64_t k = 1;; k++) {
            mem_fail_at(k);
            enum bz_status st = open_bytes(&s, good.data, good.n, &err);
            mem_fail_at(0);
            if (st == BZ_OK) {
                safetensors_close(&s);
                CHECK(k > 4);
                break;
            }
            CHECK(st == BZ_ERR_MEMORY);
            CHECK(mem_live() == live);
        }
        CHECK(mem_live() == live);
    }
    buf_free(&good);
}

int main(void)
{
    test_good();
    test_bad_headers();
    test_hostile();
    CHECK(mem_live() == 0);
    return check_done();
}
