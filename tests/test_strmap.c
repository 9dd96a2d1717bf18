/* test_strmap.c - the string table against a plain list. */
#include "base/strmap.h"

#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"

#define N 5000

static char keys[N][12];

/* Seconds of the processor until a table holds the keys: the least of three runs. */
static double fill_time(uint64_t (*texts)[2], size_t n)
{
    double best = 1e9;
    for (int run = 0; run < 3; run++) {
        struct strmap m;
        clock_t start = clock();
        CHECK(strmap_init(&m, n));
        for (size_t i = 0; i < n; i++)
            CHECK(strmap_add(&m, (struct str) { (const char *)texts[i], 16 }, (uint32_t)i));
        double took = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (took < best) best = took;
        strmap_free(&m);
    }
    return best;
}

int main(void)
{
    struct strmap m = { 0 };
    uint32_t value;

    TEST("an empty map finds nothing and can be freed")
    {
        CHECK(!strmap_find(&m, str_of("x"), &value));
        strmap_free(&m);
    }

    TEST("every key is found with its own value, and no other")
    {
        struct rng rng = { 1 };
        CHECK(strmap_init(&m, N));
        for (uint32_t i = 0; i < N; i++) { /* lengths 1 to 11, bytes of every kind, no two alike */
            snprintf(keys[i], sizeof keys[i], "%x", (unsigned)i);
            size_t n = strlen(keys[i]), extra = rng_below(&rng, (uint32_t)(11 - n));
            for (size_t k = 0; k < extra; k++) keys[i][n + k] = (char)(128 + rng_below(&rng, 128));
            CHECK(strmap_add(&m, (struct str) { keys[i], n + extra }, i * 3));
        }
        for (uint32_t i = 0; i < N; i++) {
            CHECK(strmap_find(&m, str_of(keys[i]), &value) && value == i * 3);
            struct str longer = { keys[i], strlen(keys[i]) + 1 }; /* with its NUL */
            CHECK(!strmap_find(&m, longer, &value));
        }
    }

    TEST("many keys at once are added as each by itself, the first of two alike stays")
    {
        struct strmap many;
        struct str some[100];
        uint32_t values[100];
        for (uint32_t i = 0; i < 100; i++) { /* the last twenty are the first once more */
            some[i] = i % 80 ? str_of(keys[i % 80 * 7]) : (struct str) { NULL, 0 };
            values[i] = i;
        }
        CHECK(strmap_init(&many, 100));
        CHECK(strmap_add_many(&many, some, values, 100) == 80);
        for (uint32_t i = 0; i < 100; i++)
            CHECK(strmap_find(&many, some[i], &value) && value == i % 80);
        CHECK(!strmap_find(&many, str_of(keys[1]), &value));
        strmap_free(&many);
    }

    TEST("keys made to meet in one slot cost what others cost")
    {
        /* The last of their 16 bytes make the hash of Bezel 1.0, which had no key, equal. */
        enum { MANY = 40000 };
        static uint64_t crafted[MANY][2], plain[MANY][2];
        for (uint64_t i = 0; i < MANY; i++) {
            uint64_t h = (16 * 0x9e3779b97f4a7c15u ^ i) * 0x9e3779b97f4a7c15u;
            crafted[i][0] = plain[i][0] = i;
            crafted[i][1] = h ^ h >> 32;
            plain[i][1] = 1;
        }
        double crafted_s = fill_time(crafted, MANY), plain_s = fill_time(plain, MANY);
        CHECK_MSG(crafted_s < 20 * plain_s + 0.1, "%.3f s, others take %.3f", crafted_s, plain_s);
    }

    TEST("the first value of a key stays")
    {
        CHECK(!strmap_add(&m, str_of(keys[7]), 99));
        CHECK(strmap_find(&m, str_of(keys[7]), &value) && value == 21);
        strmap_free(&m);
    }

    TEST("the empty string is a key like any other")
    {
        CHECK(strmap_init(&m, 1));
        CHECK(!strmap_find(&m, (struct str) { 0 }, &value));
        CHECK(strmap_add(&m, (struct str) { 0 }, 5));
        CHECK(strmap_find(&m, str_of(""), &value) && value == 5);
        strmap_free(&m);
    }

    TEST("room for n keys is room for n keys, at every n")
    {
        for (uint32_t n = 0; n < 200; n++) {
            CHECK(strmap_init(&m, n));
            for (uint32_t i = 0; i < n; i++) strmap_add(&m, str_of(keys[i]), i);
            CHECK(m.used == n && !strmap_find(&m, str_of("no such key"), &value));
            strmap_free(&m);
        }
    }

    TEST("memory that cannot be had is reported")
    {
        mem_fail_at(1);
        CHECK(!strmap_init(&m, 10));
        mem_fail_at(0);
        CHECK(!strmap_init(&m, SIZE_MAX / 8));
        CHECK(mem_live() == 0);
    }
    return check_done();
}
