/* grammar.h - texts that a model may write: JSON of a schema, a regular expression, a GBNF grammar.
 *
 * A grammar is compiled as far as it is used. A vocabulary is what masks need to know of a
 * tokenizer, made once and shared. A matcher is one text being written: its mask says which tokens
 * may come next. Nothing is kept by approximation: what cannot be kept is an error when the grammar
 * is compiled, and its sentence names the keyword and where it stands.
 */
#ifndef BEZEL_GRAMMAR_GRAMMAR_H
#define BEZEL_GRAMMAR_GRAMMAR_H

#include "base/err.h"
#include "base/str.h"
#include "text/tokenizer.h"

struct grammar;

struct grammar_options {
    /* For text that is checked and not written: any JSON whitespace, any order of members, and any
     * spelling of strings and numbers. Else JSON is compact, members come in the schema's order,
     * and strings of few choices have one spelling. */
    bool any_form;
    /* For text that is written: JSON may be laid out. Behind '{', '[', ',' and ':' and before '}'
     * and ']' there may be one space, or a line break and at most 32 spaces. */
    bool indent;
    /* Keywords of a schema that cannot be kept exactly are left out, and are no error. */
    bool lenient;
};

enum bz_status grammar_of_schema(struct grammar **out, struct str json,
                                 const struct grammar_options *options, struct bz_err *err);
enum bz_status grammar_of_regex(struct grammar **out, struct str pattern, struct bz_err *err);
enum bz_status grammar_of_gbnf(struct grammar **out, struct str text, struct bz_err *err);
void grammar_close(struct grammar *g);

/* ---- vocabularies ---- */

struct vocab;

/* `t` must outlive it. */
enum bz_status vocab_open(struct vocab **out, const struct tokenizer *t, struct bz_err *err);
void vocab_close(struct vocab *v);
uint32_t vocab_mask_words(const struct vocab *v);

/* ---- matchers ---- */

struct matcher;

/* A text at its beginning. The vocabulary may be NULL: then there are bytes, and no tokens. Both
 * must outlive it. Several matchers may use one grammar, one at a time. */
enum bz_status matcher_open(struct matcher **out, struct grammar *g, struct vocab *v,
                            struct bz_err *err);
enum bz_status matcher_clone(struct matcher **out, const struct matcher *m, struct bz_err *err);
void matcher_close(struct matcher *m);

/* Which tokens may come next: bit i % 32 of word i / 32, as struct bz_sampling takes it. Ends of
 * generation are among them exactly when the text may end. Valid until the next call with this
 * grammar. NULL after a failure, which matcher_status tells. */
const uint32_t *matcher_mask(struct matcher *m);

/* The text goes on by a token or by bytes. *accepted: it does; else nothing has changed. An end of
 * generation is accepted where the text may end, and changes nothing. */
enum bz_status matcher_advance(struct matcher *m, int32_t token, bool *accepted,
                               struct bz_err *err);
/* *n_read: how many bytes were read before the one that cannot follow. */
enum bz_status matcher_read(struct matcher *m, struct str bytes, size_t *n_read,
                            struct bz_err *err);

/* All bytes so far. Valid until the next call. */
struct str matcher_text(const struct matcher *m);
bool matcher_may_end(const struct matcher *m);
/* Nothing may follow but the end. */
bool matcher_is_over(struct matcher *m);

/* Take back the last n advances. */
void matcher_rollback(struct matcher *m, uint32_t n);

/* Bytes that must come next, appended to out: the grammar leaves no choice. */
enum bz_status matcher_forced(struct matcher *m, struct buf *out, struct bz_err *err);

/* Bytes that bring a text that is written to an end, appended to out: few of them, found by a
 * search of bounded length. The text itself stays as it is. */
enum bz_status matcher_finish(struct matcher *m, struct buf *out, struct bz_err *err);

enum bz_status matcher_status(const struct matcher *m, struct bz_err *err);

#endif
