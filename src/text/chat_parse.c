/* chat_parse.c - the model's text, piece by piece, to content, reasoning and tool calls.
 *
 *              <|channel>                      <|tool_call>
 *   THINKING <------------ CONTENT --------------------------> CALL
 *       |                   ^   ^                               |
 *       +-------------------+   +--------- AFTER_CALL <---------+
 *            <channel|>                                <tool_call|>
 *
 * Text before a tag loses its trailing whitespace, and whitespace after <channel|> or a call is
 * dropped; so whitespace is held back until it is known what follows, as is the beginning of a tag.
 * Everything else leaves at once. A stray <tool_call|> or <|tool_response> after a call is noise.
 *
 * Knows no tokens: the caller stops at the end-of-turn ids.
 */
#include "text/chat.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "text/chat_parts.h"

enum state { CONTENT, THINKING, CALL, AFTER_CALL };

struct chat_parser {
    struct chat_parser_options opt;
    struct chat_sink sink;
    enum state state;
    bool skip_space; /* CONTENT: just behind <channel|> */
    bool name_due;   /* THINKING: just behind <|channel>, where the channel's name stands */
    bool ended;
    struct buf text; /* valid UTF-8; what is before `start` has been dealt with */
    size_t start;
    size_t safe;   /* start..safe may leave: its last character is not whitespace */
    size_t pos;    /* safe..pos has been looked at and is held back */
    char bytes[4]; /* the beginning of a code point */
    size_t n_bytes;
};

static struct str from(const struct chat_parser *p, size_t at)
{
    return (struct str) { p->text.data + at, p->text.n - at };
}

static void enter(struct chat_parser *p, enum state state, size_t at)
{
    p->state = state;
    p->start = p->safe = p->pos = at;
}

static void emit(struct chat_parser *p, enum chat_event e, size_t until)
{
    struct str text = { p->text.data + p->start, until - p->start };
    p->start = until;
    if (!text.n || (e == CHAT_REASONING && !p->opt.thinking)) return;
    p->sink.event(p->sink.ctx, e, (struct str) { NULL, 0 }, text);
}

/* s is the beginning of tag, but not all of it. */
static bool is_partial(struct str s, const char *tag)
{
    return s.n < strlen(tag) && memcmp(s.p, tag, s.n) == 0;
}

/* Look for a tag from pos on. Found: its index, pos at it, safe behind the last character before it
 * that is not whitespace. Not found: n_tags, with pos at the end or at a partial tag. */
static size_t scan(struct chat_parser *p, const char *const *tags, size_t n_tags, bool ending)
{
    while (p->pos < p->text.n) {
        struct str s = from(p, p->pos);
        for (size_t i = 0; *s.p == '<' && i < n_tags; i++) {
            if (str_starts(s, tags[i])) return i;
            if (!ending && is_partial(s, tags[i])) return n_tags;
        }
        size_t space = chat_space_first(s);
        p->pos += space ? space : utf8_len((unsigned char)*s.p);
        if (!space) p->safe = p->pos;
    }
    return n_tags;
}

/* Each step returns true when the state changed and there may be more to do. */

static bool step_content(struct chat_parser *p, bool ending)
{
    static const char *const tags[] = { TAG_THINK_OPEN, TAG_CALL_OPEN };
    if (p->skip_space) {
        enter(p, CONTENT, p->text.n - chat_trim_left(from(p, p->start)).n);
        if (p->start == p->text.n) return false;
        p->skip_space = false;
    }
    size_t tag = scan(p, tags, 2, ending);
    emit(p, CHAT_CONTENT, ending && tag == 2 ? p->text.n : p->safe);
    if (tag == 2) return false;
    p->name_due = tag == 0;
    enter(p, tag == 0 ? THINKING : CALL, p->pos + strlen(tags[tag]));
    return true;
}

/* Drop "thought\n". A block that has only the name is empty too. False: wait for more text. */
static bool skip_channel_name(struct chat_parser *p, bool ending)
{
    struct str s = from(p, p->start);
    bool partial =
        is_partial(s, TAG_THINK_NAME "\n") || is_partial(s, TAG_THINK_NAME TAG_THINK_CLOSE);
    if (partial && !ending) return false;
    size_t n = 0;
    if (str_starts(s, TAG_THINK_NAME "\n")) n = strlen(TAG_THINK_NAME "\n");
    else if (str_starts(s, TAG_THINK_NAME TAG_THINK_CLOSE) || str_is(s, TAG_THINK_NAME))
        n = strlen(TAG_THINK_NAME);
    enter(p, THINKING, p->start + n);
    p->name_due = false;
    return true;
}

static bool step_thinking(struct chat_parser *p, bool ending)
{
    static const char *const tags[] = { TAG_THINK_CLOSE };
    if (p->name_due && !skip_channel_name(p, ending)) return false;
    size_t tag = scan(p, tags, 1, ending);
    emit(p, CHAT_REASONING, ending && tag == 1 ? p->text.n : p->safe);
    if (tag == 1) return false;
    p->skip_space = true;
    enter(p, CONTENT, p->pos + strlen(TAG_THINK_CLOSE));
    return true;
}

