/* chat_render.c - a conversation as one prompt, byte for byte as Gemma 4's canonical template.
 *
 *   <bos> [system turn] turns [generation prompt],   a turn: <|turn>ROLE \n CONTENT <turn|> \n
 *
 * Owns turns, tool calls and their answers, and when a turn stays open. It adds tags and words of
 * its own; what a request says is text, so nobody can write a tag into a message. Beyond the
 * template it accepts arguments as JSON text and objects as answers, and refuses shapes that the
 * template would silently drop or misprint.
 */
#include "text/chat.h"

#include <stdlib.h>

#include "text/chat_parts.h"

/* What the last message that is not a tool's left behind; it decides the generation prompt. */
enum tail { TAIL_CLOSED, TAIL_CALLS, TAIL_ANSWERS };

struct render {
    struct chat_out o;
    struct chat_options opt;
    size_t user_end; /* one past the last user message */
    bool in_model_turn;
    bool in_thought; /* the prompt leaves a thought open */
    enum tail tail;
};

static bool role_is(const struct json *message, const char *role)
{
    return message && str_is(json_get_str(message, "role"), role);
}

static bool is_string(const struct json *j)
{
    return j && j->type == JSON_STRING;
}

/* Trim what was written since `from`; returns whether anything is left. */
static bool trim_written(struct buf *b, size_t from)
{
    if (b->failed || b->n == from) return false;
    struct str s = chat_trim((struct str) { b->data + from, b->n - from });
    memmove(b->data + from, s.p, s.n);
    b->n = from + s.n;
    b->data[b->n] = 0;
    return s.n > 0;
}

static bool find(struct str s, const char *tag, size_t *at)
{
    size_t n = strlen(tag);
    for (size_t i = 0; i + n <= s.n; i++) {
        if (memcmp(s.p + i, tag, n) == 0) {
            *at = i;
            return true;
        }
    }
    return false;
}

/* Text of the model without its thinking: split at <channel|>, cut each piece at its first
 * <|channel>, join, trim. */
static void put_without_thinking(struct buf *b, struct str text)
{
    size_t from = b->n, at;
    for (bool more = true; more;) {
        struct str piece = text;
        more = find(text, TAG_THINK_CLOSE, &at);
        if (more) {
            piece.n = at;
            text.p += at + strlen(TAG_THINK_CLOSE);
            text.n -= at + strlen(TAG_THINK_CLOSE);
        }
        if (find(piece, TAG_THINK_OPEN, &at)) piece.n = at;
        buf_put_str(b, piece);
    }
    trim_written(b, from);
}

static void put_media(struct chat_out *o, const struct json *part)
{
    struct str type = json_get_str(part, "type");
    if (str_is(type, "image") || str_is(type, "image_url")) chat_put_tag(o, SPECIAL_IMAGE);
    else if (str_is(type, "audio") || str_is(type, "input_audio")) chat_put_tag(o, SPECIAL_AUDIO);
    else if (str_is(type, "video")) chat_put_tag(o, SPECIAL_VIDEO);
}

/* The text of a content part; a missing one is empty. */
static struct str part_text(struct chat_out *o, const struct json *part)
{
    const struct json *text = json_get(part, "text");
    if (part->type != JSON_OBJECT) chat_fail(o, "a part of \"content\" must be an object");
    else if (text && text->type != JSON_STRING)
        chat_fail(o, "\"text\" of a part of \"content\" must be a string");
    return is_string(text) ? text->text : (struct str) { "", 0 };
}

/* Content of a message in its own turn; returns whether it printed more than whitespace. */
static bool put_content(struct chat_out *o, const struct json *content, bool is_model)
{
    size_t from = o->text->n;
    if (!content || content->type == JSON_NULL) return false;
    if (content->type == JSON_STRING) {
        if (is_model) put_without_thinking(o->text, content->text);
        else buf_put_str(o->text, chat_trim(content->text));
    } else if (content->type == JSON_ARRAY) {
        for (const struct json *part = content->child; part; part = part->next) {
            if (part->type == JSON_OBJECT && !str_is(json_get_str(part, "type"), "text"))
                put_media(o, part);
            else if (is_model) put_without_thinking(o->text, part_text(o, part));
            else buf_put_str(o->text, chat_trim(part_text(o, part)));
        }
    } else {
        chat_fail(o, "\"content\" must be a string or an array of parts");
    }
    if (o->text->failed || o->text->n == from) return false;
    return chat_trim((struct str) { o->text->data + from, o->text->n - from }).n > 0;
}

