/* test_text_growth.c - texts made to be slow: eight times as much of one takes about eight times as
 * long.
 *
 * Measured is the processor's time of this process, the least of several runs of each size by
 * turns. A busy machine only adds to a time, so runs go on until the two are in proportion. Data
 * that no longer fits a cache takes up to three times its share of time. Work that grows with the
 * square takes 64 times as long, however often it is timed. */
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "check.h"
#include "text/chat.h"
#include "vocab_fixture.h"

enum { MOST_RUNS = 40 };

static double seconds_of(void (*run)(const void *input), const void *input)
{
    clock_t start = clock();
    run(input);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Runs of a millisecond are too short to compare, and quick enough. */
static bool in_proportion(const double took[2])
{
    return took[1] < 32 * took[0] || took[1] < 1e-3;
}

/* `make` gives what `run` takes, of size n. */
static void check_growth(void *(*make)(size_t n), void (*run)(const void *), void (*done)(void *),
                         size_t n)
{
    double took[2] = { 1e9, 1e9 };
    void *input[2] = { make(n), make(8 * n) };
    for (int i = 0; i < MOST_RUNS && (i < 3 || !in_proportion(took)); i++)
        for (size_t k = 0; k < 2; k++) took[k] = least(took[k], seconds_of(run, input[k]));
    for (size_t k = 0; k < 2; k++) done(input[k]);
    CHECK_MSG(in_proportion(took), "%zu: %g s, eight times as much: %g s", n, took[0], took[1]);
}

static void done_buf(void *input)
{
    buf_free(input);
    mem_free(input);
}

/* ---- answers of tools ---- */

static void *make_answers(size_t n)
{
    struct buf *b = mem_alloc(1, sizeof *b);
    buf_puts(b, "[{\"role\":\"assistant\",\"tool_calls\":[");
    for (size_t i = 0; i < n; i++)
        buf_printf(b, "%s{\"id\":\"call_%zu\",\"function\":{\"name\":\"f%zu\"}}", i ? "," : "", i,
                   i);
    buf_puts(b, "]}");
    for (size_t i = 0; i < n; i++)
        buf_printf(b, ",{\"role\":\"tool\",\"tool_call_id\":\"call_%zu\",\"content\":\"x\"}",
                   n - 1 - i);
    buf_puts(b, "]");
    return b;
}

/* All of one call, which has as many members. */
static void *make_answers_of_one(size_t n)
{
    struct buf *b = mem_alloc(1, sizeof *b);
    buf_puts(b, "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\"");
    for (size_t i = 0; i < n; i++) buf_printf(b, ",\"c%zu\":0", i);
    buf_puts(b, ",\"function\":{\"arguments\":{}");
    for (size_t i = 0; i < n; i++) buf_printf(b, ",\"f%zu\":0", i);
    buf_puts(b, ",\"name\":\"f\"}}]}");
    for (size_t i = 0; i < n; i++)
        buf_puts(b, ",{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}");
    buf_puts(b, "]");
    return b;
}

static void render(struct str messages_text, struct str tools_text)
{
    struct arena a = { 0 };
    struct json *messages = NULL, *tools = NULL;
    struct marked out = { 0 };
    if (json_parse(&messages, messages_text, &a, NULL) ||
        json_parse(&tools, tools_text, &a, NULL) ||
        chat_render(&out, messages, tools, (struct chat_options) { 0 }, NULL, NULL))
        CHECK(false);
    marked_free(&out);
    arena_free(&a);
}

static void run_render(const void *input)
{
    render(buf_str(input), str_of("[]"));
}

/* ---- schemas of tools ---- */

static void run_declare(const void *input)
{
    render(str_of("[]"), buf_str(input));
}

/* n times `part`, which has one number, between `head` and `tail`. */
static struct buf *make_tool(const char *head, const char *part, const char *tail, size_t n)
{
    struct buf *b = mem_alloc(1, sizeof *b);
    buf_puts(b, "[{\"function\":{\"name\":\"f\",\"parameters\":{");
    buf_puts(b, head);
    for (size_t i = 0; i < n; i++) {
        const char *hash = strchr(part, '#');
        buf_printf(b, "%s%.*s%zu%s", i ? "," : "", (int)(hash - part), part, i, hash + 1);
    }
    buf_puts(b, tail);
    buf_puts(b, "}}}]");
    return b;
}

static void *make_all_of(size_t n)
{
    return make_tool("\"allOf\":[",
                     "{\"title\":\"t\",\"properties\":{\"a#\":{}},\"required\":[\"a\"]}", "]", n);
}

static void *make_any_of(size_t n)
{
    return make_tool("\"anyOf\":[", "{\"type\":\"t#\",\"properties\":{\"a\":{}}}", "]", n);
}

/* Unions of one another, told apart by a property that all of them have. */
static void *make_unions(size_t n)
{
    return make_tool(
        "\"anyOf\":[",
        "{\"properties\":{\"kind\":{\"const\":#},\"b\":{\"anyOf\":[{\"properties\":{\"a\":{}}},"
        "{\"properties\":{\"a\":{}}}]}}}",
        "]", n);
}

/* Of a type within itself, among as many definitions as it has references. */
static void *make_refs(size_t n)
{
    struct buf *b = make_tool("\"$ref\":\"#/$defs/d\",\"$defs\":{\"d\":{\"properties\":{",
                              "\"p#\":{\"$ref\":\"@/$defs/d\"}", "}},", n);
    for (size_t i = 0; i < b->n; i++)
        if (b->data[i] == '@') b->data[i] = '#';
    b->n -= strlen("}}}]");
    for (size_t i = 0; i < n; i++) buf_printf(b, "%s\"%zu\":{}", i ? "," : "", i);
    buf_puts(b, "}}}}]");
    return b;
}

/* ---- a call that names one key again and again, or opens quotes that nothing closes ---- */

static const struct json *tools; /* of which calls are read */

static void *make_call(size_t n)
{
    struct buf *b = mem_alloc(1, sizeof *b);
    buf_puts(b, "call:f{");
    for (size_t i = 0; i < n; i++) buf_printf(b, "%sk%zu:1", i ? "," : "", i / 2);
    buf_puts(b, "}");
    return b;
}

static void *make_quotes(size_t n)
{
    struct buf *b = mem_alloc(1, sizeof *b);
    buf_puts(b, "call:f{");
    for (size_t i = 0; i < n; i++) buf_printf(b, "%ss:'x", i ? "," : "");
    buf_puts(b, "}");
    return b;
}

static void no_event(void *ctx, enum chat_event e, struct str name, struct str text)
{
    (void)ctx, (void)name, (void)text;
    CHECK(e == CHAT_TOOL_CALL);
}

/* The text between a call's tags, a few bytes at a time. */
static void run_parse(const void *input)
{
    struct str text = buf_str(input);
    struct chat_parser *p = NULL;
    struct chat_sink sink = { NULL, no_event };
    if (chat_parser_open(&p, (struct chat_parser_options) { .tools = tools }, sink, NULL))
        CHECK(false);
    if (!p) return;
    CHECK(!chat_parser_feed(p, str_of("<|tool_call>"), NULL));
    for (size_t at = 0; at < text.n; at += 5) {
        size_t n = text.n - at < 5 ? text.n - at : 5;
        if (chat_parser_feed(p, (struct str) { text.p + at, n }, NULL)) CHECK(false);
    }
    CHECK(!chat_parser_feed(p, str_of("<tool_call|>"), NULL) && !chat_parser_end(p, NULL));
    chat_parser_close(p);
}

/* ---- special tokens that almost match everywhere ---- */

static struct tokenizer *almost;

/* A tree of tokens aaa...: at every length one goes on below and one above. */
static void open_almost(void)
{
    enum { MOST = 128 };
    struct vocab_file f;
    struct bz_err err = { "" };
    make_lists();
    size_t n = 0, n_all = N_TOKENS + 2 * (MOST - 1);
    struct str *all = mem_alloc(n_all, sizeof *all);
    int32_t *kinds = mem_alloc(n_all, sizeof *kinds);
    for (; n < N_TOKENS; n++) all[n] = texts[n], kinds[n] = types[n];
    for (size_t length = 2; length <= MOST; length++) {
        for (int above = 0; above < 2; above++, n++) {
            char z[MOST];
            memset(z, 'a', length);
            z[length - 1] = above ? 'b' : '`';
            all[n] = (struct str) { arena_copy_str(&room, z, length), length };
            kinds[n] = TOKEN_USER_DEFINED;
        }
    }
    vocab_file_begin(&f);
    vocab_file_str(&f, "tokenizer.ggml.model", "gemma4");
    vocab_file_strs(&f, "tokenizer.ggml.tokens", all, n);
    vocab_file_i32s(&f, "tokenizer.ggml.token_type", kinds, n);
    vocab_file_strs(&f, "tokenizer.ggml.merges", merge_texts, N_MERGES);
    CHECK_MSG(!vocab_file_open(&f, &almost, &err), "%s", err.text);
    mem_free(all);
    mem_free(kinds);
}

static void *make_text(size_t n)
{
    struct buf *b = mem_alloc(1, sizeof *b);
    for (size_t i = 0; i < n; i++) buf_putc(b, 'a');
    return b;
}

static void run_encode(const void *input)
{
    struct ids ids = { 0 };
    CHECK(!tokenizer_encode(almost, buf_str(input), (struct tokenize_options) { 0 }, &ids, NULL));
    ids_free(&ids);
}

/* A vocabulary whose token `at` has this text and type, or whose last merge is this. */
static void check_refused(struct str text, const char *merge, const char *sentence)
{
    struct vocab_file f;
    struct tokenizer *t = NULL;
    struct bz_err err = { "" };
    make_lists();
    if (merge) merge_texts[N_MERGES - 1] = str_of(merge);
    else texts[N_HAND - 1] = text, types[N_HAND - 1] = TOKEN_CONTROL;
    put_file(&f);
    CHECK(vocab_file_open(&f, &t, &err) == BZ_ERR_FORMAT);
    CHECK_MSG(strstr(err.text, sentence), "%s", err.text);
    tokenizer_close(t);
}

int main(void)
{
    TEST("answers find the calls they belong to")
    {
        check_growth(make_answers, run_render, done_buf, 5000);
        check_growth(make_answers_of_one, run_render, done_buf, 1000);
    }

    TEST("schemas are joined, and their references found, in the time it takes to read them")
    {
        check_growth(make_all_of, run_declare, done_buf, 5000);
        check_growth(make_any_of, run_declare, done_buf, 5000);
        check_growth(make_unions, run_declare, done_buf, 2000);
        check_growth(make_refs, run_declare, done_buf, 5000);
    }

    TEST("a call is read as it comes, its repeated keys too")
    check_growth(make_call, run_parse, done_buf, 20000);

    TEST("quotes that nothing closes are looked for once")
    {
        struct arena a = { 0 };
        struct json *list = NULL;
        CHECK(!json_parse(&list,
                          str_of("[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":"
                                 "{\"s\":{\"type\":\"string\"}}}}}]"),
                          &a, NULL));
        tools = list;
        check_growth(make_quotes, run_parse, done_buf, 2000);
        tools = NULL;
        arena_free(&a);
    }

    TEST("a text of beginnings of special tokens")
    {
        open_almost();
        if (almost) check_growth(make_text, run_encode, done_buf, 25000);
        tokenizer_close(almost);
    }

    TEST("special tokens and merges that are too long to look for are refused")
    {
        static char longest[2048];
        memset(longest, 'a', sizeof longest - 1);
        check_refused((struct str) { longest, 129 }, NULL, "has 129 bytes; 128 is the most");
        longest[1] = ' ';
        check_refused((struct str) { 0 }, longest, "makes a text of 2046 bytes; 1024 is the most");
    }

    arena_free(&room);
    return check_done();
}
