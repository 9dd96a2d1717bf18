/* chat_parts.h - what the chat_*.c files share; nobody else includes it.
 *
 * The canonical prompt is defined by a Jinja template, so its corner cases are Python's: what
 * counts as whitespace, as true, as the text of a number, and in which order keys are sorted.
 */
#ifndef BEZEL_TEXT_CHAT_PARTS_H
#define BEZEL_TEXT_CHAT_PARTS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "text/tokenizer.h"

#define TAG_QUOTE       "<|\"|>" /* opens and closes a string; the text between is never escaped */
#define TAG_THINK_OPEN  "<|channel>"
#define TAG_THINK_CLOSE "<channel|>"
#define TAG_THINK_NAME  "thought"
#define TAG_CALL_OPEN   "<|tool_call>"
#define TAG_CALL_CLOSE  "<tool_call|>"
#define TAG_ANSWER_OPEN "<|tool_response>"

/* Length of the whitespace character at the start (or end) of s as str.isspace() sees it, or 0. */
size_t chat_space_first(struct str s);
size_t chat_space_last(struct str s);
struct str chat_trim_left(struct str s);
struct str chat_trim_right(struct str s);
struct str chat_trim(struct str s); /* str.strip() */

/* bool(x): null, false, 0, "", [] and {} are false; so is NULL (a missing key). */
bool chat_truthy(const struct json *j);

enum { CHAT_MAX_OPEN = 16 };

/* Of the tool whose declaration is being written: where its references lead. */
struct chat_schema {
    const struct json *root;                /* its parameters */
    const struct json *open[CHAT_MAX_OPEN]; /* definitions around what is written now */
    size_t n_open, n_levels;                /* around it; n_levels: calls that are under way */
    size_t n_refs;                          /* written out so far */
};

/* A rendering in progress. The first failure stays; later writes may still happen and are thrown
 * away by the caller. */
struct chat_out {
    struct marked *prompt;
    struct buf *text; /* the prompt's: what is put here is text, even if it looks like a tag */
    struct arena *scratch;
    struct bz_err *err;
    enum bz_status st;
    struct chat_schema schema;
    size_t n_written;  /* bytes of definitions that references wrote out, in all tools */
    size_t n_looked;   /* bytes that were looked through to find them, in all tools */
    const char *place; /* "messages" or "tools", and which of them */
    size_t index;
};

/* Record "place[index]: sentence" as the failure, if it is the first. */
__attribute__((format(printf, 2, 3))) void chat_fail(struct chat_out *o, const char *fmt, ...);

/* Tags are written only by this, so that no text of a request can become one. */
static inline void chat_put_tag(struct chat_out *o, enum special tag)
{
    marked_put(o->prompt, tag);
}

struct chat_member {
    struct str key;
    const struct json *value;
    size_t index;
};

/* The members of an object, members of one key side by side, in the order in which the text has
 * them. Returns the count; *out is in o->scratch. */
size_t chat_group_members(struct chat_out *o, const struct json *object, struct chat_member **out);

/* The members of an object as Jinja's dictsort orders them (case-insensitive, ties as written; of a
 * repeated key the first place and the last value). Returns the count; *out lives in o->scratch. */
size_t chat_sort_members(struct chat_out *o, const struct json *object, struct chat_member **out);

/* str(x), with NULL printing nothing. */
void chat_put_python(struct chat_out *o, const struct json *j);

/* A value in the model's own notation; keys of maps are quoted inside declarations only. */
void chat_put_value(struct chat_out *o, const struct json *j, bool quote_keys);

/* k:v,k:v of an object, without the braces. */
void chat_put_members(struct chat_out *o, const struct json *object, bool quote_keys);

/* A schema in the keywords that declarations have; the schema itself if it has no others. The
 * references that were followed stay open: the caller restores o->schema.n_open when it has written
 * the schema. */
const struct json *chat_plain_schema(struct chat_out *o, const struct json *schema);

/* declaration:NAME{...} of one entry of `tools`. */
void chat_put_declaration(struct chat_out *o, const struct json *tool);

/* Read `call:NAME{...}` (the text between the call's tags). True: *name points into body and args
 * has the JSON object. False: not readable, or args->failed when memory ran out. `closed`: the
 * closing tag was seen. */
bool chat_read_call(struct str body, bool closed, const struct json *tools, struct str *name,
                    struct buf *args);

#endif
