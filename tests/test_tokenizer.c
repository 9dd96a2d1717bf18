/* test_tokenizer.c - the tokenizer against its definition, on a small vocabulary made by hand.
 *
 * reference() below is the definition: strings, linear searches, no tables. Random texts must give
 * the same ids both ways. Whole vocabularies and the ids of another implementation are the business
 * of test_synth_vocab.c.
 */
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "check.h"
#include "vocab_fixture.h"

static struct tokenizer *open_hand(void)
{
    struct vocab_file f;
    struct tokenizer *t = NULL;
    struct bz_err err = { "" };
    put_file(&f);
    CHECK_MSG(vocab_file_open(&f, &t, &err) == BZ_OK, "%s", err.text);
    return t;
}

/* ---- the definition ---- */

static int ref_find(struct str s)
{
    for (size_t i = 0; i < N_TOKENS; i++)
        if (s.n && str_eq(texts[i], s)) return (int)i;
    return -1;
}

static bool ref_user_defined(size_t i)
{
    static const char *const z[] = { "<|tool_call>", "<tool_call|>", "<tool_response|>",
                                     "<|\"|>",       "<|channel>",   "<channel|>",
                                     "<x>",          "<x><y>" };
    for (size_t k = 0; k < sizeof z / sizeof *z; k++)
        if (str_is(texts[i], z[k])) return true;
    return false;
}

static bool ref_control(size_t i) /* or unknown */
{
    return (i >= 1 && i <= 24 && !ref_user_defined(i)) || i == 27 || i == 28;
}

static int ref_rank(struct str left, struct str right)
{
    for (size_t i = 0; i < N_MERGES; i++) {
        struct str m = merge_texts[i];
        if (m.n != left.n + 1 + right.n || m.p[left.n] != ' ') continue;
        if (memcmp(m.p, left.p, left.n) || memcmp(m.p + left.n + 1, right.p, right.n)) continue;
        return str_is(m, "<e os>") ? -1 : (int)i;
    }
    return -1;
}

static void ref_put(struct ids *out, int id)
{
    if (str_is(texts[id], "<bos>") && out->n && out->data[out->n - 1] == id) return;
    ids_push(out, id);
}

static void ref_bpe(struct str s, struct ids *out)
{
    struct str sym[512];
    size_t n = 0;
    for (size_t at = 0; at < s.n; at += sym[n++].n) {
        size_t len = (s.p[at] & 0x80) == 0      ? 1
                     : (s.p[at] & 0xe0) == 0xc0 ? 2
                     : (s.p[at] & 0xf0) == 0xe0 ? 3
                                                : 4;
        sym[n] = (struct str) { s.p + at, len };
    }
    for (;;) {
        int best = -1, best_rank = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            int rank = ref_rank(sym[i], sym[i + 1]);
            if (rank >= 0 && (best < 0 || rank < best_rank)) best = (int)i, best_rank = rank;
        }
        if (best < 0) break;
        sym[best].n += sym[best + 1].n;
        n--;
        for (size_t i = (size_t)best + 1; i < n; i++) sym[i] = sym[i + 1];
    }
    for (size_t i = 0; i < n; i++) {
        int id = ref_find(sym[i]);
        if (id >= 0) ref_put(out, id);
        for (size_t k = 0; id < 0 && k < sym[i].n; k++)
            ref_put(out, (int)N_HAND + (unsigned char)sym[i].p[k]);
    }
}

/* Spaces become U+2581, bytes that are no UTF-8 become U+FFFD, newlines split. */
static void ref_plain(struct str s, struct ids *out)
{
    struct buf b = { 0 };
    for (size_t i = 0; i < s.n;) {
        unsigned char c = (unsigned char)s.p[i];
        size_t len = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 0;
        bool ok = len && len <= s.n - i;
        for (size_t k = 1; ok && k < len; k++) ok = (s.p[i + k] & 0xc0) == 0x80;
        if (c == 0xf4 && ok && (unsigned char)s.p[i + 1] > 0x8f) ok = false;
        if (c > 0xf4) ok = false;
        if (c == ' ') buf_puts(&b, SP);
        else if (ok) buf_put(&b, s.p + i, len);
        else buf_puts(&b, "\xef\xbf\xbd");
        i += ok ? len : 1;
    }
    for (size_t i = 0, end; i < b.n; i = end) {
        bool newline = b.data[i] == '\n';
        for (end = i; end < b.n && (b.data[end] == '\n') == newline;) end++;
        struct str run = { b.data + i, end - i };
        int id = newline ? ref_find(run) : -1;
        if (id >= 0) ref_put(out, id);
        else ref_bpe(run, out);
    }
    buf_free(&b);
}

