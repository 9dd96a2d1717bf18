/* Tests of base/sha256.h against the examples that NIST publishes with FIPS 180-4. */
#include <stdint.h>

#include "base/rng.h"
#include "base/sha256.h"
#include "check.h"

/* The digest of n copies of text, fed in pieces of 1, 2, 3, ... step bytes. */
static const char *digest(const char *text, size_t n_text, size_t copies, size_t step)
{
    static char hex[65];
    uint8_t out[32];
    char piece[256];
    struct sha256 s;
    sha256_init(&s);
    size_t total = n_text * copies, at = 0, k = 1;
    while (at < total) {
        size_t n = k < total - at ? k : total - at;
        for (size_t i = 0; i < n; i++) piece[i] = text[(at + i) % n_text];
        sha256_feed(&s, piece, n);
        at += n;
        k = k % step + 1;
    }
    sha256_end(&s, out);
    sha256_hex(out, hex);
    return hex;
}

int main(void)
{
    static const struct {
        const char *text;
        size_t copies;
        const char *want;
    } cases[] = {
        { "abc", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
          "lm"
          "nopqrsmnopqrstnopqrstu",
          1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
        { "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
    };

    TEST("the published examples hold, fed at once or in odd pieces")
    {
        static const size_t steps[] = { 1, 2, 7, 63, 64, 65, 127, 255 };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
                CHECK_STR(digest(cases[i].text, strlen(cases[i].text), cases[i].copies, steps[k]),
                          cases[i].want);
    }

    TEST("every length around the padding's edges gives the same digest however it is cut")
    {
        uint8_t text[200], whole[32], cut[32];
        struct rng r = { 7 };
        for (size_t i = 0; i < sizeof text; i++) text[i] = (uint8_t)rng_next(&r);
        for (size_t n = 0; n <= sizeof text; n++) {
            struct sha256 s;
            sha256_init(&s);
            sha256_feed(&s, text, n);
            sha256_end(&s, whole);
            for (size_t at = 0; at <= n; at += 13) {
                sha256_init(&s);
                sha256_feed(&s, text, at);
                sha256_feed(&s, text, 0);
                sha256_feed(&s, text + at, n - at);
                sha256_end(&s, cut);
                CHECK(memcmp(whole, cut, 32) == 0);
            }
        }
    }

    TEST("messages of 55, 56, 63 and 64 bytes, where the padding changes shape")
    {
        CHECK_STR(digest("a", 1, 55, 1),
                  "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
        CHECK_STR(digest("a", 1, 56, 1),
                  "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
        CHECK_STR(digest("a", 1, 63, 1),
                  "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
        CHECK_STR(digest("a", 1, 64, 1),
                  "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    }
    return check_done();
}
