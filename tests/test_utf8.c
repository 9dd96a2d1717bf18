/* test_utf8.c - strict UTF-8, checked against a definition by table of ranges. */
#include "base/utf8.h"

#include "check.h"

static int is_scalar(uint32_t cp)
{
    return cp <= 0x10ffff && !(cp >= 0xd800 && cp <= 0xdfff);
}

int main(void)
{
    TEST("every scalar value survives encode and decode, in its shortest form")
    {
        int bad = 0;
        for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
            if (!is_scalar(cp)) continue;
            char z[4];
            size_t used, n = utf8_encode(cp, z);
            size_t want = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
            bad += n != want || utf8_len((unsigned char)z[0]) != n;
            bad += utf8_decode(z, n, &used) != cp || used != n;
            for (size_t cut = 1; cut < n; cut++)
                bad += utf8_decode(z, cut, &used) != 0xfffd || used != 1;
        }
        CHECK(bad == 0);
    }

    TEST("what is not the shortest form of a scalar value is U+FFFD and one byte")
    {
        /* All three-byte strings and all four-byte strings with these tails: a decode that is not
         * an error must encode back to the very same bytes. */
        static const unsigned char tails[] = { 0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff };
        int bad = 0;
        for (uint32_t i = 0; i < 1u << 24; i += i < 1u << 23 ? 257 : 1) {
            char z[4] = { (char)(i >> 16), (char)(i >> 8), (char)i, (char)tails[i % 6] };
            char back[4];
            size_t used;
            uint32_t cp = utf8_decode(z, 4, &used);
            if (used == 1 && (unsigned char)z[0] >= 0x80) {
                bad += cp != 0xfffd;
            } else {
                bad += !is_scalar(cp) || utf8_encode(cp, back) != used;
                bad += memcmp(back, z, used) != 0;
            }
        }
        CHECK(bad == 0);
    }

    TEST("overlong forms, surrogates and values past U+10FFFF are refused")
    {
        static const char *const wrong[] = { "\xc0\x80",
                                             "\xc1\xbf",
                                             "\xe0\x9f\xbf",
                                             "\xed\xa0\x80",
                                             "\xed\xbf\xbf",
                                             "\xf0\x8f\xbf\xbf",
                                             "\xf4\x90\x80\x80",
                                             "\xf5\x80\x80\x80",
                                             "\x80",
                                             "\xff" };
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            size_t used;
            CHECK(utf8_decode(wrong[i], strlen(wrong[i]), &used) == 0xfffd && used == 1);
        }
    }
    return check_done();
}
