/* grammar_check.c - `bezel grammar check`: does each line of standard input keep to a grammar. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/grammar_cmd.h"
#include "engine.h"

/* ---- where in a document a byte stands ---- */

/* A container that is open: the key or the number of what it is about to hold. */
struct level {
    bool object;
    struct str key; /* as written, without its quotes */
    size_t index;
};

enum { MAX_SHOWN = 64 }; /* deeper levels are not shown */

/* The JSON pointer of the value that the byte at `end` belongs to, read off the text before it. */
static void put_place(struct buf *b, struct str text, size_t end)
{
    struct level levels[MAX_SHOWN];
    size_t n = 0;
    bool is_key = false;
    for (size_t i = 0; i < end; i++) {
        char c = text.p[i];
        if (c == '"') {
            size_t from = ++i;
            while (i < end && text.p[i] != '"') i += text.p[i] == '\\' ? 2 : 1;
            if (is_key && n && n <= MAX_SHOWN)
                levels[n - 1].key = (struct str) { text.p + from, (i < end ? i : end) - from };
            is_key = false;
        } else if (c == '{' || c == '[') {
            if (n < MAX_SHOWN) levels[n] = (struct level) { .object = c == '{' };
            is_key = c == '{';
            n++;
        } else if ((c == '}' || c == ']') && n) {
            n--;
        } else if (c == ',' && n && n <= MAX_SHOWN) {
            is_key = levels[n - 1].object;
            levels[n - 1].index++;
            levels[n - 1].key.n = 0;
        }
    }
    for (size_t i = 0; i < n && i < MAX_SHOWN; i++) {
        if (!levels[i].object) buf_printf(b, "/%zu", levels[i].index);
        else if (levels[i].key.n) buf_printf(b, "/%.*s", STR_ARG(levels[i].key));
    }
}

/* ---- one line ---- */

struct checked {
    bool accepted;
    size_t at; /* the first byte that cannot stand there, or the length: it must not end here */
};

static enum bz_status check_bytes(struct grammar *g, struct str line, struct checked *c,
                                  struct bz_err *err)
{
    struct matcher *m = NULL;
    enum bz_status st = matcher_open(&m, g, NULL, err);
    if (st == BZ_OK) st = matcher_read(m, line, &c->at, err);
    c->accepted = st == BZ_OK && c->at == line.n && matcher_may_end(m);
    matcher_close(m);
    return st;
}

/* Token by token, each through its mask. */
static enum bz_status check_tokens(bz_engine *e, struct vocab *v, struct grammar *g,
                                   struct str line, struct checked *c, struct bz_err *err)
{
    struct matcher *m = NULL;
    int32_t *ids = NULL;
    size_t n = 0, i = 0;
    bool ok = true;
    enum bz_status st = bz_tokenize(e, line.p, line.n, false, true, &ids, &n, err);
    if (st == BZ_OK) st = matcher_open(&m, g, v, err);
    for (; i < n && st == BZ_OK && ok; i++) {
        const uint32_t *mask = matcher_mask(m);
        if (!mask) {
            st = matcher_status(m, err);
            break;
        }
        bool allowed = mask[ids[i] / 32] >> ids[i] % 32 & 1;
        st = matcher_advance(m, ids[i], &ok, err);
        if (st == BZ_OK && ok != allowed)
            st = fail(err, BZ_ERR_UNSUPPORTED, "token %zu: the mask and the grammar disagree", i);
    }
    if (st == BZ_OK && ok) {
        c->accepted = matcher_may_end(m);
        c->at = line.n;
    } else if (st == BZ_OK) {
        st = check_bytes(g, line, c, err); /* which of the token's bytes it is */
    }
    matcher_close(m);
    bz_free(ids);
    return st;
}

static void print_result(struct str line, struct checked c)
{
    struct buf b = { 0 };
    if (c.accepted) {
        printf("accept\n");
        return;
    }
    put_place(&b, line, c.at);
    printf("reject at byte %zu, #%s: %s\n", c.at, b.n ? b.data : "",
           c.at == line.n ? "the text must not end here" : "this byte cannot follow");
    buf_free(&b);
}

/* ---- the command ---- */

static enum bz_status check_lines(const struct grammar_source *a, struct grammar *g,
                                  struct bz_err *err)
{
    struct buf input = { 0 };
    enum bz_status st = cli_read_stdin(&input, err);
    for (size_t i = 0; i < input.n && st == BZ_OK;) {
        const char *end = memchr(input.data + i, '\n', input.n - i);
        struct str line = { input.data + i, end ? (size_t)(end - input.data) - i : input.n - i };
        struct checked c = { 0 };
        st = a->v ? check_tokens(a->e, a->v, g, line, &c, err) : check_bytes(g, line, &c, err);
        if (st == BZ_OK) print_result(line, c);
        i += line.n + 1;
    }
    buf_free(&input);
    return st;
}

int grammar_check(int argc, char **argv)
{
    struct grammar_source a = { .options.any_form = true };
    const struct cli_option options[] = { GRAMMAR_OPTIONS(&a) };
    const struct cli_command c = {
        "grammar check",
        "--schema FILE | --grammar FILE | --regex R",
        "For each line of standard input \"accept\", or \"reject\" with the byte and the place.",
        options,
        sizeof options / sizeof *options,
        0,
        0
    };
    int code;
    const char *unused;
    struct bz_err err;
    struct grammar *g = NULL;
    if (cli_parse(&c, argc, argv, &unused, &code) < 0) return code;
    if (!grammar_source_is_one(&a)) return cli_misuse(&c, GRAMMAR_ONE_OF);
    enum bz_status st = grammar_source_open(&a, &g, &err);
    if (st == BZ_OK) st = check_lines(&a, g, &err);
    grammar_close(g);
    grammar_source_close(&a);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
