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
 * The text of a constrained answer has its tags as bytes (tags.h), and its calls leave piece by
 * piece. The caller stops at the end-of-turn ids.
 */
#include "text/chat.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "text/chat_parts.h"
#include "text/tags.h"

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
    /* Of a constrained answer. */
    bool named; /* CALL: its beginning was reported */
    struct call_json arguments;
    struct buf piece;
};

static bool is_tag(char c)
{
    return (unsigned char)c >= BYTE_FIRST;
}

/* A tag as the text has it. */
static const char *spell(const struct chat_parser *p, enum tag_byte tag)
{
    static const char *const texts[] = { TAG_CALL_OPEN,  TAG_CALL_CLOSE,  TAG_QUOTE,
                                         TAG_THINK_OPEN, TAG_THINK_CLOSE, TAG_ANSWER_OPEN };
    static const char *const bytes[] = { "\xf8", "\xf9", "\xfa", "\xfb", "\xfc", "\xfd" };
    return (p->opt.constrained ? bytes : texts)[tag - BYTE_FIRST];
}

static struct str from(const struct chat_parser *p, size_t at)
{
    return (struct str) { p->text.data + at, p->text.n - at };
}

static void enter(struct chat_parser *p, enum state state, size_t at)
{
    p->state = state;
    p->start = p->safe = p->pos = at;
}

static void report(struct chat_parser *p, enum chat_event e, struct str text)
{
    if (text.n) p->sink.event(p->sink.ctx, e, (struct str) { NULL, 0 }, text);
}

/* Tags that mean nothing here are text. */
static void emit(struct chat_parser *p, enum chat_event e, size_t until)
{
    size_t from = p->start, at = from;
    p->start = until;
    if (e == CHAT_REASONING && !p->opt.thinking) return;
    for (; at < until; at++) {
        if (!is_tag(p->text.data[at])) continue;
        report(p, e, (struct str) { p->text.data + from, at - from });
        report(p, e, special_text(tag_special((unsigned char)p->text.data[at])));
        from = at + 1;
    }
    report(p, e, (struct str) { p->text.data + from, until - from });
}

/* s is the beginning of tag, but not all of it. */
static bool is_partial(struct str s, const char *tag)
{
    return s.n < strlen(tag) && memcmp(s.p, tag, s.n) == 0;
}

/* Look for a tag from pos on. Found: its index, pos at it, safe behind the last character before it
 * that is not whitespace. Not found: n_tags, with pos at the end or at a partial tag. */
static size_t scan(struct chat_parser *p, const enum tag_byte *tags, size_t n_tags, bool ending)
{
    while (p->pos < p->text.n) {
        struct str s = from(p, p->pos);
        for (size_t i = 0; (*s.p == '<' || is_tag(*s.p)) && i < n_tags; i++) {
            if (str_starts(s, spell(p, tags[i]))) return i;
            if (!ending && is_partial(s, spell(p, tags[i]))) return n_tags;
        }
        size_t space = chat_space_first(s);
        p->pos += space ? space : is_tag(*s.p) ? 1 : utf8_len((unsigned char)*s.p);
        if (!space) p->safe = p->pos;
    }
    return n_tags;
}

/* Each step returns true when the state changed and there may be more to do. */

static bool step_content(struct chat_parser *p, bool ending)
{
    static const enum tag_byte tags[] = { BYTE_CHANNEL, BYTE_CALL };
    if (p->skip_space) {
        enter(p, CONTENT, p->text.n - chat_trim_left(from(p, p->start)).n);
        if (p->start == p->text.n) return false;
        p->skip_space = false;
    }
    size_t tag = scan(p, tags, 2, ending);
    emit(p, CHAT_CONTENT, ending && tag == 2 ? p->text.n : p->safe);
    if (tag == 2) return false;
    p->name_due = tag == 0;
    enter(p, tag == 0 ? THINKING : CALL, p->pos + strlen(spell(p, tags[tag])));
    return true;
}

/* Drop "thought\n". A block that has only the name is empty too. False: wait for more text. */
static bool skip_channel_name(struct chat_parser *p, bool ending)
{
    struct str s = from(p, p->start), rest = { s.p + strlen(TAG_THINK_NAME), 0 };
    bool partial = is_partial(s, TAG_THINK_NAME), named = str_starts(s, TAG_THINK_NAME);
    if (named) rest.n = s.n - strlen(TAG_THINK_NAME);
    if (named) partial = is_partial(rest, "\n") || is_partial(rest, spell(p, BYTE_CHANNEL_END));
    if (partial && !ending) return false;
    size_t n = 0;
    if (named && str_starts(rest, "\n")) n = strlen(TAG_THINK_NAME "\n");
    else if (named && (!rest.n || str_starts(rest, spell(p, BYTE_CHANNEL_END))))
        n = strlen(TAG_THINK_NAME);
    enter(p, THINKING, p->start + n);
    p->name_due = false;
    return true;
}