/* Matched even in plain text: user-defined, and none of the chat format's. */
static bool ref_word(size_t i)
{
    return i > 24 && ref_user_defined(i);
}

/* Special tokens, the longest first: split at each place where it occurs. */
static void reference(struct str s, bool plain, size_t length, struct ids *out)
{
    for (; length > 0; length--)
        for (size_t k = 0; k < N_HAND; k++) {
            bool special = ref_user_defined(k) || ref_control(k);
            if (texts[k].n != length || !(plain ? ref_word(k) : special)) continue;
            const char *at = s.n ? memmem(s.p, s.n, texts[k].p, length) : NULL;
            if (!at) continue;
            size_t left = (size_t)(at - s.p), right = left + length;
            reference((struct str) { s.p, left }, plain, length, out);
            ref_put(out, (int)k);
            reference((struct str) { s.p + right, s.n - right }, plain, length, out);
            return;
        }
    ref_plain(s, out);
}

/* ---- random texts ---- */

/* Random texts are made of these, '_' stands for a space. No second row in texts that must survive:
 * a doubled <bos>, a literal U+2581 and malformed bytes do not. */
static const char snippets[] =
    "hello _hello hell he l o h a aa ab abc abcd b c d dea de e zz z q qqq _ __ ___ \n \n\n "
    "\n\n\n\n\n\n\n \t \r\n 3 3_a \xc3\xa9 \xe6\xbc\xa2 \xe6\xbc\xa2\xc3\xa9 \xe6\xbc\xa3 "
    "\xf0\x9f\x98\x80 \xf0\x9f\x98\x80\xf0\x9f\x98\x80 \xf0\x9f\xa6\x99 never < > <e os> <eos> "
    "<|turn> <turn|> <|turn turn|> <|tool_call> <|tool <|tool_response> <|\"|> <x> <x><y> <x>< "
    "<ctl> <what> </s> <0x41> \x7f \xef\xbf\xbd <<| |>>";
static const char odd[] =
    "<bos> <bos> \xe2\x96\x81 \xff \x80 \xc3 \xe6\xbc \xf0\x9f \xed\xa0\x80 \xf4\x90\x80\x80 "
    "\xf8\x88\x80\x80\x80";
#define N_SNIPPETS 64u
#define N_ODD      11u

static struct str snippet_texts[N_SNIPPETS + N_ODD];

static void random_text(struct rng *rng, bool with_odd, struct buf *b)
{
    b->n = 0;
    buf_puts(b, "");
    for (uint32_t n = rng_below(rng, 14); n > 0; n--) {
        bool pick_odd = with_odd && rng_below(rng, 6) == 0;
        uint32_t i = pick_odd ? N_SNIPPETS + rng_below(rng, N_ODD) : rng_below(rng, N_SNIPPETS);
        buf_put_str(b, snippet_texts[i]);
        if (pick_odd && rng_below(rng, 8) == 0) buf_putc(b, 0);
    }
}

/* A letter that some merge joins to c. */
static char joined_letter(struct rng *rng, char c)
{
    for (;;) {
        struct str m = merge_texts[rng_below(rng, N_MERGES)];
        const char *space = memchr(m.p + 1, ' ', m.n - 1);
        if (space[-1] == c && space[1] >= 'a' && space[1] <= 'z') return space[1];
    }
}

static bool same_ids(const struct ids *a, const struct ids *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->data, b->data, a->n * sizeof *a->data) == 0);
}

static void encode(const struct tokenizer *t, struct str s, bool plain, bool bos, struct ids *out)
{
    struct tokenize_options opt = { .no_bos = !bos, .plain = plain };
    struct bz_err err = { "" };
    out->n = 0;
    CHECK_MSG(tokenizer_encode(t, s, opt, out, &err) == BZ_OK, "%s", err.text);
}

