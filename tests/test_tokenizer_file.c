/* test_tokenizer_file.c - the tokenizer and a file: keys it heeds, files it refuses, memory that it
 * does without. Its ids for texts are tested in test_tokenizer.c. */
#include "text/tokenizer.h"

#include "base/mem.h"
#include "check.h"
#include "vocab_fixture.h"

enum wrong {
    NO_MODEL,
    OTHER_MODEL,
    OTHER_PRE,
    NO_TOKENS,
    NUMBERS_FOR_TOKENS,
    ZERO_TOKENS,
    NO_TYPES,
    SHORT_TYPES,
    BAD_TYPE,
    LONG_SCORES,
    NO_MERGES,
    MERGE_OF_ONE,
    MERGE_OPEN,
    MISSING_BYTE,
    FALSE_BYTE,
    SUPPRESS_HIGH,
    SUPPRESS_NEGATIVE,
    SUPPRESS_TEXT,
    EOS_HIGH,
};

static enum bz_status open_wrong(enum wrong w, struct bz_err *err)
{
    struct vocab_file f;
    struct tokenizer *t = NULL;
    int32_t bad_ids[2] = { 5, w == SUPPRESS_HIGH ? (int32_t)N_TOKENS : -1 };
    vocab_file_begin(&f);
    if (w != NO_MODEL)
        vocab_file_str(&f, "tokenizer.ggml.model", w == OTHER_MODEL ? "gpt2" : "llama");
    if (w == OTHER_PRE) vocab_file_str(&f, "tokenizer.ggml.pre", "qwen2");
    if (w == MISSING_BYTE) texts[N_HAND + 0x41] = str_of("<0x4g>"), types[N_HAND + 0x41] = 1;
    if (w == FALSE_BYTE) types[0] = 6;
    if (w == BAD_TYPE) types[5] = 7;
    if (w == NUMBERS_FOR_TOKENS) vocab_file_i32s(&f, "tokenizer.ggml.tokens", types, N_TOKENS);
    else if (w != NO_TOKENS)
        vocab_file_strs(&f, "tokenizer.ggml.tokens", texts, w == ZERO_TOKENS ? 0 : N_TOKENS);
    if (w != NO_TYPES)
        vocab_file_i32s(&f, "tokenizer.ggml.token_type", types, N_TOKENS - (w == SHORT_TYPES));
    if (w == LONG_SCORES) vocab_file_i32s(&f, "tokenizer.ggml.scores", bad_ids, 2);
    if (w == MERGE_OF_ONE) merge_texts[3] = str_of("abc");
    if (w == MERGE_OPEN) merge_texts[3] = str_of("abc ");
    if (w != NO_MERGES) vocab_file_strs(&f, "tokenizer.ggml.merges", merge_texts, N_MERGES);
    if (w == SUPPRESS_HIGH || w == SUPPRESS_NEGATIVE)
        vocab_file_i32s(&f, "tokenizer.ggml.suppress_tokens", bad_ids, 2);
    if (w == SUPPRESS_TEXT) vocab_file_str(&f, "tokenizer.ggml.suppress_tokens", "all");
    if (w == EOS_HIGH) vocab_file_u32(&f, "tokenizer.ggml.eos_token_id", 0xffffffffu);
    enum bz_status st = vocab_file_open(&f, &t, err);
    CHECK(t == NULL);
    make_lists();
    return st;
}

static void test_hostile(void)
{
    static const struct {
        enum wrong w;
        enum bz_status st;
        const char *part; /* of the sentence */
    } cases[] = {
        { NO_MODEL, BZ_ERR_FORMAT, "no tokenizer.ggml.model" },
        { OTHER_MODEL, BZ_ERR_UNSUPPORTED, "\"gpt2\"" },
        { OTHER_PRE, BZ_ERR_UNSUPPORTED, "\"qwen2\"" },
        { NO_TOKENS, BZ_ERR_FORMAT, "no tokenizer.ggml.tokens" },
        { NUMBERS_FOR_TOKENS, BZ_ERR_FORMAT, "not an array of strings" },
        { ZERO_TOKENS, BZ_ERR_FORMAT, "has 0 entries" },
        { NO_TYPES, BZ_ERR_FORMAT, "no tokenizer.ggml.token_type" },
        { SHORT_TYPES, BZ_ERR_FORMAT, "entries for" },
        { BAD_TYPE, BZ_ERR_FORMAT, "token 5" },
        { LONG_SCORES, BZ_ERR_FORMAT, "scores has 2 entries" },
        { NO_MERGES, BZ_ERR_FORMAT, "no tokenizer.ggml.merges" },
        { MERGE_OF_ONE, BZ_ERR_FORMAT, "merge 3" },
        { MERGE_OPEN, BZ_ERR_FORMAT, "merge 3" },
        { MISSING_BYTE, BZ_ERR_FORMAT, "<0x41>" },
        { FALSE_BYTE, BZ_ERR_FORMAT, "token 0" },
        { SUPPRESS_HIGH, BZ_ERR_FORMAT, "suppress_tokens names token" },
        { SUPPRESS_NEGATIVE, BZ_ERR_FORMAT, "token -1" },
        { SUPPRESS_TEXT, BZ_ERR_FORMAT, "suppress_tokens" },
        { EOS_HIGH, BZ_ERR_FORMAT, "eos_token_id names token 4294967295" },
    };
    TEST("a file that is wrong is refused in one sentence that says what is wrong")
    {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct bz_err err = { "" };
            CHECK_MSG(open_wrong(cases[i].w, &err) == cases[i].st, "case %zu: %s", i, err.text);
            CHECK_MSG(strstr(err.text, cases[i].part), "case %zu: %s", i, err.text);
            CHECK(strncmp(err.text, "made-up.gguf: ", 14) == 0);
        }
    }
}

