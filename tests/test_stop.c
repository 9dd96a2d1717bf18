/* test_stop.c - the text before the first stop string, whatever the pieces it comes in. */
#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "text/stop.h"

enum { MAX_STRINGS = 4 };

/* What the filter must do, by looking at whole texts only. */
struct truth {
    size_t end; /* bytes read when the first stop string is complete; SIZE_MAX: never */
    size_t cut; /* where it begins */
};

static struct truth find_truth(const char *text, const char *const *strings, size_t n_strings)
{
    for (size_t end = 1; end <= strlen(text); end++)
        for (size_t at = 0; at < end; at++)
            for (size_t i = 0; i < n_strings; i++)
                if (strlen(strings[i]) == end - at && memcmp(text + at, strings[i], end - at) == 0)
                    return (struct truth) { end, at };
    return (struct truth) { SIZE_MAX, strlen(text) };
}

/* The longest end of text[0, n) that some string begins with, without being it. */
static size_t must_hold(const char *text, size_t n, const char *const *strings, size_t n_strings)
{
    for (size_t k = n; k > 0; k--)
        for (size_t i = 0; i < n_strings; i++)
            if (strlen(strings[i]) > k && memcmp(text + n - k, strings[i], k) == 0) return k;
    return 0;
}

/* Feed text cut after each byte i where bit i of `cuts` is set. */
static void check_cut(const char *text, const char *const *strings, size_t n_strings, uint64_t cuts)
{
    struct stop_filter f = { .strings = strings, .n_strings = n_strings };
    struct buf out = { 0 };
    struct truth truth = find_truth(text, strings, n_strings);
    size_t n = strlen(text), from = 0;
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && !(cuts >> (i % 64) & 1)) continue;
        bool stopped = stop_feed(&f, (struct str) { text + from, i + 1 - from }, &out);
        from = i + 1;
        ok &= stopped == (from >= truth.end);
        size_t want = stopped ? truth.cut : from - must_hold(text, from, strings, n_strings);
        ok &= out.n == want;
    }
    stop_end(&f, &out);
    ok &= out.n == truth.cut && (out.n == 0 || memcmp(out.data, text, out.n) == 0);
    CHECK_MSG(ok, "\"%s\" cut %llx: got \"%.*s\"", text, (unsigned long long)cuts, (int)out.n,
              out.n ? out.data : "");
    buf_free(&out);
    stop_free(&f);
}

static void check_every_cut(const char *text, const char *const *strings, size_t n_strings)
{
    size_t n = strlen(text);
    for (uint64_t cuts = 0; cuts < (uint64_t)1 << (n ? n - 1 : 0); cuts++)
        check_cut(text, strings, n_strings, cuts);
}

static void random_text(struct rng *rng, char *z, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) z[i] = (char)('a' + rng_below(rng, 2));
    z[n] = 0;
}

int main(void)
{
    int64_t live = mem_live();
    TEST("a stop string is found across every cut of the text")
    {
        check_every_cut("hello STOP rest", (const char *[]) { "STOP" }, 1);
        check_every_cut("STOP", (const char *[]) { "STOP" }, 1);
        check_every_cut("SSTOSTOP", (const char *[]) { "STOP" }, 1);
        check_every_cut("no such thing", (const char *[]) { "STOP" }, 1);
        check_every_cut("ends with STO", (const char *[]) { "STOP" }, 1);
    }
    TEST("a string that overlaps itself is found at its first place")
    {
        check_every_cut("aabaabaaab", (const char *[]) { "aabaaa" }, 1);
        check_every_cut("aaaaaaaa", (const char *[]) { "aaa" }, 1);
        check_every_cut("abababac", (const char *[]) { "ababac" }, 1);
    }
    TEST("of several strings the one complete first counts, of those that end together the longest")
    {
        check_every_cut("xxabcdyy", (const char *[]) { "abcd", "bc" }, 2);
        check_every_cut("xxabcdyy", (const char *[]) { "bc", "abcd" }, 2);
        check_every_cut("xxabcdyy", (const char *[]) { "cd", "abcd", "d" }, 3);
        check_every_cut("xxabyy", (const char *[]) { "zz", "abc", "yy" }, 3);
    }
    TEST("empty strings and no strings stop nothing and hold nothing back")
    {
        check_every_cut("some text", (const char *[]) { "" }, 1);
        check_every_cut("some text", (const char *[]) { "", "te", "" }, 3);
        check_every_cut("some text", NULL, 0);
        check_every_cut("", (const char *[]) { "a" }, 1);
    }
    TEST("random strings in random texts")
    {
        struct rng rng = { 11 };
        for (int round = 0; round < 3000; round++) {
            char text[41], words[MAX_STRINGS][8];
            const char *strings[MAX_STRINGS];
            random_text(&rng, text, rng_below(&rng, 40));
            size_t n_strings = rng_below(&rng, MAX_STRINGS + 1);
            for (size_t i = 0; i < n_strings; i++) {
                random_text(&rng, words[i], rng_below(&rng, 7));
                strings[i] = words[i];
            }
            for (int k = 0; k < 4; k++) check_cut(text, strings, n_strings, rng_next(&rng));
            check_cut(text, strings, n_strings, UINT64_MAX);
            check_cut(text, strings, n_strings, 0);
        }
    }
    TEST("after the stop everything is swallowed")
    {
        struct stop_filter f = { .strings = (const char *[]) { "ab" }, .n_strings = 1 };
        struct buf out = { 0 };
        CHECK(stop_feed(&f, str_of("xab"), &out));
        CHECK(stop_feed(&f, str_of("more"), &out));
        stop_end(&f, &out);
        CHECK_STR(out.data, "x");
        buf_free(&out);
        stop_free(&f);
    }
    TEST("bytes that are not text pass through")
    {
        struct stop_filter f = { .strings = (const char *[]) { "\xff\x01" }, .n_strings = 1 };
        struct buf out = { 0 };
        CHECK(!stop_feed(&f, (struct str) { "a\0b\xff", 4 }, &out) && out.n == 3);
        CHECK(stop_feed(&f, (struct str) { "\x01z", 2 }, &out) && out.n == 3);
        CHECK(memcmp(out.data, "a\0b", 3) == 0);
        buf_free(&out);
        stop_free(&f);
    }
    TEST("short memory shows in the output's flag and leaks nothing")
    {
        for (uint64_t k = 1; k <= 2; k++) {
            struct stop_filter f = { .strings = (const char *[]) { "ab" }, .n_strings = 1 };
            struct buf out = { 0 };
            mem_fail_at(k);
            stop_feed(&f, str_of("xyz"), &out);
            mem_fail_at(0);
            stop_end(&f, &out);
            CHECK(out.failed);
            buf_free(&out);
            stop_free(&f);
        }
    }
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
