/* test_synth_vocab.c - made-up vocabularies: their structure, and the ids that another
 * implementation gives for one of them (tests/golden/tokenizer_llama.txt).
 *
 * Needs src/cli/synth_vocab.c and src/cli/synth_words.c besides the library.
 */
#include "cli/synth_vocab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/strmap.h"
#include "check.h"
#include "io/gguf.h"
#include "text/tokenizer.h"

#define PATH "build/tmp/synth_vocab.gguf"

/* Through a file, as a model's vocabulary travels. */
static struct tokenizer *open_through_file(const struct synth_vocab *v)
{
    struct gguf_writer *w;
    struct gguf g;
    struct tokenizer *t = NULL;
    struct bz_err err = { "" };
    mkdir("build", 0777);
    CHECK(mkdir("build/tmp", 0777) == 0 || errno == EEXIST);
    enum bz_status st = gguf_writer_open(&w, PATH, &err);
    if (!st) {
        synth_vocab_put(w, v);
        st = gguf_writer_finish(w, &err);
    }
    if (!st) st = gguf_open_file(&g, PATH, &err);
    if (!st) {
        st = tokenizer_open(&t, &g, &err);
        gguf_close(&g);
    }
    remove(PATH);
    CHECK_MSG(st == BZ_OK, "%s", err.text);
    return t;
}

static bool make(struct synth_vocab *v, uint32_t n)
{
    struct bz_err err = { "" };
    bool ok = synth_vocab_make(v, n, &err) == BZ_OK;
    CHECK_MSG(ok, "%s", err.text);
    return ok;
}

static void encode(const struct tokenizer *t, struct str s, bool plain, struct ids *out)
{
    struct tokenize_options opt = { .no_bos = true, .plain = plain };
    out->n = 0;
    CHECK(tokenizer_encode(t, s, opt, out, NULL) == BZ_OK);
}

/* A token that ordinary text can become: neither a byte nor written <...>. */
static bool is_piece(const struct synth_vocab *v, uint32_t i)
{
    return v->types[i] == TOKEN_NORMAL &&
           !(v->tokens[i].n > 2 && v->tokens[i].p[0] == '<' && str_ends(v->tokens[i], ">"));
}

/* Every piece is one token, every text is there once, every merge is of pieces and makes one. */
static void check_structure(const struct synth_vocab *v, const struct tokenizer *t)
{
    uint32_t n_unreachable = 0, n_double = 0, n_astray = 0, n_cuts = 0;
    struct ids ids = { 0 };
    struct strmap pieces = { 0 };
    CHECK(strmap_init(&pieces, v->n_tokens));
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        n_double += tokenizer_find(t, v->tokens[i]) != (int32_t)i;
        if (!is_piece(v, i)) continue;
        strmap_add(&pieces, v->tokens[i], i);
        encode(t, v->tokens[i], true, &ids);
        n_unreachable += ids.n != 1 || ids.data[0] != (int32_t)i;
    }
    for (uint32_t i = 0; i < v->n_merges; i++) {
        struct str m = v->merges[i];
        const char *space = memchr(m.p + 1, ' ', m.n - 1);
        struct str left = { m.p, (size_t)(space - m.p) }, right = { space + 1, m.n - left.n - 1 };
        char both[256];
        uint32_t id;
        memcpy(both, left.p, left.n);
        memcpy(both + left.n, right.p, right.n);
        n_astray += !strmap_find(&pieces, left, &id) || !strmap_find(&pieces, right, &id) ||
                    !strmap_find(&pieces, (struct str) { both, m.n - 1 }, &id);
    }
    for (uint32_t i = 0; i < v->n_tokens; i++)
        for (size_t at = 1; is_piece(v, i) && at < v->tokens[i].n; at++) {
            struct str left = { v->tokens[i].p, at };
            struct str right = { v->tokens[i].p + at, v->tokens[i].n - at };
            uint32_t id;
            n_cuts += strmap_find(&pieces, left, &id) && strmap_find(&pieces, right, &id);
        }
    CHECK_MSG(n_unreachable == 0, "%u unreachable", n_unreachable);
    CHECK_MSG(n_double == 0, "%u texts twice", n_double);
    CHECK_MSG(n_astray == 0, "%u merges of no pieces", n_astray);
    CHECK_MSG(n_cuts == v->n_merges, "%u cuts, %u merges", n_cuts, v->n_merges);
    strmap_free(&pieces);
    ids_free(&ids);
}

