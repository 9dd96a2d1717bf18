/* Tests of base/json.h. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/rng.h"
#include "check.h"

static struct bz_err err;

static enum bz_status parse_n(struct json **out, const char *p, size_t n, struct arena *a)
{
    /* An exact copy on the heap, so that a sanitizer sees a read past the end. */
    char *copy = malloc(n ? n : 1);
    if (n) memcpy(copy, p, n);
    err.text[0] = 0;
    enum bz_status st = json_parse(out, (struct str) { copy, n }, a, &err);
    free(copy);
    return st;
}

/* Parse and print again: the compact form, or the error sentence. */
static const char *again(const char *text)
{
    static char out[4096];
    struct arena a = { 0 };
    struct buf b = { 0 };
    struct json *j = NULL;
    if (parse_n(&j, text, strlen(text), &a)) {
        snprintf(out, sizeof out, "%s", err.text);
    } else {
        json_put(&b, j);
        snprintf(out, sizeof out, "%s", b.data);
    }
    buf_free(&b);
    arena_free(&a);
    return out;
}

static const char *f64_text(double d)
{
    static char out[64];
    struct buf b = { 0 };
    json_put_f64(&b, d);
    snprintf(out, sizeof out, "%s", b.data);
    buf_free(&b);
    return out;
}

static const char *f32_text(float f)
{
    static char out[64];
    struct buf b = { 0 };
    json_put_f32(&b, f);
    snprintf(out, sizeof out, "%s", b.data);
    buf_free(&b);
    return out;
}

/* The number that our own reader makes of a text. */
static double number_of(const char *text)
{
    struct arena a = { 0 };
    struct json *j = NULL;
    double d = parse_n(&j, text, strlen(text), &a) ? NAN : j->number;
    arena_free(&a);
    return d;
}

static bool same_bits(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n) == 0;
}

static void test_values(void)
{
    TEST("values of every kind come back as they were")
    {
        CHECK_STR(again(" null "), "null");
        CHECK_STR(again("true"), "true");
        CHECK_STR(again("false"), "false");
        CHECK_STR(again("\t[ ]\r\n"), "[]");
        CHECK_STR(again("{ }"), "{}");
        CHECK_STR(again("\"\""), "\"\"");
        CHECK_STR(again("[1 , -2,0 ,3.50,1E+3,-0]"), "[1,-2,0,3.50,1E+3,-0]");
        CHECK_STR(again("{\"b\":1,\"a\":{\"c\":[null,{}]},\"b\":2}"),
                  "{\"b\":1,\"a\":{\"c\":[null,{}]},\"b\":2}");
    }

    TEST("integers stay integers up to 64 bits and become floats beyond")
    {
        static const struct {
            const char *text;
            enum json_type type;
            int64_t integer;
        } cases[] = {
            { "0", JSON_INT, 0 },
            { "-0", JSON_INT, 0 },
            { "9223372036854775807", JSON_INT, INT64_MAX },
            { "-9223372036854775808", JSON_INT, INT64_MIN },
            { "9223372036854775808", JSON_FLOAT, 0 },
            { "-9223372036854775809", JSON_FLOAT, 0 },
            { "123456789012345678901234567890", JSON_FLOAT, 0 },
            { "3.0", JSON_FLOAT, 0 },
            { "3e0", JSON_FLOAT, 0 },
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct arena a = { 0 };
            struct json *j = NULL;
            CHECK(parse_n(&j, cases[i].text, strlen(cases[i].text), &a) == BZ_OK);
            CHECK_MSG(j->type == cases[i].type, "%s", cases[i].text);
            CHECK(j->integer == cases[i].integer);
            CHECK(j->number == strtod(cases[i].text, NULL));
            CHECK(str_is(j->text, cases[i].text));
            arena_free(&a);
        }
    }

    TEST("members are found by name, the last one wins, and anything absent is NULL")
    {
        const char *text = "{\"a\":1,\"s\":\"x\",\"a\":2,\"\":[4,5,6],\"n\":null,\"e\":\"\"}";
        struct arena a = { 0 };
        struct json *j = NULL;
        CHECK(parse_n(&j, text, strlen(text), &a) == BZ_OK);
        CHECK(j->n == 6);
        CHECK(json_get(j, "a")->integer == 2);
        CHECK(json_get(j, "")->n == 3);
        CHECK(json_at(json_get(j, ""), 2)->integer == 6);
        CHECK(json_at(json_get(j, ""), 3) == NULL);
        CHECK(json_at(j, 0)->integer == 1);
        CHECK(json_get(j, "b") == NULL && json_get(NULL, "b") == NULL);
        CHECK(json_get(json_get(j, "s"), "a") == NULL);
        CHECK(json_at(NULL, 0) == NULL && json_at(json_get(j, "a"), 0) == NULL);
        CHECK(str_is(json_get_str(j, "s"), "x"));
        CHECK(json_get_str(j, "e").p != NULL && json_get_str(j, "e").n == 0);
        CHECK(json_get_str(j, "a").p == NULL && json_get_str(j, "zzz").p == NULL);
        arena_free(&a);
    }
}