/* Arguments in OpenAI's wire form: JSON inside a string. Empty text means no arguments. */
static const struct json *parse_arguments(struct chat_out *o, struct str text, size_t call)
{
    struct bz_err why;
    struct json *j = NULL;
    if (!chat_trim(text).n) return NULL;
    enum bz_status st = json_parse(&j, text, o->scratch, &why);
    if (st == BZ_ERR_MEMORY) {
        if (!o->st) o->st = fail(o->err, st, "%s", why.text);
    } else if (st) {
        chat_fail(o, "the arguments of tool call %zu are not JSON: %s", call, why.text);
    }
    return j;
}

static void put_call(struct chat_out *o, const struct json *call, size_t i)
{
    const struct json *f = json_get(call, "function"), *args = json_get(f, "arguments");
    if (!f || f->type != JSON_OBJECT || !is_string(json_get(f, "name"))) {
        chat_fail(o, "tool call %zu must be an object with a \"function\" that has a \"name\"", i);
        return;
    }
    chat_put_tag(o, SPECIAL_CALL);
    buf_puts(o->text, "call:");
    buf_put_str(o->text, json_get_str(f, "name"));
    buf_putc(o->text, '{');
    if (is_string(args)) args = parse_arguments(o, args->text, i);
    if (args && args->type == JSON_OBJECT) chat_put_members(o, args, false);
    else if (args && args->type != JSON_NULL)
        chat_fail(o, "the arguments of tool call %zu must be a JSON object", i);
    buf_putc(o->text, '}');
    chat_put_tag(o, SPECIAL_CALL_END);
}

/* A list whose elements are all content parts; the template reads an empty object as one too. */
static bool is_parts(const struct json *j)
{
    if (!j || (j->type != JSON_ARRAY && j->type != JSON_OBJECT)) return false;
    if (j->type == JSON_OBJECT) return j->n == 0;
    for (const struct json *c = j->child; c; c = c->next)
        if (c->type != JSON_OBJECT) return false;
    return true;
}

static void open_answer(struct chat_out *o, struct str name)
{
    chat_put_tag(o, SPECIAL_RESPONSE);
    buf_puts(o->text, "response:");
    buf_put_str(o->text, name);
    buf_putc(o->text, '{');
}

static void close_answer(struct chat_out *o)
{
    buf_putc(o->text, '}');
    chat_put_tag(o, SPECIAL_RESPONSE_END);
}

static void put_answer(struct chat_out *o, struct str name, const struct json *value)
{
    open_answer(o, name);
    if (value && value->type == JSON_OBJECT) {
        chat_put_members(o, value, false);
    } else {
        buf_puts(o->text, "value:");
        if (value) chat_put_value(o, value, false);
        else buf_puts(o->text, "[]"); /* what the template makes of an absent response */
    }
    close_answer(o);
}

/* Content parts: all text in one string, untrimmed, then the placeholders of the media. */
static void put_answer_parts(struct chat_out *o, struct str name, const struct json *parts)
{
    open_answer(o, name);
    buf_puts(o->text, "value:");
    chat_put_tag(o, SPECIAL_QUOTE);
    for (const struct json *c = parts->child; c; c = c->next)
        if (str_is(json_get_str(c, "type"), "text")) buf_put_str(o->text, part_text(o, c));
    chat_put_tag(o, SPECIAL_QUOTE);
    close_answer(o);
    for (const struct json *c = parts->child; c; c = c->next) put_media(o, c);
}

/* A call's id as it is compared: Python's ==, and a missing id equals a missing id. */
struct call_id {
    enum { ID_NONE, ID_NUMBER, ID_TEXT, ID_OTHER } kind; /* OTHER equals nothing */
    double number;
    struct str text;
    struct str name; /* of the function */
    size_t index;
};

