/* Any bytes as a schema, a pattern or a GBNF grammar, by the first byte: refused with a sentence,
 * or compiled; then the rest of the bytes are read as a text. */
#include <stdlib.h>

#include "base/mem.h"
#include "grammar/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_text(struct grammar *g, struct str text)
{
    struct matcher *m = NULL;
    struct bz_err err = { "" };
    struct buf forced = { 0 };
    size_t n = 0;
    if (matcher_open(&m, g, NULL, &err) == BZ_OK) {
        if (matcher_read(m, text, &n, &err) == BZ_OK && n > text.n) abort();
        if (matcher_forced(m, &forced, &err) != BZ_OK && !err.text[0]) abort();
        (void)matcher_may_end(m);
    } else if (!err.text[0]) {
        abort();
    }
    buf_free(&forced);
    matcher_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = mem_live();
    struct bz_err err = { "" };
    struct grammar *g = NULL;
    if (size < 2 || size > 4096) return 0;
    struct str text = { (const char *)data + 1, size - 1 };
    struct grammar_options any = { .any_form = true };
    enum bz_status st = data[0] % 3 == 0   ? grammar_of_schema(&g, text, &any, &err)
                        : data[0] % 3 == 1 ? grammar_of_regex(&g, text, &err)
                                           : grammar_of_gbnf(&g, text, &err);
    if (st == BZ_OK) read_text(g, text);
    else if (!err.text[0] || g) abort();
    grammar_close(g);
    if (mem_live() != live) abort();
    return 0;
}