static void test_strings(void)
{
    TEST("escapes are resolved on the way in and only needed ones made on the way out")
    {
        CHECK_STR(again("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
        CHECK_STR(again("\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\""),
                  "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
        CHECK_STR(again("\"\\u0000\\u001f\\u007f\""), "\"\\u0000\\u001f\x7f\"");
        CHECK_STR(again("\"\xf4\x8f\xbf\xbf\xef\xbf\xbd\""), "\"\xf4\x8f\xbf\xbf\xef\xbf\xbd\"");
    }

    TEST("half a surrogate pair becomes U+FFFD and what follows it survives")
    {
        CHECK_STR(again("\"\\ud83d\""), "\"\xef\xbf\xbd\"");
        CHECK_STR(again("\"\\ude00x\""), "\"\xef\xbf\xbdx\"");
        CHECK_STR(again("\"\\ude00\\ude00\""), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
        CHECK_STR(again("\"\\ud83d\\n\""), "\"\xef\xbf\xbd\\n\"");
        CHECK_STR(again("\"\\ud83d\\u0041\""), "\"\xef\xbf\xbd"
                                               "A\"");
        CHECK_STR(again("\"\\ud83d\\ud83d\\ude00\""), "\"\xef\xbf\xbd\xf0\x9f\x98\x80\"");
    }

    TEST("bytes that are not UTF-8 are written as U+FFFD, one each")
    {
        struct buf b = { 0 };
        json_put_string(&b, str_of("a\xff\xc3(\xe2\x82"));
        CHECK_STR(b.data, "\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\"");
        buf_free(&b);
        json_put_string(&b, (struct str) { NULL, 0 });
        CHECK_STR(b.data, "\"\"");
        buf_free(&b);
    }

    TEST("any text survives the way out and in")
    {
        struct rng r = { 11 };
        for (int round = 0; round < 3000; round++) {
            static const char *const piece[] = { "a",        "\"",           "\\",
                                                 "\n",       "\x01",         "\x7f",
                                                 "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
            struct buf text = { 0 }, lit = { 0 };
            struct arena a = { 0 };
            struct json *j = NULL;
            for (uint32_t n = rng_below(&r, 20); n; n--) {
                uint32_t k = rng_below(&r, 10);
                if (k == 9) buf_putc(&text, 0);
                else buf_puts(&text, piece[k]);
            }
            json_put_string(&lit, buf_str(&text));
            CHECK(parse_n(&j, lit.data, lit.n, &a) == BZ_OK);
            CHECK(j->type == JSON_STRING && str_eq(j->text, buf_str(&text)));
            arena_free(&a);
            buf_free(&text);
            buf_free(&lit);
        }
    }
}

static void test_errors(void)
{
    TEST("what the grammar forbids is refused with the byte where it stands")
    {
        static const struct {
            const char *text;
            const char *want;
        } cases[] = {
            { "", "not valid JSON: a value is missing at byte 0" },
            { "  ", "not valid JSON: a value is missing at byte 2" },
            { "[1,]", "not valid JSON: not a value at byte 3" },
            { "[1 2]", "not valid JSON: an array without ',' or ']' at byte 3" },
            { "[1", "not valid JSON: an array without ',' or ']' at byte 2" },
            { "{\"a\":1,}", "not valid JSON: a member without a quoted name at byte 7" },
            { "{\"a\" 1}", "not valid JSON: a name without ':' at byte 5" },
            { "{\"a\":}", "not valid JSON: not a value at byte 5" },
            { "{\"a\":1", "not valid JSON: an object without ',' or '}' at byte 6" },
            { "{a:1}", "not valid JSON: a member without a quoted name at byte 1" },
            { "nul", "not valid JSON: an unknown word at byte 0" },
            { "True", "not valid JSON: not a value at byte 0" },
            { "NaN", "not valid JSON: not a value at byte 0" },
            { "truee", "not valid JSON: something after the value at byte 4" },
            { "1 2", "not valid JSON: something after the value at byte 2" },
            { "-", "not valid JSON: a minus without a number at byte 1" },
            { "+1", "not valid JSON: not a value at byte 0" },
            { "01", "not valid JSON: a number that starts with 0 at byte 2" },
            { "-012", "not valid JSON: a number that starts with 0 at byte 4" },
            { ".5", "not valid JSON: not a value at byte 0" },
            { "1.", "not valid JSON: a decimal point without digits at byte 2" },
            { "1.e3", "not valid JSON: a decimal point without digits at byte 2" },
            { "1e", "not valid JSON: an exponent without digits at byte 2" },
            { "1e+", "not valid JSON: an exponent without digits at byte 3" },
            { "1e999", "not valid JSON: a number that is too large at byte 5" },
            { "0x10", "not valid JSON: something after the value at byte 1" },
            { "\"a", "not valid JSON: a string without an end at byte 2" },
            { "\"a\\", "not valid JSON: an unknown escape at byte 3" },
            { "\"\\x\"", "not valid JSON: an unknown escape at byte 2" },
            { "\"\\u12g4\"", "not valid JSON: \\u without four hexadecimal digits at byte 2" },
            { "\"\\u123", "not valid JSON: \\u without four hexadecimal digits at byte 2" },
            { "\"a\nb\"", "not valid JSON: a control character in a string at byte 2" },
            { "\"\xff\"", "not valid JSON: a byte that is not UTF-8 at byte 1" },
            { "\"ab\xc0\x80\"", "not valid JSON: a byte that is not UTF-8 at byte 3" },
            { "\"\xed\xa0\x80\"", "not valid JSON: a byte that is not UTF-8 at byte 1" },
            { "\"\xe2\x82", "not valid JSON: a byte that is not UTF-8 at byte 1" },
            { "\xef\xbb\xbf{}", "not valid JSON: not a value at byte 0" },
            { "/**/1", "not valid JSON: not a value at byte 0" },
            { "'a'", "not valid JSON: not a value at byte 0" },
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            CHECK_STR(again(cases[i].text), cases[i].want);
        struct arena a = { 0 };
        struct json *j = NULL;
        CHECK(parse_n(&j, "1\0", 2, &a) == BZ_ERR_FORMAT && j == NULL);
        CHECK(parse_n(&j, "\"\0\"", 3, &a) == BZ_ERR_FORMAT && j == NULL);
        arena_free(&a);
    }

    TEST("128 levels are read and 129 are refused")
    {
        for (int kind = 0; kind < 2; kind++) {
            for (size_t depth = 127; depth <= 129; depth++) {
                struct buf b = { 0 };
                struct arena a = { 0 };
                struct json *j = NULL;
                for (size_t i = 0; i < depth; i++) buf_puts(&b, kind ? "{\"a\":" : "[");
                if (kind) buf_puts(&b, "1");
                for (size_t i = 0; i < depth; i++) buf_puts(&b, kind ? "}" : "]");
                enum bz_status st = parse_n(&j, b.data, b.n, &a);
                CHECK(st == (depth <= 128 ? BZ_OK : BZ_ERR_FORMAT));
                if (st) CHECK(strstr(err.text, "more than 128 levels") != NULL);
                arena_free(&a);
                buf_free(&b);
            }
        }
        struct buf b = { 0 };
        for (int i = 0; i < 1000000; i++) buf_putc(&b, '[');
        struct arena a = { 0 };
        struct json *j = NULL;
        CHECK(parse_n(&j, b.data, b.n, &a) == BZ_ERR_FORMAT);
        arena_free(&a);
        buf_free(&b);
    }

    TEST("a document cut anywhere is an error, and so is a failed allocation; nothing leaks")
    {
        const char *text =
            "{\"k\\u00e9\":[1,-2.5e3,true,false,null,\"x\\ud83d\\ude00\",{}],\"z\":[]}";
        int64_t live = mem_live();
        for (size_t n = 0; n < strlen(text); n++) {
            struct arena a = { 0 };
            struct json *j = NULL;
            CHECK(parse_n(&j, text, n, &a) == BZ_ERR_FORMAT);
            arena_free(&a);
        }
        bool whole = false;
        for (uint64_t k = 1; !whole && k < 100; k++) {
            struct arena a = { 0 };
            struct json *j = NULL;
            mem_fail_at(k);
            enum bz_status st = parse_n(&j, text, strlen(text), &a);
            mem_fail_at(0);
            whole = st == BZ_OK;
            CHECK(whole ? k > 1 : st == BZ_ERR_MEMORY && j == NULL);
            arena_free(&a);
        }
        CHECK(whole);
        CHECK(mem_live() == live);
    }
}

static void test_big(void)
{
    TEST("a document of megabytes is read in order")
    {
        enum { N = 200000 };
        struct buf b = { 0 };
        struct arena a = { 0 };
        struct json *j = NULL;
        buf_putc(&b, '[');
        for (int i = 0; i < N; i++)
            buf_printf(&b, "%s{\"id\":%d,\"s\":\"token %d\"}", i ? "," : "", i, i);
        buf_putc(&b, ']');
        CHECK(parse_n(&j, b.data, b.n, &a) == BZ_OK);
        CHECK(j->n == N);
        int64_t i = 0, wrong = 0;
        for (const struct json *c = j->child; c; c = c->next, i++)
            wrong += json_get(c, "id")->integer != i;
        CHECK(i == N && wrong == 0);
        struct buf put = { 0 };
        json_put(&put, j);
        CHECK(str_eq(buf_str(&put), buf_str(&b)));
        buf_free(&put);
        buf_free(&b);
        arena_free(&a);
    }
}

static void test_floats(void)
{
    TEST("floats are printed short and laid out as JavaScript does")
    {
        CHECK_STR(f64_text(0.0), "0");
        CHECK_STR(f64_text(-0.0), "-0");
        CHECK_STR(f64_text(1.0), "1");
        CHECK_STR(f64_text(100.0), "100");
        CHECK_STR(f64_text(0.1), "0.1");
        CHECK_STR(f64_text(-12.75), "-12.75");
        CHECK_STR(f64_text(1e-6), "0.000001");
        CHECK_STR(f64_text(1.5e-7), "1.5e-7");
        CHECK_STR(f64_text(1e20), "100000000000000000000");
        CHECK_STR(f64_text(1e21), "1e+21");
        CHECK_STR(f64_text(0.1 + 0.2), "0.30000000000000004");
        CHECK_STR(f64_text(5e-324), "5e-324");
        CHECK_STR(f64_text(1.7976931348623157e308), "1.7976931348623157e+308");
        CHECK_STR(f64_text(0x1p-957), "8.209073602596753e-289"); /* nearest: ...7525e-289 */
        CHECK_STR(f64_text(NAN), "null");
        CHECK_STR(f64_text(-INFINITY), "null");
        CHECK_STR(f32_text(0.1f), "0.1");
        CHECK_STR(f32_text(1e-6f), "0.000001");
        CHECK_STR(f32_text(16777216.0f), "16777216");
        CHECK_STR(f32_text(3.4028235e38f), "3.4028235e+38");
        CHECK_STR(f32_text(1e-45f), "1e-45");
        CHECK_STR(f32_text(INFINITY), "null");
    }

    TEST("any f64 reads back bit for bit, from 40,000 random patterns")
    {
        int wrong = 0;
        for (uint64_t i = 0; i < 40000; i++) {
            uint64_t bits = rng_at(1, i);
            if (i % 4 == 0) bits &= 0x800fffffffffffff; /* denormals */
            if (i % 4 == 1) bits = (bits & ~(uint64_t)0 << (bits % 52)) | 0x3ff0000000000000;
            double d, back;
            memcpy(&d, &bits, 8);
            if (!isfinite(d)) continue;
            back = number_of(f64_text(d));
            wrong += !same_bits(&d, &back, 8);
        }
        CHECK(wrong == 0);
    }

    TEST("any f32 reads back bit for bit, through double and directly")
    {
        int wrong = 0, longest = 0;
        for (uint64_t i = 0; i < 60000; i++) {
            uint32_t bits = (uint32_t)rng_at(2, i);
            if (i % 4 == 0) bits &= 0x807fffff;
            float f;
            memcpy(&f, &bits, 4);
            if (!isfinite(f)) continue;
            const char *text = f32_text(f);
            float back = (float)number_of(text), direct = strtof(text, NULL);
            wrong += !same_bits(&f, &back, 4) || !same_bits(&f, &direct, 4);
            int digits = 0;
            for (const char *c = text; *c && *c != 'e'; c++) digits += *c >= '0' && *c <= '9';
            if (strchr(text, 'e') && digits > longest) longest = digits;
        }
        CHECK(wrong == 0);
        CHECK(longest <= 9);
    }

    TEST("a locale with another decimal point changes nothing")
    {
        static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8", "C" };
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            setlocale(LC_NUMERIC, names[i]);
            CHECK_STR(f64_text(1234.5), "1234.5");
            CHECK_STR(f32_text(-0.25f), "-0.25");
            CHECK(number_of("1234.5e1") == 12345);
        }
    }

    TEST("a tree made by hand prints its numbers")
    {
        struct buf b = { 0 };
        struct json f = { .type = JSON_FLOAT, .number = 0.5, .key = { "f", 1 } };
        struct json i = { .type = JSON_INT, .integer = INT64_MIN, .key = { "i", 1 }, .next = &f };
        struct json o = { .type = JSON_OBJECT, .child = &i, .n = 2 };
        json_put(&b, &o);
        CHECK_STR(b.data, "{\"i\":-9223372036854775808,\"f\":0.5}");
        buf_free(&b);
    }
}

int main(void)
{
    test_values();
    test_strings();
    test_errors();
    test_big();
    test_floats();
    return check_done();
}
