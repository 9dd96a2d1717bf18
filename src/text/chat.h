/* chat.h - conversations to prompts, and the model's text back to messages.
 *
 * The renderer reproduces Gemma 4's canonical chat template (2026-07-09) byte for byte; the parser
 * is a streaming state machine over decoded text in which special tokens are visible.
 */
#ifndef BEZEL_TEXT_CHAT_H
#define BEZEL_TEXT_CHAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "text/tokenizer.h"

enum chat_variant {
    CHAT_SMALL, /* E2B, E4B */
    CHAT_LARGE, /* 12B, 26B-A4B, 31B: with thinking off, an empty thinking block opens the answer */
};

/* Which of the two prompts a model was trained on. `renderer` is the field of that name in Ollama's
 * config and may be NULL; without a verdict there the name decides (e2b, 31b, ...), and then the
 * parameter count (0 = unknown): 12 billion and more is large. */
enum chat_variant chat_variant_for(const char *renderer, struct str model_name, uint64_t n_params);

struct chat_options {
    enum chat_variant variant;
    bool thinking;
    bool no_generation_prompt; /* render the history only (training data) */
    bool preserve_thinking;    /* keep reasoning of earlier messages that have tool calls */
    const struct json *begun;  /* {"reasoning", "content"}: how the answer begins; may be NULL */
};

/* Append the prompt of a conversation to out, beginning with <bos>. messages: JSON array of {role,
 * content, ...} in OpenAI's form; tools: array, null or NULL. Its marks are the tags of the format,
 * never text of a message or a tool. *in_thought (may be NULL): the answer goes on inside a
 * thought. On failure out is as it was and err names the message, as in "messages[2]: ...". */
enum bz_status chat_render(struct marked *out, const struct json *messages,
                           const struct json *tools, struct chat_options opt, bool *in_thought,
                           struct bz_err *err);

/* What the parser reports, in order. Text is valid during the callback only. */
enum chat_event {
    CHAT_CONTENT,
    CHAT_REASONING,
    CHAT_TOOL_CALL,     /* a whole call */
    CHAT_CALL_BEGIN,    /* a call of a constrained answer, whose arguments follow in pieces */
    CHAT_CALL_ARGUMENTS /* the next piece */
};

struct chat_sink {
    void *ctx;
    /* CONTENT, REASONING: `text` is the next piece, whole code points of valid UTF-8. TOOL_CALL:
     * `name`, and `text` is the arguments as a compact JSON object. A call that stays unreadable
     * after all repairs is reported as CONTENT, its tags included, so that nothing is lost.
     * CALL_BEGIN: `name`. CALL_ARGUMENTS: `text` is a piece of the object; joined they are what
     * TOOL_CALL has, unless the answer ends inside the call. */
    void (*event)(void *ctx, enum chat_event e, struct str name, struct str text);
};

struct chat_parser; /* opaque */

struct chat_parser_options {
    bool thinking;            /* report reasoning (else it is dropped) */
    bool starts_in_thought;   /* the prompt already opened the thinking channel */
    const struct json *tools; /* for repairs that need a property's type; may be NULL; borrowed */
    /* The answer keeps to a constraint (grammar/constraint.h): calls need no repairs and are
     * reported piece by piece, content keeps its leading space, and text may spell tags. So each
     * feed must be the text of one token: a tag is a token of its own. */
    bool constrained;
};

/* The events joined together do not depend on how the text was cut into feeds, which may split
 * tags and code points anywhere. Bytes that are not UTF-8 become U+FFFD.
 *
 * chat_parser_end flushes. A call still open then is read as if it had been closed, because a stop
 * token may replace its closing tag: a caller whose token limit ran out knows that itself. */
enum bz_status chat_parser_open(struct chat_parser **out, struct chat_parser_options opt,
                                struct chat_sink sink, struct bz_err *err);
enum bz_status chat_parser_feed(struct chat_parser *p, struct str text, struct bz_err *err);
enum bz_status chat_parser_end(struct chat_parser *p, struct bz_err *err);
void chat_parser_close(struct chat_parser *p);

#endif