static void test_sizes(void)
{
    static const uint32_t sizes[] = { 512, 513, 1024, 2047, 2048, 4096, 8192, 20000 };
    TEST("a vocabulary of any size has its structure and writes every text")
    {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            struct synth_vocab v;
            if (!make(&v, sizes[k])) continue;
            struct tokenizer *t = open_through_file(&v);
            if (!t) continue;
            CHECK(tokenizer_size(t) == sizes[k]);
            check_structure(&v, t);
            for (int i = 0; i < N_SPECIAL; i++) CHECK(tokenizer_special(t, (enum special)i) >= 0);
            CHECK(v.bos == tokenizer_special(t, SPECIAL_BOS));
            CHECK(v.eos == tokenizer_special(t, SPECIAL_EOS));
            CHECK(v.unk == tokenizer_special(t, SPECIAL_UNK));
            CHECK(v.pad == tokenizer_special(t, SPECIAL_PAD));
            CHECK(v.mask == tokenizer_special(t, SPECIAL_MASK));
            CHECK(v.bos != 2 && v.eos != 1); /* so that whoever counts on those ids is found out */
            for (char c = ' ' + 1; c < 127; c++)
                CHECK(tokenizer_find(t, (struct str) { &c, 1 }) >= 0);
            tokenizer_close(t);
            synth_vocab_free(&v);
        }
    }

    TEST("the same size is the same vocabulary")
    {
        struct synth_vocab a, b;
        if (!make(&a, 3000) || !make(&b, 3000)) return;
        CHECK(a.n_merges == b.n_merges);
        int different = 0;
        for (uint32_t i = 0; i < 3000; i++) different += !str_eq(a.tokens[i], b.tokens[i]);
        for (uint32_t i = 0; i < a.n_merges; i++) different += !str_eq(a.merges[i], b.merges[i]);
        CHECK(different == 0);
        synth_vocab_free(&a);
        synth_vocab_free(&b);
    }

    TEST("a size that cannot be made is refused, and so is one without memory")
    {
        struct synth_vocab v;
        struct bz_err err;
        CHECK(synth_vocab_make(&v, 511, &err) == BZ_ERR_ARGUMENT);
        CHECK(synth_vocab_make(&v, SYNTH_VOCAB_FULL + 1, &err) == BZ_ERR_ARGUMENT);
        enum bz_status st = BZ_ERR_MEMORY;
        for (uint64_t k = 1; st && k < 200; k++) {
            mem_fail_at(k);
            st = synth_vocab_make(&v, 600, &err);
            CHECK(st == BZ_OK || st == BZ_ERR_MEMORY);
            if (st) CHECK(mem_live() == 0);
        }
        mem_fail_at(0);
        CHECK(st == BZ_OK);
        synth_vocab_free(&v);
    }
}