/* "12 7 3" for a text in C. */
static const char *ids_of(const struct tokenizer *t, const char *text, bool plain, bool bos)
{
    static char line[1024];
    struct ids ids = { 0 };
    size_t n = 0;
    encode(t, str_of(text), plain, bos, &ids);
    line[0] = 0;
    for (size_t i = 0; i < ids.n && n < sizeof line - 24; i++) {
        struct str s = tokenizer_text(t, ids.data[i]);
        n += (size_t)snprintf(line + n, sizeof line - n, "%s[%.*s]", i ? " " : "", STR_ARG(s));
    }
    ids_free(&ids);
    return line;
}

static void decode(const struct tokenizer *t, const struct ids *ids, bool specials, struct buf *out)
{
    struct detok d = { 0 };
    out->n = 0;
    buf_puts(out, "");
    for (size_t i = 0; i < ids->n; i++) detok_feed(&d, t, ids->data[i], specials, out);
    detok_end(&d, out);
}

static void test_lookups(const struct tokenizer *t)
{
    TEST("special tokens are found by their text, whatever their type and id")
    {
        CHECK(tokenizer_size(t) == N_TOKENS);
        CHECK(tokenizer_special(t, SPECIAL_BOS) == 3 && tokenizer_special(t, SPECIAL_TURN) == 2);
        CHECK(tokenizer_special(t, SPECIAL_QUOTE) == 17);
        for (int i = 0; i < N_SPECIAL; i++) CHECK(tokenizer_special(t, (enum special)i) >= 1);
        for (int i = 1; i <= 24; i++)
            CHECK(tokenizer_type(t, i) ==
                  (ref_user_defined((size_t)i) ? TOKEN_USER_DEFINED : TOKEN_CONTROL));
        CHECK(tokenizer_type(t, 27) == TOKEN_CONTROL && tokenizer_type(t, 30) == TOKEN_NORMAL);
        for (int i = 0; i < 256; i++) CHECK(tokenizer_type(t, (int32_t)N_HAND + i) == TOKEN_BYTE);
    }

    TEST("generation ends at <eos>, <turn|> and <|tool_response>, and not at </s>")
    {
        int n = 0;
        for (int32_t i = -1; i <= (int32_t)N_TOKENS; i++) n += tokenizer_is_end(t, i);
        CHECK(n == 3 && tokenizer_is_end(t, tokenizer_special(t, SPECIAL_EOS)));
        CHECK(tokenizer_is_end(t, tokenizer_special(t, SPECIAL_TURN_END)));
        CHECK(tokenizer_is_end(t, tokenizer_special(t, SPECIAL_RESPONSE)));
    }

    TEST("texts are found, and ids outside the vocabulary are nobody's")
    {
        CHECK(tokenizer_find(t, str_of("hello")) == 0 && tokenizer_find(t, str_of("nix")) == -1);
        CHECK(tokenizer_find(t, str_of("")) == -1);
        CHECK(str_is(tokenizer_text(t, 0), "hello"));
        CHECK(tokenizer_text(t, -1).n == 0 && tokenizer_text(t, (int32_t)N_TOKENS).n == 0);
        size_t n;
        tokenizer_suppressed(t, &n);
        CHECK(n == 0);
    }
}

