/* constraint.h - an answer that keeps to grammars: free thoughts, then a text of a grammar, or
 * calls of tools whose arguments keep to their schemas.
 *
 * A constraint is what a request asks for, compiled. A guide is one answer being written by it: it
 * goes from phase to phase by the special tokens of the chat format, which no grammar allows, and
 * asks the grammar of the phase for everything else.
 */
#ifndef BEZEL_GRAMMAR_CONSTRAINT_H
#define BEZEL_GRAMMAR_CONSTRAINT_H

#include "base/json.h"
#include "grammar/grammar.h"

struct constraint;

/* `how` is an object. What content keeps to, at most one of:
 *   "schema": a JSON Schema    "json": true, any object    "regex": "..."    "gbnf": "..."
 * How a schema is kept:
 *   "indent": true      JSON may be laid out with line breaks and spaces (default: compact)
 *   "lenient": true     keywords that cannot be kept exactly are left out (default: an error)
 * Calls of tools:
 *   "tools": [{"name", "parameters": a schema, "strict": bool}]
 *   "call": "auto" (default: text or calls), "required" (at least one call, no text), "none"
 *   "one_call": true    at most one
 * Of the prompt:
 *   "thinking": true    a thought may come first
 *   "in_thought": true  the prompt ends inside one
 * With "tools" every call names one of them, and the arguments of strict ones keep to their schema;
 * those of others are any object. The vocabulary must outlive the constraint. */
enum bz_status constraint_open(struct constraint **out, const struct json *how, struct vocab *v,
                               struct bz_err *err);
void constraint_close(struct constraint *c);

/* ---- one answer ---- */

struct guide;

/* Several guides may use one constraint, one call at a time. */
enum bz_status guide_open(struct guide **out, struct constraint *c, struct bz_err *err);
void guide_close(struct guide *g);

/* *mask: the tokens that may come next, as struct bz_sampling takes them; NULL: all may. Valid
 * until the next call with this constraint. */
enum bz_status guide_mask(struct guide *g, const uint32_t **mask, struct bz_err *err);

/* The answer goes on by a token. One that may not come is BZ_ERR_ARGUMENT, and changes nothing. An
 * end of generation comes where the answer may end, and changes nothing else. */
enum bz_status guide_advance(struct guide *g, int32_t id, struct bz_err *err);

/* Tokens that must come next, whatever the model says: n of them, perhaps none. They are not
 * advanced by yet. The end of the answer is never among them, nor is the last token of a text that
 * goes on: the model may join it with what follows. Valid until the next call with this guide. */
enum bz_status guide_forced(struct guide *g, const int32_t **ids, size_t *n, struct bz_err *err);

#endif