static void test_claims(void)
{
    TEST("a file that claims more than 2^31 tokens or merges is refused before any allocation")
    {
        static const char *const keys[] = { "tokenizer.ggml.tokens", "tokenizer.ggml.merges" };
        for (size_t k = 0; k < 2; k++) {
            struct vocab_file f;
            struct source src;
            struct gguf g;
            struct tokenizer *t = NULL;
            struct bz_err err = { "" };
            put_file(&f);
            vocab_file_seal(&f);
            CHECK(!source_open_memory(&src, "made-up.gguf", f.bytes.data, f.bytes.n, &err));
            CHECK(!gguf_open(&g, &src, 1, &err));
            for (uint64_t i = 0; i < g.n_kv; i++)
                if (str_is(g.kvs[i].key, keys[k])) g.kvs[i].n = (uint64_t)1 << 31;
            CHECK(tokenizer_open(&t, &g, &err) == BZ_ERR_FORMAT && t == NULL);
            CHECK_MSG(strstr(err.text, "2147483648 entries"), "%s", err.text);
            gguf_close(&g);
            buf_free(&f.bytes);
        }
    }

    TEST("a text that cannot be counted is refused")
    {
        struct vocab_file f;
        struct tokenizer *t = NULL;
        struct bz_err err = { "" };
        put_file(&f);
        CHECK_MSG(!vocab_file_open(&f, &t, &err), "%s", err.text);
        if (!t) return;
        struct ids ids = { 0 };
        struct str text = { "a", (size_t)INT32_MAX + 1 };
        struct tokenize_options opt = { 0 };
        CHECK(tokenizer_encode(t, text, opt, &ids, &err) == BZ_ERR_LIMIT && ids.n == 0);
        tokenizer_close(t);
    }
}

static void test_keys(void)
{
    TEST("a file may add ends of generation and name tokens that are never drawn")
    {
        static const int32_t end_ids[] = { 0, 30 }, never[] = { 41, 40 };
        struct vocab_file f;
        struct tokenizer *t = NULL;
        struct bz_err err = { "" };
        put_file(&f);
        vocab_file_str(&f, "tokenizer.ggml.pre", "gemma4");
        vocab_file_u32(&f, "tokenizer.ggml.eos_token_id", 42);
        vocab_file_i32s(&f, "tokenizer.ggml.eos_token_ids", end_ids, 2);
        vocab_file_i32s(&f, "tokenizer.ggml.suppress_tokens", never, 2);
        CHECK_MSG(!vocab_file_open(&f, &t, &err), "%s", err.text);
        if (!t) return;
        int n_ends = 0;
        for (int32_t i = 0; i < (int32_t)N_TOKENS; i++) n_ends += tokenizer_is_end(t, i);
        CHECK(n_ends == 6 && tokenizer_is_end(t, 42) && tokenizer_is_end(t, 30));
        size_t n;
        const int32_t *ids = tokenizer_suppressed(t, &n);
        CHECK(n == 2 && ids[0] == 41 && ids[1] == 40);
        tokenizer_close(t);
    }
}

static void test_twins(void)
{
    TEST("of two tokens of one text the first is the one that text becomes")
    {
        struct vocab_file f;
        struct tokenizer *t = NULL;
        struct bz_err err = { "" };
        struct tokenize_options opt = { 0 };
        struct ids ids = { 0 };
        uint32_t hell = 0;
        while (!str_is(texts[hell], "hell")) hell++;
        texts[hell + 1] = str_of("hello"); /* right after what the merge before "hell o" makes */
        put_file(&f);
        CHECK_MSG(!vocab_file_open(&f, &t, &err), "%s", err.text);
        if (!t) return;
        CHECK(!tokenizer_encode(t, str_of("hello"), opt, &ids, &err));
        CHECK(ids.n == 2 && ids.data[1] == 0 && str_is(texts[0], "hello"));
        ids_free(&ids);
        tokenizer_close(t);
        make_lists();
    }
}