static void test_full(void)
{
    static const struct {
        int32_t id;
        const char *text;
    } published[] = {
        { 0, "<pad>" },
        { 1, "<eos>" },
        { 2, "<bos>" },
        { 3, "<unk>" },
        { 4, "<mask>" },
        { 46, "<|tool>" },
        { 47, "<tool|>" },
        { 48, "<|tool_call>" },
        { 49, "<tool_call|>" },
        { 50, "<|tool_response>" },
        { 51, "<tool_response|>" },
        { 52, "<|\"|>" },
        { 98, "<|think|>" },
        { 100, "<|channel>" },
        { 101, "<channel|>" },
        { 105, "<|turn>" },
        { 106, "<turn|>" },
        { 107, "\n" },
        { 108, "\n\n" },
        { 138, "\xe2\x96\x81\xe2\x96\x81" },
        { 212, "</s>" },
        { 238, "<0x00>" },
        { 493, "<0xFF>" },
        { 45518, "thought" },
        { 236743, "\xe2\x96\x81" },
        { 255968, "\t" },
        { 255969, "\t\t" },
        { 255999, "<|image>" },
        { 256000, "<|audio>" },
        { 258880, "<|image|>" },
        { 258881, "<|audio|>" },
        { 258882, "<image|>" },
        { 258883, "<audio|>" },
        { 258884, "<|video|>" },
    };
    TEST("the full size has the published numbers and ids")
    {
        struct synth_vocab v;
        if (!make(&v, SYNTH_VOCAB_FULL)) return;
        CHECK(v.n_tokens == 262144 && v.n_merges == 514906);
        for (size_t i = 0; i < sizeof published / sizeof *published; i++)
            CHECK_MSG(str_is(v.tokens[published[i].id], published[i].text), "token %d",
                      published[i].id);
        int64_t before = mem_live();
        struct tokenizer *t = open_through_file(&v);
        if (t) {
            check_structure(&v, t);
            struct ids ids = { 0 };
            encode(t, str_of("<bos><|turn>user\nhello<turn|>\n"), false, &ids);
            CHECK(ids.n == 7 && ids.data[0] == 2 && ids.data[1] == 105 && ids.data[3] == 107);
            ids_free(&ids);
        }
        tokenizer_close(t);
        CHECK(mem_live() == before);
        synth_vocab_free(&v);
    }
}

/* ---- golden ids ---- */

static int hex(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* Text up to the closing quote, escapes undone; returns what follows the quote. */
static const char *unescape(const char *p, struct buf *out)
{
    for (out->n = 0; *p && *p != '"'; p++) {
        char c = *p;
        if (c == '\\') {
            c = *++p;
            if (c == 'n') c = '\n';
            else if (c == 't') c = '\t';
            else if (c == 'r') c = '\r';
            else if (c == 'x') {
                c = (char)(hex(p[1]) * 16 + hex(p[2]));
                p += 2;
            }
        }
        buf_putc(out, c);
    }
    return *p ? p + 1 : p;
}

static void check_golden_line(const struct tokenizer *t, const char *line, int number)
{
    struct buf text = { 0 };
    struct ids got = { 0 };
    bool plain = strncmp(line, "plain ", 6) == 0;
    const char *p = unescape(strchr(line, '"') + 1, &text);
    encode(t, buf_str(&text), plain, &got);
    p = strchr(p, '=') + 1;
    size_t n = 0;
    for (char *end; strspn(p, " \n") < strlen(p); p = end, n++) {
        long want = strtol(p, &end, 10);
        if (!CHECK(n < got.n && got.data[n] == want)) {
            fprintf(stderr, "    line %d, id %zu\n", number, n);
            break;
        }
    }
    CHECK_MSG(n == got.n, "line %d: %zu ids, wanted %zu", number, got.n, n);
    buf_free(&text);
    ids_free(&got);
}

static void test_golden(void)
{
    TEST("awkward texts have the ids that llama.cpp gives")
    {
        static char line[4096];
        struct synth_vocab v = { 0 };
        struct tokenizer *t = NULL;
        int number = 0, n_cases = 0;
        unsigned size;
        FILE *f = fopen("tests/golden/tokenizer_llama.txt", "rb");
        CHECK(f != NULL);
        while (f && fgets(line, sizeof line, f)) {
            number++;
            if (line[0] == '#') continue;
            if (sscanf(line, "vocab %u", &size) == 1) {
                if (make(&v, size)) t = open_through_file(&v);
            } else if (t) {
                check_golden_line(t, line, number);
                n_cases++;
            }
        }
        CHECK(n_cases >= 200);
        if (f) fclose(f);
        tokenizer_close(t);
        synth_vocab_free(&v);
    }
}

int main(void)
{
    test_sizes();
    test_full();
    test_golden();
    CHECK(mem_live() == 0);
    return check_done();
}