static struct call_id id_of(const struct json *id)
{
    if (!id || id->type == JSON_NULL) return (struct call_id) { .kind = ID_NONE };
    if (id->type == JSON_STRING) return (struct call_id) { .kind = ID_TEXT, .text = id->text };
    if (id->type == JSON_INT || id->type == JSON_FLOAT)
        return (struct call_id) { .kind = ID_NUMBER, .number = id->number };
    return (struct call_id) { .kind = ID_OTHER };
}

static int by_id(const struct call_id *a, const struct call_id *b)
{
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    size_t n = a->text.n < b->text.n ? a->text.n : b->text.n;
    int order = n ? memcmp(a->text.p, b->text.p, n) : 0;
    return order ? order : a->text.n < b->text.n ? -1 : a->text.n > b->text.n;
}

static int by_id_then_place(const void *x, const void *y)
{
    const struct call_id *a = x, *b = y;
    int order = by_id(a, b);
    return order ? order : a->index < b->index ? -1 : a->index > b->index;
}

/* The calls of one message, sorted by id and with their names at hand. So an answer finds its call
 * without a look at all calls, or at all members of one. */
struct call_list {
    struct call_id *ids;
    size_t n;
};

static struct call_list sort_calls(struct chat_out *o, const struct json *calls)
{
    struct call_list list = { arena_alloc(o->scratch, calls->n, sizeof *list.ids), 0 };
    if (!list.ids) {
        if (!o->st) o->st = fail_memory(o->err, calls->n * sizeof *list.ids);
        return list;
    }
    for (const struct json *c = calls->child; c; c = c->next, list.n++) {
        list.ids[list.n] = id_of(json_get(c, "id"));
        list.ids[list.n].name = json_get_str(json_get(c, "function"), "name");
        list.ids[list.n].index = list.n;
    }
    qsort(list.ids, list.n, sizeof *list.ids, by_id_then_place);
    return list;
}

/* The last call with this id, or NULL. */
static const struct call_id *find_call(const struct call_list *list, struct call_id id)
{
    size_t lo = 0, hi = list->n; /* of the first that is past the id */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (by_id(&list->ids[mid], &id) <= 0) lo = mid + 1;
        else hi = mid;
    }
    bool same = id.kind != ID_OTHER && lo > 0 && by_id(&list->ids[lo - 1], &id) == 0;
    return same ? &list->ids[lo - 1] : NULL;
}

/* Whose answer a tool message is: the last call with its id, else its own name. */
static struct str answer_name(struct chat_out *o, const struct call_list *calls,
                              const struct json *tool)
{
    const struct json *own = json_get(tool, "name");
    const struct call_id *call = find_call(calls, id_of(json_get(tool, "tool_call_id")));
    if (call) return call->name;
    if (!chat_truthy(own)) return str_of("unknown");
    if (!is_string(own)) chat_fail(o, "\"name\" of a tool message after it must be a string");
    return own->text;
}

/* Answers to this message's calls: embedded, or the tool messages that directly follow. */
static bool put_answers(struct chat_out *o, const struct json *message, const struct json *calls)
{
    const struct json *embedded = json_get(message, "tool_responses");
    bool any = false;
    if (chat_truthy(embedded)) {
        if (embedded->type != JSON_ARRAY) chat_fail(o, "\"tool_responses\" must be an array");
        for (const struct json *c = embedded->child; c; c = c->next, any = true) {
            const struct json *name = json_get(c, "name");
            if (c->type != JSON_OBJECT || (chat_truthy(name) && !is_string(name)))
                chat_fail(o, "each of \"tool_responses\" must be an object with a string \"name\"");
            struct str who = chat_truthy(name) ? name->text : str_of("unknown");
            put_answer(o, who, json_get(c, "response"));
        }
    } else if (calls && role_is(message->next, "tool")) {
        struct call_list list = sort_calls(o, calls);
        for (const struct json *t = message->next; role_is(t, "tool"); t = t->next, any = true) {
            const struct json *content = json_get(t, "content");
            static const struct json none = { .type = JSON_NULL };
            struct str who = answer_name(o, &list, t);
            if (is_parts(content)) put_answer_parts(o, who, content);
            else put_answer(o, who, content ? content : &none);
        }
    }
    return any;
}

static void open_turn(struct chat_out *o, struct str role)
{
    chat_put_tag(o, SPECIAL_TURN);
    buf_put_str(o->text, role);
    buf_putc(o->text, '\n');
}

