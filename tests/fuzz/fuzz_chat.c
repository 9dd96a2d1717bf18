/* fuzz_chat.c - any bytes, cut anywhere, give the chat parser the same transcript. As a constrained
 * answer they give whole code points.
 *
 * Byte 0: options. Byte 1: seed of the cuts. The rest is the model's text. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct transcript {
    struct buf text;
    int last;
};

static void on_event(void *ctx, enum chat_event e, struct str name, struct str text)
{
    struct transcript *t = ctx;
    for (size_t i = 0, used; i < text.n; i += used)
        if (utf8_decode(text.p + i, text.n - i, &used) == 0xfffd && used == 1) abort();
    if (e == CHAT_TOOL_CALL) {
        struct arena a = { 0 };
        struct json *j = NULL;
        if (!name.n || json_parse(&j, text, &a, NULL) || j->type != JSON_OBJECT) abort();
        arena_free(&a);
    } else if (!text.n && e != CHAT_CALL_BEGIN) {
        abort();
    }
    if (e == CHAT_TOOL_CALL || t->last != (int)e) buf_printf(&t->text, "\n%d:", (int)e);
    buf_put_str(&t->text, name);
    buf_put_str(&t->text, text);
    t->last = (int)e;
}

enum { BY_TAGS = 1000 };

/* step 0: all at once; 1: byte by byte; more: random pieces below step bytes. BY_TAGS: each ends
 * where a tag may end. */
static struct buf parse(struct str text, struct chat_parser_options opt, uint32_t step,
                        uint64_t seed)
{
    struct transcript t = { .last = -1 };
    struct chat_parser *p = NULL;
    struct rng rng = { seed };
    if (chat_parser_open(&p, opt, (struct chat_sink) { &t, on_event }, NULL)) abort();
    for (size_t at = 0, n; at < text.n; at += n) {
        const char *end = step == BY_TAGS ? memchr(text.p + at, '>', text.n - at) : NULL;
        n = step == 0 ? text.n : end ? (size_t)(end + 1 - text.p) - at : 1 + rng_below(&rng, step);
        if (n > text.n - at) n = text.n - at;
        if (chat_parser_feed(p, (struct str) { text.p + at, n }, NULL)) abort();
    }
    if (chat_parser_end(p, NULL)) abort();
    chat_parser_close(p);
    return t.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char schema[] =
        "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":\"string\"}"
        ","
        "\"n\":{\"type\":\"integer\"},\"u\":{\"type\":[\"null\",\"string\"]}}}}}]";
    if (size < 2) return 0;
    struct arena a = { 0 };
    struct json *tools = NULL;
    if (json_parse(&tools, str_of(schema), &a, NULL)) abort();
    struct chat_parser_options opt = { .thinking = data[0] & 1,
                                       .starts_in_thought = (data[0] & 2) != 0,
                                       .tools = data[0] & 4 ? NULL : tools };
    struct str text = { (const char *)data + 2, size - 2 };
    struct buf whole = parse(text, opt, 0, 0);
    for (uint32_t step = 1; step <= 9; step += 4) {
        struct buf cut = parse(text, opt, step, data[1]);
        if (!str_eq(buf_str(&whole), buf_str(&cut))) abort();
        buf_free(&cut);
    }
    buf_free(&whole);
    opt.constrained = true;
    whole = parse(text, opt, BY_TAGS, 0);
    buf_free(&whole);
    arena_free(&a);
    return 0;
}
