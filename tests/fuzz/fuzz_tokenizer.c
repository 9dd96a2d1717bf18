/* fuzz_tokenizer.c - any bytes as text: the ids must be in range, plain text must not make control
 * tokens, and valid text must come back as it was.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "text/tokenizer.h"
#include "vocab_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tokenizer *open_once(void)
{
    static struct tokenizer *t;
    if (!t) {
        struct vocab_file f;
        struct bz_err err;
        make_lists();
        put_file(&f);
        if (vocab_file_open(&f, &t, &err)) abort();
    }
    return t;
}

/* Valid UTF-8 that a round trip keeps: no U+2581 (it means a space), and where special tokens are
 * matched no <bos> (it is never doubled) and no token of a type that does not show. */
static bool survives(struct str s, bool plain)
{
    size_t used;
    for (size_t i = 0; i < s.n; i += used) {
        struct str rest = { s.p + i, s.n - i };
        uint32_t cp = utf8_decode(rest.p, rest.n, &used);
        if ((cp == 0xfffd && used == 1) || cp == 0x2581) return false;
        if (!plain && str_starts(rest, "<bos>")) return false;
    }
    return true;
}

static void check(const struct tokenizer *t, struct str text, bool plain)
{
    struct tokenize_options opt = { .no_bos = true, .plain = plain };
    struct ids ids = { 0 };
    struct detok d = { 0 };
    struct buf back = { 0 };
    if (tokenizer_encode(t, text, opt, &ids, NULL)) abort();
    for (size_t i = 0; i < ids.n; i++) {
        if (ids.data[i] < 0 || (uint32_t)ids.data[i] >= tokenizer_size(t)) abort();
        for (int k = 0; plain && k < N_SPECIAL; k++)
            if (ids.data[i] == tokenizer_special(t, (enum special)k)) abort();
        if (plain && tokenizer_type(t, ids.data[i]) == TOKEN_CONTROL) abort();
        size_t before = back.n;
        detok_feed(&d, t, ids.data[i], true, &back);
        for (size_t at = before, used; at < back.n; at += used) /* whole code points only */
            if (utf8_decode(back.data + at, back.n - at, &used) == 0xfffd && used == 1) abort();
    }
    detok_end(&d, &back);
    if (survives(text, plain) && !str_eq(buf_str(&back), text)) abort();
    ids_free(&ids);
    buf_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tokenizer *t = open_once();
    struct str text = { (const char *)data, size };
    check(t, text, true);
    check(t, text, false);
    return 0;
}