static void close_turn(struct chat_out *o)
{
    chat_put_tag(o, SPECIAL_TURN_END);
    buf_putc(o->text, '\n');
}

static void open_thought(struct chat_out *o)
{
    chat_put_tag(o, SPECIAL_CHANNEL);
    buf_puts(o->text, TAG_THINK_NAME "\n");
}

static void close_thought(struct chat_out *o)
{
    buf_putc(o->text, '\n');
    chat_put_tag(o, SPECIAL_CHANNEL_END);
}

static void put_thinking(struct render *r, const struct json *message, bool has_calls)
{
    const struct json *text = json_get(message, "reasoning");
    if (!chat_truthy(text)) text = json_get(message, "reasoning_content");
    bool recent = r->o.index >= r->user_end;
    if (!chat_truthy(text) || (!recent && !(r->opt.preserve_thinking && has_calls))) return;
    if (!is_string(text)) {
        chat_fail(&r->o, "\"reasoning\" must be a string");
        return;
    }
    open_thought(&r->o);
    buf_put_str(r->o.text, text->text);
    close_thought(&r->o);
}

/* The template knows "developer" as another name of the system only in front; here it always is. */
static struct str turn_name(const struct json *message, bool is_model)
{
    if (is_model) return str_of("model");
    return role_is(message, "developer") ? str_of("system") : json_get_str(message, "role");
}

static void put_message(struct render *r, const struct json *m)
{
    struct chat_out *o = &r->o;
    bool is_assistant = role_is(m, "assistant"), is_model = is_assistant || role_is(m, "model");
    if (!(is_model && r->in_model_turn)) open_turn(o, turn_name(m, is_model));
    const struct json *calls = json_get(m, "tool_calls");
    if (!chat_truthy(calls)) calls = NULL;
    put_thinking(r, m, calls != NULL);
    if (calls && calls->type != JSON_ARRAY) chat_fail(o, "\"tool_calls\" must be an array");
    if (o->st) return;
    size_t i = 0;
    for (const struct json *c = calls ? calls->child : NULL; c; c = c->next) put_call(o, c, i++);
    if (o->st) return;
    bool answered = put_answers(o, m, calls);
    bool has_content = put_content(o, json_get(m, "content"), is_model);

    const struct json *next = m->next;
    while (role_is(next, "tool")) next = next->next;
    if (calls && !answered) {
        chat_put_tag(o, SPECIAL_RESPONSE); /* the hand-over: now it is the tool's turn */
    } else if (is_model && role_is(next, "assistant")) {
        /* the next message goes on in this turn */
    } else if (!answered || has_content || next) {
        close_turn(o);
    }
    r->tail = answered ? TAIL_ANSWERS : calls ? TAIL_CALLS : TAIL_CLOSED;
    r->in_model_turn = is_assistant;
}

/* The first message when it is a system's. Its parts are each followed by a space. */
static void put_system_text(struct chat_out *o, const struct json *message)
{
    const struct json *content = json_get(message, "content");
    if (content && content->type == JSON_ARRAY) {
        for (const struct json *part = content->child; part; part = part->next) {
            buf_put_str(o->text, chat_trim(part_text(o, part)));
            buf_putc(o->text, ' ');
        }
    } else {
        put_content(o, content, false);
    }
}

static void put_system_turn(struct render *r, const struct json *system, const struct json *tools)
{
    struct chat_out *o = &r->o;
    open_turn(o, str_of("system"));
    if (r->opt.thinking) {
        chat_put_tag(o, SPECIAL_THINK);
        buf_putc(o->text, '\n');
    }
    if (system) put_system_text(o, system);
    o->place = "tools";
    for (const struct json *t = tools ? tools->child : NULL; t; t = t->next, o->index++) {
        chat_put_tag(o, SPECIAL_TOOL);
        chat_put_declaration(o, t);
        chat_put_tag(o, SPECIAL_TOOL_END);
    }
    close_turn(o);
    o->place = "messages";
}

