/* calls.h - calls of tools in Gemma's notation, as a grammar.
 *
 *     <|tool_call>call:NAME{key:value,...}<tool_call|>
 *
 * Values are JSON's but for strings, which stand between <|"|> without escapes, and keys, which are
 * bare. A key that would not be read back so stands between <|"|>. Tags are bytes (text/tags.h), so
 * no text of a string is taken for one.
 */
#ifndef BEZEL_GRAMMAR_CALLS_H
#define BEZEL_GRAMMAR_CALLS_H

#include "base/json.h"
#include "grammar/grammar.h"

struct tool {
    struct str name;
    const struct json *parameters; /* NULL: it has none */
    bool strict; /* its arguments keep to `parameters`; else they are any object */
};

/* A call of one of these, from its tag to its closing tag. With `many` others may follow. */
enum bz_status grammar_of_calls(struct grammar **out, const struct tool *tools, size_t n, bool many,
                                struct bz_err *err);

#endif