static void test_rules(const struct tokenizer *t)
{
    TEST("lower ranks merge first, and equal ones from the left")
    {
        CHECK_STR(ids_of(t, "hello hello", true, false), "[hello] [" SP "hello]");
        CHECK_STR(ids_of(t, "aaaaaaa", true, false), "[aaaa] [aaa]");
        CHECK_STR(ids_of(t, "abcd", true, false), "[abc] [d]");
    }

    TEST("a merge whose result is no token is still made, and then written in bytes")
    {
        CHECK_STR(ids_of(t, "de", true, false), "[<0x64>] [<0x65>]");
        CHECK_STR(ids_of(t, "dea", true, false), "[dea]");
        CHECK_STR(ids_of(t, "zzz", true, false), "[zz] [<0x7A>]");
    }

    TEST("runs of newlines are looked up whole; only longer ones go through BPE")
    {
        CHECK_STR(ids_of(t, "\n\n\n\n\n", true, false), "[\n\n\n\n\n]");
        CHECK_STR(ids_of(t, "\n\n\n\n\n\n", true, false), "[\n\n\n\n] [\n\n]");
        CHECK_STR(ids_of(t, "a\na", true, false), "[a] [\n] [a]");
    }

    TEST("a token that no merge reaches is never emitted")
    {
        CHECK_STR(ids_of(t, "never", true, false), "[<0x6E>] [e] [<0x76>] [e] [<0x72>]");
    }

    TEST("plain text cannot speak as a control token, not even through merges")
    {
        CHECK_STR(ids_of(t, "<eos>", true, false), "[<e] [os>]");
        CHECK_STR(ids_of(t, "<eos>", false, false), "[<eos>]");
        CHECK_STR(ids_of(t, "<x><|\"|>", false, false), "[<x>] [<|\"|>]");
        CHECK_STR(ids_of(t, "<x><|\"|>", true, false), "[<x>] [<] [|] [<0x22>] [|] [>]");
        CHECK_STR(ids_of(t, "<x><y><x>", false, false), "[<x><y>] [<x>]");
    }

    TEST("overlong forms mean their character, surrogates pass, other malformed bytes are U+FFFD")
    {
        CHECK_STR(ids_of(t, "\xc0\x80", true, false), "[<0x00>]");
        CHECK_STR(ids_of(t, "\xc1\xa1", true, false), "[a]");
        CHECK_STR(ids_of(t, "\xed\xa0\x80", true, false), "[<0xED>] [<0xA0>] [<0x80>]");
        CHECK_STR(ids_of(t,
                         "\xe6\xbc"
                         "a\xff",
                         true, false),
                  "[\xef\xbf\xbd] [\xef\xbf\xbd] [a] [\xef\xbf\xbd]");
    }

    TEST("<bos> goes in front once")
    {
        CHECK_STR(ids_of(t, "", false, true), "[<bos>]");
        CHECK_STR(ids_of(t, "", false, false), "");
        CHECK_STR(ids_of(t, "a", false, true), "[<bos>] [a]");
        CHECK_STR(ids_of(t, "<bos>a", false, true), "[<bos>] [a]");
        CHECK_STR(ids_of(t, "<bos><bos>a", false, true), "[<bos>] [a]");
        CHECK_STR(ids_of(t, "<bos>a", false, false), "[<bos>] [a]");
    }
}

static void test_reference(const struct tokenizer *t)
{
    struct rng rng = { 2026 };
    struct buf b = { 0 }, back = { 0 };
    struct ids got = { 0 }, want = { 0 };

    TEST("random texts, valid or not, give the ids of the definition")
    {
        for (int i = 0; i < 6000; i++) {
            bool plain = i % 2;
            random_text(&rng, true, &b);
            encode(t, buf_str(&b), plain, false, &got);
            want.n = 0;
            reference(buf_str(&b), plain, 20, &want);
            CHECK_MSG(same_ids(&got, &want), "text %d: \"%.*s\"", i, STR_ARG(buf_str(&b)));
        }
    }

    TEST("ids of valid text decode to that text")
    {
        for (int i = 0; i < 3000; i++) {
            bool plain = i % 2;
            random_text(&rng, false, &b);
            encode(t, buf_str(&b), plain, false, &got);
            decode(t, &got, !plain, &back);
            CHECK_MSG(str_eq(buf_str(&b), buf_str(&back)), "\"%s\" came back as \"%s\"", b.data,
                      back.data);
        }
    }

    TEST("a unit too long for the short way gives the same as the definition")
    {
        for (int i = 0; i < 300; i++) {
            char c = 'd';
            b.n = 0;
            for (uint32_t n = 40 + rng_below(&rng, 200); n > 0; n--) {
                buf_putc(&b, c);
                c = joined_letter(&rng, c);
            }
            encode(t, buf_str(&b), true, false, &got);
            want.n = 0;
            reference(buf_str(&b), true, 20, &want);
            CHECK_MSG(same_ids(&got, &want), "\"%s\"", b.data);
        }
    }

    TEST("a megabyte without a newline is not quadratic, and comes back whole")
    {
        b.n = 0;
        for (int i = 0; i < 1 << 20; i++) buf_putc(&b, 'a');
        encode(t, buf_str(&b), true, false, &got);
        CHECK(got.n == 1 << 18);
        decode(t, &got, false, &back);
        CHECK(str_eq(buf_str(&b), buf_str(&back)));
    }
    buf_free(&b);
    buf_free(&back);
    ids_free(&got);
    ids_free(&want);
}