static bool step_thinking(struct chat_parser *p, bool ending)
{
    static const enum tag_byte tags[] = { BYTE_CHANNEL_END };
    if (p->name_due && !skip_channel_name(p, ending)) return false;
    size_t tag = scan(p, tags, 1, ending);
    emit(p, CHAT_REASONING, ending && tag == 1 ? p->text.n : p->safe);
    if (tag == 1) return false;
    p->skip_space = !p->opt.constrained;
    enter(p, CONTENT, p->pos + strlen(spell(p, BYTE_CHANNEL_END)));
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

/* `call:NAME` in start..end, behind which the arguments begin. False: it is none. */
static bool begin_call(struct chat_parser *p, size_t end)
{
    struct str s = { p->text.data + p->start, end - p->start };
    if (!str_starts(s, "call:")) return false;
    struct str name = { s.p + strlen("call:"), s.n - strlen("call:") };
    p->sink.event(p->sink.ctx, CHAT_CALL_BEGIN, name, (struct str) { NULL, 0 });
    p->named = true;
    p->arguments = (struct call_json) { 0 };
    enter(p, CALL, end);
    return true;
}

/* A call of a constrained answer, as far as it is there. What cannot be one is text. */
static bool step_constrained_call(struct chat_parser *p, bool ending)
{
    struct str s = from(p, p->start);
    const char *brace = s.n ? memchr(s.p, '{', s.n) : NULL;
    const char *close = s.n ? memchr(s.p, BYTE_CALL_END, s.n) : NULL;
    if (!p->named && brace && !(close && close < brace))
        begin_call(p, (size_t)(brace - p->text.data));
    if (!p->named && !close && !ending) return false;
    size_t end = close ? (size_t)(close - p->text.data) : p->text.n, until = end + (close != NULL);
    if (p->named) {
        p->piece.n = 0;
        call_json_put(&p->arguments, (struct str) { p->text.data + p->start, end - p->start },
                      &p->piece);
        report(p, CHAT_CALL_ARGUMENTS, buf_str(&p->piece));
        p->text.failed |= p->piece.failed;
    } else {
        report(p, CHAT_CONTENT, str_of(TAG_CALL_OPEN));
        emit(p, CHAT_CONTENT, until);
    }
    enter(p, close ? AFTER_CALL : CALL, until);
    p->named &= !close;
    return close != NULL;
}

static bool step_call(struct chat_parser *p, bool ending)
{
    static const enum tag_byte tags[] = { BYTE_CALL_END };
    if (p->opt.constrained) return step_constrained_call(p, ending);
    size_t tag = scan(p, tags, 1, ending);
    if (tag == 1 && !ending) return false;
    size_t until = p->pos + (tag == 0 ? strlen(TAG_CALL_CLOSE) : 0);
    report_call(p, p->pos, until);
    enter(p, AFTER_CALL, until);
    return tag == 0;
}

static bool step_after_call(struct chat_parser *p, bool ending)
{
    const char *close = spell(p, BYTE_CALL_END), *answer = spell(p, BYTE_RESPONSE);
    for (;;) {
        struct str s = chat_trim_left(from(p, p->start));
        enter(p, AFTER_CALL, p->text.n - s.n);
        if (str_starts(s, close)) {
            p->start += strlen(close);
        } else if (str_starts(s, answer)) {
            p->start += strlen(answer);
        } else {
            bool partial = is_partial(s, close) || is_partial(s, answer);
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

static enum bz_status status_of(const struct chat_parser *p, struct bz_err *err)
{
    return p->text.failed ? fail_memory(err, p->text.cap) : BZ_OK;
}

static void put_text(struct chat_parser *p, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        p->bytes[p->n_bytes++] = text.p[i];
        while (is_decidable(p)) take_code_point(p);
    }
}

enum bz_status chat_parser_feed(struct chat_parser *p, struct str text, struct bz_err *err)
{
    if (p->ended) return fail(err, BZ_ERR_ARGUMENT, "text was fed to a chat parser after its end");
    unsigned tag = p->opt.constrained ? tag_at_end(text) : 0;
    if (tag) text.n -= special_text(tag_special(tag)).n;
    put_text(p, text);
    while (tag && p->n_bytes) take_code_point(p);
    if (tag) buf_putc(&p->text, (char)tag);
    if (p->text.n) advance(p, false);
    return status_of(p, err);
}

enum bz_status chat_parser_end(struct chat_parser *p, struct bz_err *err)
{
    while (p->n_bytes) take_code_point(p);
    p->ended = true;
    buf_put(&p->text, "", 0);
    advance(p, true);
    return status_of(p, err);
}

void chat_parser_close(struct chat_parser *p)
{
    if (!p) return;
    buf_free(&p->text);
    buf_free(&p->piece);
    mem_free(p);
}