static void test_apart(void)
{
    TEST("a character that is a control token is written in bytes, and no merge begins or ends "
         "with it")
    {
        struct vocab_file f;
        struct tokenizer *t = NULL;
        struct bz_err err = { "" };
        struct tokenize_options opt = { .no_bos = true, .plain = true };
        struct ids ids = { 0 };
        uint32_t a = 0;
        while (!str_is(texts[a], "a")) a++;
        types[a] = 3; /* control */
        put_file(&f);
        CHECK_MSG(!vocab_file_open(&f, &t, &err), "%s", err.text);
        if (!t) return;
        CHECK(!tokenizer_encode(t, str_of("aaaa"), opt, &ids, &err));
        CHECK(ids.n == 4);
        for (size_t i = 0; i < ids.n; i++) CHECK(ids.data[i] == (int32_t)N_HAND + 'a');
        ids_free(&ids);
        tokenizer_close(t);
        make_lists();
    }
}

static void test_memory(void)
{
    TEST("whichever allocation fails, the answer is an error and nothing leaks")
    {
        struct vocab_file f;
        struct source src;
        struct gguf g;
        struct bz_err err = { "" };
        put_file(&f);
        vocab_file_seal(&f);
        CHECK(!source_open_memory(&src, "made-up.gguf", f.bytes.data, f.bytes.n, &err));
        CHECK(!gguf_open(&g, &src, 1, &err));
        struct buf text = { 0 };
        for (int i = 0; i < 1000; i++) buf_puts(&text, "abcdea");

        int64_t live = mem_live();
        enum bz_status st = BZ_ERR_MEMORY;
        uint64_t k = 1;
        for (; st && k < 100; k++) {
            struct tokenizer *t = NULL;
            struct ids ids = { 0 };
            struct tokenize_options opt = { 0 };
            mem_fail_at(k);
            st = tokenizer_open(&t, &g, &err);
            if (!st) st = tokenizer_encode(t, buf_str(&text), opt, &ids, &err);
            CHECK(st == BZ_OK || (st == BZ_ERR_MEMORY && ids.n == 0));
            tokenizer_close(t);
            ids_free(&ids);
            CHECK_MSG(mem_live() == live, "allocation %u", (unsigned)k);
        }
        mem_fail_at(0);
        CHECK(st == BZ_OK && k > 10);
        buf_free(&text);
        gguf_close(&g);
        buf_free(&f.bytes);
        tokenizer_close(NULL);
    }
}

/* Read the vocabulary of a file n entries at a time: `ids` gets `text` encoded by it. Returns how
 * many calls the reading took. */
static unsigned encode_in_pieces(const struct gguf *g, uint32_t n, struct str text, struct ids *ids)
{
    struct tokenizer *t = NULL;
    struct bz_err err = { "" };
    struct tokenize_options opt = { 0 };
    unsigned calls = 1;
    bool more = true;
    CHECK_MSG(!tokenizer_begin(&t, g, &err), "%s", err.text);
    while (t && !tokenizer_read_on(t, n, &more, &err) && more) calls++;
    CHECK(t && !more && !tokenizer_read_on(t, n, &more, &err) && !more);
    CHECK_MSG(!tokenizer_encode(t, text, opt, ids, &err), "%s", err.text);
    tokenizer_close(t);
    return calls;
}

static void test_pieces(void)
{
    TEST("tokens and merges that are read a few at a time are the same")
    {
        struct vocab_file f;
        struct source src;
        struct gguf g;
        struct bz_err err = { "" };
        struct ids whole = { 0 }, pieces = { 0 };
        put_file(&f);
        vocab_file_seal(&f);
        CHECK(!source_open_memory(&src, "made-up.gguf", f.bytes.data, f.bytes.n, &err));
        CHECK(!gguf_open(&g, &src, 1, &err));
        struct str text = str_of("abcdea abc dea aab");
        CHECK(encode_in_pieces(&g, UINT32_MAX, text, &whole) == 1);
        CHECK(encode_in_pieces(&g, 1, text, &pieces) >= N_TOKENS + N_MERGES);
        CHECK(whole.n > 0 && whole.n == pieces.n);
        CHECK(whole.n == pieces.n && memcmp(whole.data, pieces.data, whole.n * 4) == 0);
        struct tokenizer *t = NULL;
        for (uint32_t n = 0; n < N_TOKENS + N_MERGES; n += 50) {
            bool more = true;
            CHECK(!tokenizer_begin(&t, &g, &err) && tokenizer_size(t) == N_TOKENS);
            if (n) CHECK(!tokenizer_read_on(t, n, &more, &err) && more);
            tokenizer_close(t); /* before all is read */
        }
        ids_free(&whole);
        ids_free(&pieces);
        gguf_close(&g);
        buf_free(&f.bytes);
    }
}

int main(void)
{
    make_lists();
    test_pieces();
    test_hostile();
    test_claims();
    test_keys();
    test_twins();
    test_apart();
    test_memory();
    arena_free(&room);
    CHECK(mem_live() == 0);
    return check_done();
}