static void put_generation_prompt(struct render *r)
{
    struct chat_out *o = &r->o;
    if (r->tail == TAIL_CLOSED) {
        open_turn(o, str_of("model"));
        if (r->opt.variant == CHAT_LARGE && !r->opt.thinking) {
            open_thought(o);
            chat_put_tag(o, SPECIAL_CHANNEL_END);
        }
    } else if (r->tail == TAIL_ANSWERS && r->opt.thinking) {
        open_thought(o);
        r->in_thought = true;
    }
}

/* What the model has written of its answer already, as it would have. */
static void put_begun(struct render *r, const struct json *begun)
{
    struct chat_out *o = &r->o;
    struct str reasoning = json_get_str(begun, "reasoning"),
               content = json_get_str(begun, "content");
    if (!r->in_thought && r->opt.thinking && reasoning.n) {
        open_thought(o);
        r->in_thought = true;
    }
    if (r->in_thought) buf_put_str(o->text, reasoning);
    if (!content.n) return;
    if (r->in_thought) close_thought(o);
    r->in_thought = false;
    buf_put_str(o->text, content);
}

static void render_all(struct render *r, const struct json *messages, const struct json *tools)
{
    struct chat_out *o = &r->o;
    for (const struct json *m = messages->child; m; m = m->next, o->index++) {
        if (m->type != JSON_OBJECT) chat_fail(o, "a message must be an object");
        else if (!is_string(json_get(m, "role"))) chat_fail(o, "\"role\" must be a string");
        else if (role_is(m, "user")) r->user_end = o->index + 1;
    }
    if (o->st) return;
    o->index = 0;
    const struct json *m = messages->child;
    const struct json *system = role_is(m, "system") || role_is(m, "developer") ? m : NULL;
    chat_put_tag(o, SPECIAL_BOS);
    if (r->opt.thinking || system || (tools && tools->n)) put_system_turn(r, system, tools);
    if (system) m = m->next;
    for (o->index = system != NULL; m && !o->st; m = m->next, o->index++)
        if (!role_is(m, "tool")) put_message(r, m);
    if (r->opt.no_generation_prompt) return;
    put_generation_prompt(r);
    put_begun(r, r->opt.begun);
}

enum bz_status chat_render(struct marked *out, const struct json *messages,
                           const struct json *tools, struct chat_options opt, bool *in_thought,
                           struct bz_err *err)
{
    if (!messages || messages->type != JSON_ARRAY)
        return fail(err, BZ_ERR_FORMAT, "messages must be an array");
    if (tools && tools->type == JSON_NULL) tools = NULL;
    if (tools && tools->type != JSON_ARRAY)
        return fail(err, BZ_ERR_FORMAT, "tools must be an array");
    struct arena scratch = { 0 };
    size_t start = out->text.n;
    struct render r = { .o = { .prompt = out,
                               .text = &out->text,
                               .scratch = &scratch,
                               .err = err,
                               .place = "messages" },
                        .opt = opt };
    render_all(&r, messages, tools);
    enum bz_status st = r.o.st;
    if (!st && out->text.failed) st = fail_memory(err, out->text.n);
    arena_free(&scratch);
    if (st) marked_cut(out, start);
    else if (in_thought) *in_thought = r.in_thought;
    return st;
}

static bool name_has(struct str name, const char *const *words, size_t n_words)
{
    for (size_t w = 0; w < n_words; w++) {
        size_t n = strlen(words[w]), k;
        for (size_t i = 0; i + n <= name.n; i++) {
            /* Letters differ from their capitals in bit 5, which digits have set anyway. */
            for (k = 0; k < n && (name.p[i + k] | 0x20) == words[w][k]; k++) continue;
            if (k == n) return true;
        }
    }
    return false;
}

enum chat_variant chat_variant_for(const char *renderer, struct str model_name, uint64_t n_params)
{
    static const char *const small[] = { "e2b", "e4b" }, *const large[] = { "12b", "26b", "31b" };
    if (renderer && strcmp(renderer, "gemma4-small") == 0) return CHAT_SMALL;
    if (renderer && strcmp(renderer, "gemma4-large") == 0) return CHAT_LARGE;
    if (name_has(model_name, small, 2)) return CHAT_SMALL;
    if (name_has(model_name, large, 3)) return CHAT_LARGE;
    return n_params >= 12000000000u ? CHAT_LARGE : CHAT_SMALL;
}