/* Report the call in start..end, or its raw text up to `until` when it cannot be read. */
static void report_call(struct chat_parser *p, size_t end, size_t until)
{
    struct buf args = { 0 };
    struct str name, body = { p->text.data + p->start, end - p->start };
    if (chat_read_call(body, end < until, p->opt.tools, &name, &args)) {
        p->sink.event(p->sink.ctx, CHAT_TOOL_CALL, name, buf_str(&args));
    } else if (args.failed) {
        p->text.failed = true;
    } else {
        p->sink.event(p->sink.ctx, CHAT_CONTENT, (struct str) { NULL, 0 }, str_of(TAG_CALL_OPEN));
        emit(p, CHAT_CONTENT, until);
    }
    buf_free(&args);
}

static bool step_call(struct chat_parser *p, bool ending)
{
    static const char *const tags[] = { TAG_CALL_CLOSE };
    size_t tag = scan(p, tags, 1, ending);
    if (tag == 1 && !ending) return false;
    size_t until = p->pos + (tag == 0 ? strlen(TAG_CALL_CLOSE) : 0);
    report_call(p, p->pos, until);
    enter(p, AFTER_CALL, until);
    return tag == 0;
}

static bool step_after_call(struct chat_parser *p, bool ending)
{
    for (;;) {
        struct str s = chat_trim_left(from(p, p->start));
        enter(p, AFTER_CALL, p->text.n - s.n);
        if (str_starts(s, TAG_CALL_CLOSE)) {
            p->start += strlen(TAG_CALL_CLOSE);
        } else if (str_starts(s, TAG_ANSWER_OPEN)) {
            p->start += strlen(TAG_ANSWER_OPEN);
        } else {
            bool partial = is_partial(s, TAG_CALL_CLOSE) || is_partial(s, TAG_ANSWER_OPEN);
            if (!s.n || (partial && !ending)) return false;
            enter(p, CONTENT, p->start);
            return true;
        }
    }
}

static void advance(struct chat_parser *p, bool ending)
{
    static bool (*const steps[])(struct chat_parser *, bool) = {
        [CONTENT] = step_content,
        [THINKING] = step_thinking,
        [CALL] = step_call,
        [AFTER_CALL] = step_after_call,
    };
    while (!p->text.failed && steps[p->state](p, ending)) continue;
    if (p->text.failed || !p->start) return;
    memmove(p->text.data, p->text.data + p->start, p->text.n - p->start);
    p->text.n -= p->start;
    p->pos -= p->start;
    p->safe -= p->start;
    p->start = 0;
}

/* The bytes at hand hold a whole code point, or can no longer become one. */
static bool is_decidable(const struct chat_parser *p)
{
    if (!p->n_bytes) return false;
    bool broken = p->n_bytes > 1 && (p->bytes[p->n_bytes - 1] & 0xc0) != 0x80;
    return broken || p->n_bytes >= utf8_len((unsigned char)p->bytes[0]);
}

/* Append the code point that the bytes at hand begin with; a malformed one becomes U+FFFD. */
static void take_code_point(struct chat_parser *p)
{
    char out[4];
    size_t used;
    uint32_t c = utf8_decode(p->bytes, p->n_bytes, &used);
    buf_put(&p->text, out, utf8_encode(c, out));
    p->n_bytes -= used;
    memmove(p->bytes, p->bytes + used, p->n_bytes);
}

enum bz_status chat_parser_open(struct chat_parser **out, struct chat_parser_options opt,
                                struct chat_sink sink, struct bz_err *err)
{
    struct chat_parser *p = mem_alloc(1, sizeof *p);
    if (!p) return fail_memory(err, sizeof *p);
    p->opt = opt;
    p->sink = sink;
    p->state = opt.starts_in_thought ? THINKING : CONTENT;
    *out = p;
    return BZ_OK;
}

enum bz_status chat_parser_feed(struct chat_parser *p, struct str text, struct bz_err *err)
{
    if (p->ended) return fail(err, BZ_ERR_ARGUMENT, "text was fed to a chat parser after its end");
    for (size_t i = 0; i < text.n; i++) {
        p->bytes[p->n_bytes++] = text.p[i];
        while (is_decidable(p)) take_code_point(p);
    }
    if (p->text.n) advance(p, false);
    return p->text.failed ? fail_memory(err, p->text.cap) : BZ_OK;
}

enum bz_status chat_parser_end(struct chat_parser *p, struct bz_err *err)
{
    while (p->n_bytes) take_code_point(p);
    p->ended = true;
    buf_put(&p->text, "", 0);
    advance(p, true);
    return p->text.failed ? fail_memory(err, p->text.cap) : BZ_OK;
}

void chat_parser_close(struct chat_parser *p)
{
    if (!p) return;
    buf_free(&p->text);
    mem_free(p);
}