/* Valid UTF-8, with what is malformed replaced byte by byte. */
static void repair(struct str s, struct buf *out)
{
    char z[4];
    size_t used;
    for (size_t i = 0; i < s.n; i += used)
        buf_put(out, z, utf8_encode(utf8_decode(s.p + i, s.n - i, &used), z));
}

static void test_stream(const struct tokenizer *t)
{
    struct rng rng = { 7 };
    int32_t e_acute = tokenizer_find(t, str_of("\xc3\xa9"));
    TEST("a stream shows whole code points only, and in all what its bytes say")
    {
        for (int i = 0; i < 4000; i++) {
            struct buf bytes = { 0 }, want = { 0 }, got = { 0 };
            struct detok d = { 0 };
            for (uint32_t n = rng_below(&rng, 12); n > 0; n--) {
                /* Byte tokens around the leads and the tails of UTF-8, and words between them. */
                static const unsigned char near[] = { 0xe2, 0x96, 0x81, 0xf0, 0x9f,
                                                      0x98, 0x80, 0xc3, 0xa9, 0xed,
                                                      0xa0, 0xf4, 0x90, 0xff, 'A' };
                unsigned char byte = near[rng_below(&rng, sizeof near)];
                bool word = rng_below(&rng, 6) == 0;
                detok_feed(&d, t, word ? e_acute : (int32_t)N_HAND + byte, false, &got);
                if (word) buf_puts(&bytes, "\xc3\xa9");
                else buf_putc(&bytes, (char)byte);
                struct buf valid = { 0 };
                repair(buf_str(&got), &valid);
                CHECK(str_eq(buf_str(&valid), buf_str(&got)));
                buf_free(&valid);
            }
            detok_end(&d, &got);
            repair(buf_str(&bytes), &want);
            CHECK(str_eq(buf_str(&got), buf_str(&want)) && d.n_held == 0);
            buf_free(&bytes);
            buf_free(&want);
            buf_free(&got);
        }
    }

    TEST("each type of token shows as it should")
    {
        static const struct {
            const char *text, *shown, *with_specials;
        } cases[] = {
            { SP "hello", " hello", " hello" },
            { "3" SP "a", "3 a", "3 a" },
            { SP SP, "  ", "  " },
            { "<bos>", "", "<bos>" },
            { "<what>", "", "<what>" },
            { "<|tool_response>", "", "<|tool_response>" },
            { "<gone>", "", "" },
            { "<|tool_call>", "<|tool_call>", "<|tool_call>" },
            { "no such token", "", "" },
            { "<0x41>", "A", "A" },
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (int specials = 0; specials < 2; specials++) {
                struct buf out = { 0 };
                struct ids one = { 0 };
                ids_push(&one, tokenizer_find(t, str_of(cases[i].text)));
                decode(t, &one, specials, &out);
                CHECK_STR(out.data, specials ? cases[i].with_specials : cases[i].shown);
                buf_free(&out);
                ids_free(&one);
            }
    }
}

/* A vocabulary whose two newlines are a control token. */
static void test_newlines(void)
{
    TEST("a run of newlines in plain text is no control token either")
    {
        for (size_t i = 0; i < N_HAND; i++)
            if (str_is(texts[i], "\n\n")) types[i] = TOKEN_CONTROL;
        struct tokenizer *t = open_hand();
        if (!t) return;
        CHECK_STR(ids_of(t, "a\n\na", true, false), "[a] [\n] [\n] [a]");
        CHECK_STR(ids_of(t, "a\n\na", false, false), "[a] [\n\n] [a]");
        tokenizer_close(t);
    }
}

int main(void)
{
    make_lists();
    split_list(snippets, " ", snippet_texts, N_SNIPPETS);
    split_list(odd, " ", snippet_texts + N_SNIPPETS, N_ODD);
    struct tokenizer *t = open_hand();
    if (!t) return check_done();
    test_lookups(t);
    test_rules(t);
    test_reference(t);
    test_stream(t);
    tokenizer_close(t);
    test_newlines();
    arena_free(&room);
    CHECK(mem_live() == 0);
    return check_done();
}
