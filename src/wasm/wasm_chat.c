/* wasm_chat.c - exports: the model's text as content, reasoning and tool calls, piece by piece. */
#include "base/mem.h"
#include "text/chat.h"
#include "wasm/wasm.h"

struct wasm_chat {
    struct chat_parser *parser;
    struct buf events;  /* of the last call: the inside of a JSON array */
    struct arena arena; /* tools */
};

/* An event: {"content": "..."}, {"reasoning": "..."}, or {"name": "...", "arguments": "..."}, where
 * the arguments are a JSON object as text. Of a constrained answer {"name"} is a call that begins,
 * and {"arguments"} the next piece of its object. */
static void put_event(void *ctx, enum chat_event e, struct str name, struct str text)
{
    struct buf *b = ctx;
    static const char *const keys[] = {
        [CHAT_CONTENT] = "\"content\":",
        [CHAT_REASONING] = "\"reasoning\":",
        [CHAT_TOOL_CALL] = ",\"arguments\":",
        [CHAT_CALL_ARGUMENTS] = "\"arguments\":",
    };
    buf_puts(b, b->n ? ",{" : "[{");
    if (e == CHAT_TOOL_CALL || e == CHAT_CALL_BEGIN) {
        buf_puts(b, "\"name\":");
        json_put_string(b, name);
    }
    if (e != CHAT_CALL_BEGIN) {
        buf_puts(b, keys[e]);
        json_put_string(b, text);
    }
    buf_putc(b, '}');
}

EXPORT(void, bz_wasm_chat_close, struct wasm_chat *w)
{
    if (!w) return;
    chat_parser_close(w->parser);
    buf_free(&w->events);
    arena_free(&w->arena);
    mem_free(w);
}

EXPORT(struct wasm_chat *, bz_wasm_chat_open, const char *text, uint32_t n)
{
    struct json *j;
    struct wasm_chat *w = mem_alloc(1, sizeof *w);
    if (!w) {
        wasm_failed(fail_memory(&wasm_err, sizeof *w));
        return NULL;
    }
    enum bz_status st = json_parse(&j, (struct str) { text, n }, &w->arena, &wasm_err);
    if (st == BZ_OK) {
        struct chat_parser_options o = { .thinking = json_flag(j, "thinking"),
                                         .starts_in_thought = json_flag(j, "starts_in_thought"),
                                         .tools = json_get(j, "tools"),
                                         .constrained = json_flag(j, "constrained") };
        struct chat_sink sink = { &w->events, put_event };
        st = chat_parser_open(&w->parser, o, sink, &wasm_err);
    }
    if (!wasm_failed(st)) return w;
    bz_wasm_chat_close(w);
    return NULL;
}

/* The result is the events as a JSON array; empty when there are none. */
static int32_t show_events(struct wasm_chat *w, enum bz_status st)
{
    if (w->events.n) buf_putc(&w->events, ']');
    if (st == BZ_OK && w->events.failed) st = fail_memory(&wasm_err, w->events.n);
    if (wasm_failed(st)) return -1;
    wasm_show(w->events.data, w->events.n);
    return 0;
}

EXPORT(int32_t, bz_wasm_chat_feed, struct wasm_chat *w, const char *text, uint32_t n)
{
    w->events.n = 0;
    return show_events(w, chat_parser_feed(w->parser, (struct str) { text, n }, &wasm_err));
}

EXPORT(int32_t, bz_wasm_chat_end, struct wasm_chat *w)
{
    w->events.n = 0;
    return show_events(w, chat_parser_end(w->parser, &wasm_err));
}
